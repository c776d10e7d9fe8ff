#include "lua/inspector.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "lua/box.h"
#include "lua/fields.h"
#include "lua/value.h"

namespace sluice::lua {
namespace {

enum Step : int {
  method, methodis, pathsegment, pathbegin, pathis, param, sepkey, keybegin, keyis, hasquery, query, queryint, queryis,
  hasheader, header, headerint, headeris, headertoken, status, statusis, statusclass, erroris,
};
constexpr StepType kSteps[] = {
    {"method", true, false, "m"}, {"methodis", true, false, "S"}, {"pathsegment", true, false, "Im"},
    {"pathbegin", true, false, "S"}, {"pathis", true, false, "S"}, {"param", true, false, "Nm"},
    {"sepkey", true, false, "eim"}, {"keybegin", true, false, "S"}, {"keyis", true, false, "S"},
    {"hasquery", true, false, "N"}, {"query", true, false, "Nm"}, {"queryint", true, false, "N"}, {"queryis", true, false, "NS"},
    {"hasheader", true, true, "N"}, {"header", true, true, "Nm"}, {"headerint", true, true, "N"}, {"headeris", true, true, "NS"},
    {"headertoken", true, true, "NS"}, {"status", false, true, ""}, {"statusis", false, true, "I"},
    {"statusclass", false, true, ""}, {"erroris", false, true, "S"}};

// A word, and which value of the inspector's table it stands for.
using Words = std::vector<std::pair<std::string, int>>;

struct Look {
  Step step;
  std::string name, text, separator;
  int number;
  bool mapped;
  Words words;                       // sorted
};

struct Inspector {
  bool of_request;
  std::vector<Look> looks;
};

// The n-th piece, from 1, between separators.
std::optional<std::string_view> piece(std::string_view text, std::string_view separator, int n) {
  for (int i = 1; i < n; ++i) {
    const std::size_t at = text.find(separator);
    if (at == text.npos) return std::nullopt;
    text.remove_prefix(at + separator.size());
  }
  text = text.substr(0, text.find(separator));
  if (text.empty()) return std::nullopt;
  return text;
}

// Is `token` one of a list such as "gzip, br;q=1"? Case does not matter; what is behind a `;` is not looked at.
bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
    one = one.substr(0, one.find(';'));
    while (!one.empty() && (one.front() == ' ' || one.front() == '\t')) one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '\t')) one.remove_suffix(1);
    if (same_field(one, token)) return true;
  }
  return false;
}

void push_integer(lua_State* L, std::optional<std::string_view> text) {
  long long n = 0;
  if (text) {
    const auto read = std::from_chars(text->data(), text->data() + text->size(), n);
    if (read.ec == std::errc() && read.ptr == text->data() + text->size()) return lua_pushnumber(L, static_cast<double>(n));
  }
  lua_pushnil(L);
}

// The text, or what the step's map has for it.
void push_found(lua_State* L, const Look& look, std::optional<std::string_view> found, int values) {
  if (!found) return lua_pushnil(L);
  if (!look.mapped) return push(L, *found);
  const auto at = std::lower_bound(look.words.begin(), look.words.end(), *found,
                                   [](const auto& entry, std::string_view word) { return entry.first < word; });
  if (at == look.words.end() || at->first != *found) return lua_pushnil(L);
  lua_rawgeti(L, values, at->second);
}

void push_header_look(lua_State* L, const Look& look, std::optional<std::string_view> value, int values) {
  switch (look.step) {
    case hasheader: return lua_pushboolean(L, value.has_value());
    case headerint: return push_integer(L, value);
    case headeris: return lua_pushboolean(L, value == look.text);
    default: return push_found(L, look, value, values);
  }
}

