#include "lua/config_data.h"

#include <charconv>

#include "lua/routelib_text.h"

namespace sluice::lua {
namespace {

std::string take_error(Vm& vm, const ConfigData& config) {
  lua_State* L = vm.main();
  std::string text = lua_type(L, -1) == LUA_TSTRING ? readable(config, text_at(L, -1))
                                                    : config.path + ": an error that is a " + luaL_typename(L, -1) + ", not a string";
  lua_pop(L, 1);
  return text;
}

}  // namespace

std::string readable(const ConfigData& config, std::string_view raised) {
  const std::string& file = config.source.file;
  if (raised.substr(0, file.size()) != file || raised.substr(file.size(), 1) != ":") {
    // Of the memory limit, or of a file that was required: its name is said.
    return config.path + ": " + std::string(raised);
  }
  std::string text = config.path + std::string(raised.substr(file.size()));
  // A declaration that was mistyped is a global that nobody has set.
  constexpr std::string_view kCalled = "attempt to call global '";
  if (const std::size_t at = raised.find(kCalled); at != raised.npos) {
    const std::string_view name = raised.substr(at + kCalled.size());
    const std::string near = nearest(name.substr(0, name.find('\'')), {"settings", "stores", "pools", "shared", "stats", "routes", "handlers", "cmdmap",
                                                                        "local_zone", "local_zone_from_env", "local_zone_from_file"});
    if (!near.empty()) text.append("; did you mean `").append(near).append("`?");
  }
  const std::string_view rest = raised.substr(file.size() + 1);
  int line = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), line);
  std::string_view its = line_text(config.source.text, line);
  const std::size_t from = its.find_first_not_of(" \t\r");
  const std::size_t to = its.find_last_not_of(" \t\r");
  if (from != its.npos) text.append(" (in: ").append(its.substr(from, std::min<std::size_t>(to - from + 1, 100))).append(")");
  return text;
}

Result<void, std::string> run_file(Vm& vm, const ConfigData& config) {
  lua_State* L = vm.main();
  lua_newtable(L);
  const int library = lua_gettop(L);
  for (const LibraryPart& part : kRoutelib) {
    bool good = luaL_loadbufferx(L, part.text.data(), part.text.size(), part.name, "t") == LUA_OK;
    if (good) {
      lua_pushvalue(L, library);
      push_core(L);
      good = vm.plain_call(L, 2, 0);
    }
    if (good) continue;
    std::string why = take_error(vm, config);
    lua_pop(L, 1);
    return why;
  }
  const std::string& text = config.source.text;
  if (luaL_loadbufferx(L, text.data(), text.size(), ("@" + config.source.file).c_str(), "t") != LUA_OK ||
      !vm.plain_call(L, 0, 0)) {
    std::string why = take_error(vm, config);
    lua_pop(L, 1);
    return why;
  }
  return {};
}

Result<void, std::string> call_library(Vm& vm, const ConfigData& config, const char* name, int arguments, int results) {
  lua_State* L = vm.main();
  lua_getfield(L, -1 - arguments, name);
  lua_insert(L, -1 - arguments);
  if (!vm.plain_call(L, arguments, results)) return take_error(vm, config);
  return {};
}

}  // namespace sluice::lua
