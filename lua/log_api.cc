// sluice.log_req and log_reqsample: one line of the log about a request and its answer.
#include "lua/log_api.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "lua/box.h"
#include "lua/context_args.h"
#include "lua/response_object.h"

namespace sluice::lua {
namespace {

// Of what clients choose: a line stays a line one can read.
constexpr std::size_t kPathBytes = 300, kDetailBytes = 150;

Home& home(lua_State* L) { return *static_cast<Home*>(lua_touserdata(L, lua_upvalueindex(1))); }

const ResponseObject* response_at(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return nullptr;
  const ResponseObject& r = check_boxed<ResponseObject>(L, index, Kind::response, "a response");
  if (!r.alive) luaL_error(L, "a response that is no more: its request is answered");
  return &r;
}

// Spaces would end a word of the line.
void add_word(std::string& line, const char* name, std::string_view value, std::size_t most) {
  line.append(" ").append(name).append("=");
  for (const char c : value.substr(0, most)) line.push_back(c == ' ' ? '+' : c);
  if (value.size() > most) line.append("...");
}

// The arguments from `first` on: request, response or nil, detail, cfd.
void write_line(lua_State* L, Home& h, int first) {
  const RequestObject& request = live_request_at(L, first);
  const ResponseObject* response = response_at(L, first + 1);
  const std::string_view detail = lua_isnoneornil(L, first + 2) ? std::string_view() : (luaL_checkstring(L, first + 2), text_at(L, first + 2));
  const double cfd = luaL_optnumber(L, first + 3, -1);
  std::string& line = h.scratch;
  line.assign("req");
  add_word(line, "method", proxy::name(request.its_method()), 16);
  add_word(line, "path", request.owned ? std::string_view(request.path) : request.live->path, kPathBytes);
  if (response) {
    static constexpr const char* kClasses[] = {"none", "any", "ok", "good"};
    char elapsed[32];
    std::snprintf(elapsed, sizeof elapsed, "%.6f", static_cast<double>(response->elapsed_us) / 1e6);
    line.append(" status=").append(std::to_string(response->status()));
    line.append(" class=").append(kClasses[static_cast<int>(class_of(response->status()))]);
    line.append(" error=").append(response->error_name()).append(" elapsed=").append(elapsed);
    if (!response->backend.empty()) add_word(line, "backend", response->backend, 80);
  }
  if (!request.owned) add_word(line, "client", request.live->client_ip, 64);
  if (cfd >= 0 && cfd <= 1e9) line.append(" cfd=").append(std::to_string(static_cast<long>(cfd)));
  // The last, so that it may have spaces.
  if (!detail.empty()) line.append(" detail=").append(detail.substr(0, kDetailBytes));
  h.log->write(proxy::LogLevel::info, line);
}

bool wanted(const Home& h) { return h.log != nullptr && h.log->takes(proxy::LogLevel::info); }

// log_req(request, response or nil [, detail [, cfd]])
int log_req(lua_State* L) {
  Home& h = home(L);
  live_request_at(L, 1);
  response_at(L, 2);
  if (wanted(h)) write_line(L, h, 1);
  return 0;
}

// log_reqsample(ms, rate, all_errors, request, response or nil [, detail [, cfd]]): when it is an error and all of those are
// wanted, or took longer than ms, or is one of `rate`. 0: not by that. Returns whether it was written.
int log_reqsample(lua_State* L) {
  Home& h = home(L);
  const double ms = luaL_checknumber(L, 1), rate = luaL_checknumber(L, 2);
  const bool errors = lua_toboolean(L, 3) != 0;
  if (!(ms >= 0) || !(rate >= 0 && rate <= 1e9) || rate != std::floor(rate))
    return luaL_error(L, "log_reqsample: the deadline is milliseconds from 0, the rate a whole number from 0");
  live_request_at(L, 4);
  const ResponseObject* response = response_at(L, 5);
  if (!wanted(h)) {
    lua_pushboolean(L, 0);
    return 1;
  }
  bool take = rate >= 1 && h.draw(static_cast<std::uint64_t>(rate)) == 0;
  if (response) {
    take = take || (errors && class_of(response->status()) == Class::any);
    take = take || (ms > 0 && static_cast<double>(response->elapsed_us) > ms * 1000);
  } else {
    take = take || errors;
  }
  if (take) write_line(L, h, 4);
  lua_pushboolean(L, take);
  return 1;
}

}  // namespace

void open_request_log(lua_State* L, const Home& its_home) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kPublic[] = {{"log_req", log_req}, {"log_reqsample", log_reqsample}, {nullptr, nullptr}};
  lua_getglobal(L, "sluice");
  push_pointer(L, &its_home);
  luaL_setfuncs(L, kPublic, 1);
}

}  // namespace sluice::lua