void look_at(lua_State* L, const RequestObject& r, const Look& look, int values) {
  const auto boolean = [L](bool b) { lua_pushboolean(L, b); };
  switch (look.step) {
    case method: return push_found(L, look, proxy::name(r.its_method()), values);
    case methodis: return boolean(proxy::name(r.its_method()) == look.text);
    case pathsegment: return push_found(L, look, r.its_path().empty() ? std::nullopt : piece(r.its_path().substr(1), "/", look.number), values);
    case pathbegin: return boolean(r.its_path().starts_with(look.text));
    case pathis: return boolean(r.its_path() == look.text);
    case param: {
      std::optional<std::string_view> found;
      for (const auto& c : r.captured)
        if (c.name == look.name) found = c.value;
      return push_found(L, look, found, values);
    }
    case sepkey: return push_found(L, look, piece(r.its_key(), look.separator, look.number), values);
    case keybegin: return boolean(r.its_key().starts_with(look.text));
    case keyis: return boolean(r.its_key() == look.text);
    case hasquery: return boolean(query_of(r, look.name).has_value());
    case query: return push_found(L, look, query_of(r, look.name), values);
    case queryint: return push_integer(L, query_of(r, look.name));
    case queryis: return boolean(query_of(r, look.name) == look.text);
    // A list may be spread over several lines. Source: RFC 9110, 5.3.
    case headertoken: {
      bool found = false;
      if (r.owned)
        for (std::size_t i = 0; i < r.header_count; ++i) found |= same_field(r.headers[i].name, look.name) && has_token(r.headers[i].value, look.text);
      else
        for (const proxy::Header& h : r.live->headers) found |= same_field(h.name, look.name) && has_token(h.value, look.text);
      return boolean(found);
    }
    default: return push_header_look(L, look, header_of(r, look.name), values);
  }
}

void look_at(lua_State* L, const ResponseObject& r, const Look& look, int values) {
  switch (look.step) {
    case status: return lua_pushnumber(L, r.status());
    case statusis: return lua_pushboolean(L, r.status() == look.number);
    case statusclass: return lua_pushnumber(L, r.status() / 100);
    case erroris: return lua_pushboolean(L, r.error_name() == look.text);
    case headertoken: {
      bool found = false;
      r.each_header([&](std::string_view name, std::string_view value) { found |= same_field(name, look.name) && has_token(value, look.text); });
      return lua_pushboolean(L, found);
    }
    default: {
      HeaderRoom room;
      return push_header_look(L, look, r.header(look.name, room), values);
    }
  }
}

// inspector(request or response): the results of all steps.
int inspect(lua_State* L) {
  const Inspector* in = find_boxed<Inspector>(L, 1, Kind::inspector);
  if (!in) return luaL_error(L, "an inspector expected");
  luaL_checkstack(L, static_cast<int>(in->looks.size()) + 4, "too many steps");
  lua_settop(L, 2);
  lua_getfenv(L, 1);
  if (in->of_request) {
    const RequestObject& r = check_boxed<RequestObject>(L, 2, Kind::request, "a request");
    if (!r.alive) return luaL_error(L, "a request that is no more: it is answered");
    for (const Look& look : in->looks) look_at(L, r, look, 3);
  } else {
    const ResponseObject& r = check_boxed<ResponseObject>(L, 2, Kind::response, "a response");
    if (!r.alive) return luaL_error(L, "a response that is no more: its request is answered");
    for (const Look& look : in->looks) look_at(L, r, look, 3);
  }
  return static_cast<int>(in->looks.size());
}

int forget(lua_State* L) {
  Box* box = box_at(L, 1);
  if (box && box->kind == Kind::inspector) delete static_cast<Inspector*>(std::exchange(box->object, nullptr));
  return 0;
}

// The map at the top: its values go into the table at `values`, its words into the step. Raises.
void read_map(lua_State* L, int values, Words& words) {
  for (lua_pushnil(L); lua_next(L, -2) != 0;) {
    if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "the keys of a step's map are strings");
    const int at = static_cast<int>(lua_objlen(L, values)) + 1;
    words.emplace_back(text_at(L, -2), at);
    lua_rawseti(L, values, at);
  }
  std::sort(words.begin(), words.end());
}

// req_inspector_new({t = ...}, ...)
int make(lua_State* L, bool request, const char* what) {
  const int n = lua_gettop(L);
  if (n == 0) return luaL_error(L, "%s: no steps", what);
  if (n > 100) return luaL_error(L, "%s: more than 100 steps", what);
  lua_newtable(L);                                     // n + 1: the values of maps
  Box* box = push_box(L, Kind::inspector, nullptr);    // n + 2
  box->object = new Inspector{request, {}};
  auto& looks = static_cast<Inspector*>(box->object)->looks;
  lua_pushvalue(L, n + 1);
  lua_setfenv(L, n + 2);
  for (int i = 1; i <= n; ++i) {
    StepFields f;
    const auto step = static_cast<Step>(read_step(L, i, kSteps, request, what, f));
    if ((step == pathsegment || step == sepkey) && f.has_number && f.number < 1) return luaL_error(L, "%s: pieces count from 1", what);
    looks.push_back({step, f.name, f.text, f.has_separator ? f.separator : "/", f.has_number ? f.number : 1, f.has_map, {}});
    if (!f.has_map) continue;
    lua_getfield(L, i, "map");
    read_map(L, n + 1, looks.back().words);
    lua_pop(L, 1);
  }
  return 1;
}
int req_inspector_new(lua_State* L) { return make(L, true, "req_inspector_new"); }
int res_inspector_new(lua_State* L) { return make(L, false, "res_inspector_new"); }

}  // namespace

