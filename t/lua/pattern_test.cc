// Our patterns against LuaJIT's: the same answers for any pattern, and an end to those that have none.
#include "lua/pattern.h"

#include <random>
#include <string>

#include "lua/state.h"
#include "t/lua/harness.h"

using namespace sluice::lua;
using namespace sluice::lua::harness;

namespace {

StatePtr a_state(bool ours) {
  StatePtr state(luaL_newstate());
  luaL_openlibs(state.get());
  if (ours) open_patterns(state.get());
  return state;
}

// What `string.FUNCTION(...)` returns, as text; "error" with its sentence when it raises.
std::string outcome(lua_State* L, const std::string& function, const std::string& subject, const std::string& pattern,
                    const std::string& more) {
  lua_settop(L, 0);
  const std::string chunk = "local f, s, p, m = ... local function show(...) local t = {} for i = 1, select('#', ...) do t[i] = "
                            "tostring((select(i, ...))) end return table.concat(t, '|') end "
                            "if f == 'find' or f == 'match' then return show(string[f](s, p, tonumber(m))) end "
                            "if f == 'gsub' then return show(string.gsub(s, p, m)) end "
                            "if f == 'gsub_function' then return show(string.gsub(s, p, function(...) return show(...) .. '.' end)) end "
                            "if f == 'gsub_table' then return show(string.gsub(s, p, { a = 'A', b = 7, ab = false }, 3)) end "
                            "local all = {} for x, y, z in string.gmatch(s, p) do all[#all + 1] = show(x, y, z) "
                            "if #all > 50 then break end end return table.concat(all, ';')";
  REQUIRE(luaL_loadstring(L, chunk.c_str()) == LUA_OK);
  for (const std::string* text : {&function, &subject, &pattern, &more}) lua_pushlstring(L, text->data(), text->size());
  const bool good = lua_pcall(L, 4, 1, 0) == LUA_OK;
  std::size_t n = 0;
  const char* text = lua_tolstring(L, -1, &n);
  std::string said(text ? text : "?", n);
  if (good) return said;
  // LuaJIT says where, and what the function was called.
  for (const char* part : {"malformed", "missing '['", "unbalanced", "capture", "too complex", "replacement"})
    if (said.find(part) != said.npos) return std::string("error ") + part;
  return "error " + said;
}

}  // namespace

TEST_CASE("any pattern matches as LuaJIT's own does") {
  const StatePtr theirs = a_state(false), ours = a_state(true);
  std::mt19937 random(20240607);
  const auto draw = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  static constexpr const char* kPieces[] = {"a", "b", "ab", ".", "%a", "%d", "%s", "%w", "%W", "%A", "%g", "%z", "%p", "%x", "%u", "%l", "%c", "%%",
    "%.", "[ab]", "[^a]", "[a-c]", "[%d_]", "[]a]", "[^]]", "[a-]", "(", ")", "()", "(a", "(.-)", "(.*)", "*", "+", "-", "?", "%b()",
    "%bab", "%f[%w]", "%f[%W]", "%1", "%2", "^", "$", "%", "[", "%f", "%b", "]", " ", "1", "_", "%0", "{", "%@"};
  static constexpr const char* kWords[] = {"a", "b", "ab", " ", "(", ")", "1", "42", "_", "\n", "A", "%", "-", "]", "$", "^", ".", "\xff"};
  static constexpr const char* kFunctions[] = {"find", "match", "gmatch", "gsub", "gsub_function", "gsub_table"};
  static constexpr const char* kReplacements[] = {"x", "%0", "%1", "%2", "<%1>", "%%", "%", "%a", "", "%0%0"};
  int errors = 0, matches = 0;
  for (int i = 0; i < 40'000; ++i) {
    std::string subject, pattern;
    for (std::size_t n = draw(9); n > 0; --n) subject += kWords[draw(std::size(kWords))];
    if (draw(10) == 0) subject += std::string(1, '\0');
    for (std::size_t n = 1 + draw(5); n > 0; --n) pattern += kPieces[draw(std::size(kPieces))];
    const std::string function = kFunctions[draw(std::size(kFunctions))];
    std::string more = kReplacements[draw(std::size(kReplacements))];
    if (function == "find" || function == "match") more = draw(3) == 0 ? std::to_string(static_cast<int>(draw(15)) - 7) : "1";
    const std::string wanted = outcome(theirs.get(), function, subject, pattern, more);
    const std::string got = outcome(ours.get(), function, subject, pattern, more);
    CAPTURE(function);
    CAPTURE(subject);
    CAPTURE(pattern);
    CAPTURE(more);
    REQUIRE(got == wanted);
    errors += got.find("error") == 0;
    matches += got != "nil" && got.find("error") != 0;
  }
  CHECK(errors > 1000);
  CHECK(matches > 5000);
}

TEST_CASE("a pattern that would run for minutes is an error that says so") {
  World w(route("local ok, why = pcall(string.find, ('a'):rep(28), ('a?'):rep(28) .. ('a'):rep(28)) return why"));
  const auto x = w.get("/");
  CHECK(x->body == "the pattern takes too long: more than 1004928 steps for a text of 28 bytes");
  for (const char* slow : {"('x'):rep(1e5):find('.*y.*y')", "('x'):rep(3e4):match('(.-)(.-)(.-)y')", "('('):rep(1e5):find('%b()')",
                           "('a'):rep(3e4):gsub('.-b', '')", "for x in ('a'):rep(1e4):gmatch('a*a*b') do end", "('x'):rep(2e5):find(('[' .. ('y'):rep(1000) .. ']'))"}) {
    CAPTURE(slow);
    World v(route(std::string("return tostring(select(2, pcall(function() ") + slow + " end)))"));
    CHECK(v.get("/")->body.find("the pattern takes too long") != std::string::npos);
  }
}

TEST_CASE("what takes as long as its subject is never too long") {
  World w(route("local s = ('word and '):rep(2e5) local n = 0 for x in s:gmatch('%a+') do n = n + 1 end "
                "return n .. ' ' .. select(2, s:gsub('[aeiou]', '')) .. ' ' .. tostring(s:find('%d')) .. ' ' .. tostring(s:find('nothere', 1, true))"));
  CHECK(w.get("/")->body == "400000 400000 nil nil");
}

TEST_CASE("a pattern is stopped by the watchdog like any other Lua") {
  // As many steps as a subject of 64 MiB allows take longer than the limit.
  World w("settings { lua_time_limit = 0.1 } " +
          route("local s = ('a'):rep(2 ^ 26) local ok, why = pcall(string.find, s, 'a-b') error(why)"));
  CHECK(w.get("/")->status == 500);
  CHECK(w.log.has("stopped: it ran too long"));
}

TEST_CASE("patterns with too many parts are refused, not run into the end of the stack") {
  World w(route("return tostring(select(2, pcall(string.find, ('a'):rep(1000), ('a?'):rep(1e5)))) .. ', ' "
                ".. tostring(select(2, pcall(string.find, ('a'):rep(100), ('(a)'):rep(40))))"));
  CHECK(w.get("/")->body == "pattern too complex, too many captures");
}