int read_step(lua_State* L, int index, std::span<const StepType> types, bool request, const char* what, StepFields& out) {
  // No guard of the stack here: it would take the sentence of an error off it.
  if (!lua_istable(L, index)) luaL_error(L, "%s: step %d is a table, got a %s", what, index, luaL_typename(L, index));
  lua_getfield(L, index, "t");
  if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "%s: step %d has no type `t`", what, index);
  out.type = text_at(L, -1);
  int found = -1;
  std::vector<std::string> known;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!(request ? types[i].of_request : types[i].of_response)) continue;
    known.emplace_back(types[i].name);
    if (out.type == types[i].name) found = static_cast<int>(i);
  }
  if (found < 0) {
    const std::string near = nearest(out.type, known);
    luaL_error(L, "%s: there is no step `%s`%s", what, out.type.c_str(), near.empty() ? "" : ("; did you mean `" + near + "`?").c_str());
  }
  const std::string_view fields = types[static_cast<std::size_t>(found)].fields;
  const auto may = [&](char c) { return fields.find(c) != fields.npos || fields.find(static_cast<char>(c - 'a' + 'A')) != fields.npos; };
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string field(lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view("?"));
    const bool is_text = lua_type(L, -1) == LUA_TSTRING;
    const auto text = [&](std::string& into, bool& has) {
      if (!is_text) luaL_error(L, "%s: `%s` of step `%s` is a string", what, field.c_str(), out.type.c_str());
      into = text_at(L, -1);
      has = true;
    };
    if (field == "t") continue;
    if (field == "name" && may('n')) {
      text(out.name, out.has_name);
    } else if (field == "str" && may('s')) {
      text(out.text, out.has_text);
    } else if (field == "sep" && may('e')) {
      text(out.separator, out.has_separator);
      if (out.separator.empty()) luaL_error(L, "%s: an empty `sep`", what);
    } else if ((field == "n" || field == "pos" || field == "idx" || field == "code") && may('i')) {
      const double n = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
      if (!(n >= 0 && n <= 1000) || n != static_cast<int>(n))
        luaL_error(L, "%s: `%s` of step `%s` is a whole number", what, field.c_str(), out.type.c_str());
      out.number = static_cast<int>(n);
      out.has_number = true;
    } else if (field == "map" && may('m')) {
      if (!lua_istable(L, -1)) luaL_error(L, "%s: `map` of step `%s` is a table", what, out.type.c_str());
      out.has_map = true;
    } else {
      luaL_error(L, "%s: step `%s` has no `%s`", what, out.type.c_str(), field.c_str());
    }
  }
  const auto need = [&](char c, bool has, const char* field) {
    if (fields.find(c) != fields.npos && !has) luaL_error(L, "%s: step `%s` needs `%s`", what, out.type.c_str(), field);
  };
  need('N', out.has_name, "name");
  need('S', out.has_text, "str");
  need('I', out.has_number, out.type == "pathsegment" ? "n" : out.type.starts_with("status") ? "code" : "idx");
  lua_pop(L, 1);   // t
  return found;
}

std::optional<std::string_view> header_of(const RequestObject& r, std::string_view name) {
  if (!r.owned) return r.live->header(name);
  for (std::size_t i = 0; i < r.header_count; ++i)
    if (same_field(r.headers[i].name, name)) return r.headers[i].value;
  return std::nullopt;
}

std::optional<std::string_view> query_of(const RequestObject& r, std::string_view name) {
  if (!r.owned) return r.live->parameter(name);
  for (std::size_t i = 0; i < r.query_count; ++i)
    if (r.query[i].name == name) return r.query[i].value;
  return std::nullopt;
}

void open_inspectors(lua_State* L) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
  static constexpr luaL_Reg kPublic[] = {{"req_inspector_new", req_inspector_new}, {"res_inspector_new", res_inspector_new}, {nullptr, nullptr}};
  make_class(L, Kind::inspector, "sluice.inspector", kNone);
  lua_rawgeti(L, LUA_REGISTRYINDEX, static_cast<int>(Kind::inspector));
  lua_pushcfunction(L, inspect);
  lua_setfield(L, -2, "__call");
  lua_pushcfunction(L, forget);
  lua_setfield(L, -2, "__gc");
  lua_getglobal(L, "sluice");
  luaL_setfuncs(L, kPublic, 0);
}

}  // namespace sluice::lua
