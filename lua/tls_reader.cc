#include "lua/tls_reader.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "lua/library.h"
#include "lua/value.h"

namespace sluice::lua {
namespace {

using proxy::TlsFile;
using proxy::TlsSettings;

constexpr const char* kFields[] = {"cert", "key", "client_ca", "verify", "min_version", "ciphers", "names"};

// "example.com", "*.example.com": labels of letters, digits and hyphens.
bool is_host(std::string_view name) {
  if (name.starts_with("*.")) name.remove_prefix(2);
  if (name.empty() || name.size() > 253 || name.front() == '.' || name.back() == '.' || name.find("..") != name.npos) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; });
}

std::optional<std::string> read_text(lua_State* L, std::string_view field, std::string& out) {
  if (lua_type(L, -1) != LUA_TSTRING || text_at(L, -1).empty()) return "`" + std::string(field) + "` of `tls` is a string that is not empty";
  out = text_at(L, -1);
  return std::nullopt;
}

std::optional<std::string> read_choice(lua_State* L, std::string_view field, const std::vector<std::string>& choices, std::size_t& out) {
  std::string list, got = lua_type(L, -1) == LUA_TSTRING ? "\"" + std::string(text_at(L, -1)) + "\"" : std::string("a ") + luaL_typename(L, -1);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (lua_type(L, -1) == LUA_TSTRING && text_at(L, -1) == choices[i]) {
      out = i;
      return std::nullopt;
    }
    list += (i == 0 ? "\"" : i + 1 == choices.size() ? " or \"" : ", \"") + choices[i] + "\"";
  }
  return "`" + std::string(field) + "` of `tls` is " + list + ", got " + got;
}

// names = { ["example.com"] = { cert =, key = } }
std::optional<std::string> read_names(lua_State* L, TlsSettings& out, std::string& field) {
  if (!lua_istable(L, -1)) return std::string("`names` of `tls` is { [\"example.com\"] = { cert =, key = } }, got a ") + luaL_typename(L, -1);
  const int at = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, at) != 0; lua_pop(L, 1)) {
    TlsSettings::Named& named = out.names.emplace_back();
    if (lua_type(L, -2) == LUA_TSTRING) named.name = text_at(L, -2);
    if (!is_host(named.name)) return "`names` of `tls` are such as \"example.com\" or \"*.example.com\", in small letters, not `" + named.name + "`";
    if (!lua_istable(L, -1)) return "`names`: \"" + named.name + "\" needs { cert =, key = }";
    const int its = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, its) != 0; lua_pop(L, 1)) {
      const std::string_view of = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
      if (of != "cert" && of != "key") return "`names`: \"" + named.name + "\" has `cert` and `key`, not `" + std::string(of) + "`";
      if (auto why = read_text(L, of, (of == "cert" ? named.cert : named.key).path)) return why;
    }
    if (named.cert.path.empty() || named.key.path.empty()) return "`names`: \"" + named.name + "\" needs both `cert` and `key`";
  }
  // A table has no order; a test of two generations for equality wants one.
  std::sort(out.names.begin(), out.names.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return std::nullopt;
}

std::optional<std::string> read_field(lua_State* L, std::string& field, TlsSettings& out, bool& verifies) {
  std::size_t choice = 0;
  if (field == "cert") return read_text(L, field, out.cert.path);
  if (field == "key") return read_text(L, field, out.key.path);
  if (field == "client_ca") return read_text(L, field, out.client_ca.path);
  if (field == "ciphers") return read_text(L, field, out.ciphers);
  if (field == "names") return read_names(L, out, field);
  if (field == "verify") {
    auto why = read_choice(L, field, {"none", "optional", "required"}, choice);
    out.verify = static_cast<TlsSettings::Verify>(choice);
    verifies = true;
    return why;
  }
  if (field == "min_version") {
    auto why = read_choice(L, field, {"1.2", "1.3"}, choice);
    out.least = static_cast<TlsSettings::Version>(choice);
    return why;
  }
  const std::string near = nearest(field, {std::begin(kFields), std::end(kFields)});
  return "`tls` of a listener has no `" + field + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?");
}

// The line, from `from` on, that has the path in quotes; `from` when it was put together.
int line_with(std::string_view text, std::string_view path, int from) {
  for (int line = from;; ++line) {
    const std::string_view t = line_text(text, line);
    if (t.data() == nullptr) return from;
    for (std::size_t at = t.find(path); at != t.npos; at = t.find(path, at + 1)) {
      const std::size_t end = at + path.size();
      if (at > 0 && end < t.size() && t[at - 1] == t[end] && (t[end] == '"' || t[end] == '\'')) return line;
    }
  }
}

}  // namespace

std::optional<std::string> read_tls(lua_State* L, TlsSettings& out, std::string& field) {
  if (!lua_istable(L, -1)) return std::string("`tls` of a listener is { cert =, key = }, got a ") + luaL_typename(L, -1);
  bool verifies = false;
  const int at = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, at) != 0; lua_pop(L, 1)) {
    field = lua_type(L, -2) == LUA_TSTRING ? std::string(text_at(L, -2)) : std::string();
    if (auto why = read_field(L, field, out, verifies)) return why;
  }
  field = "tls";
  if (out.cert.path.empty() || out.key.path.empty()) return std::string("`tls` needs both `cert` and `key`, files of PEM");
  // Whoever names an authority wants it to be heard.
  if (!verifies && !out.client_ca.path.empty()) out.verify = TlsSettings::Verify::required;
  field = "verify";
  if (out.client_ca.path.empty() && out.verify != TlsSettings::Verify::none)
    return std::string("`verify` needs `client_ca`, a file of the certificates that sign clients'");
  return std::nullopt;
}

void place_tls(proxy::Settings& settings, std::string_view folder, std::string_view file, std::string_view text, int from) {
  const auto place = [&](TlsFile& f) {
    if (f.path.empty() || !f.place.empty()) return;
    f.place = std::string(folder).append(file).append(":").append(std::to_string(line_with(text, f.path, from)));
    if (f.path.front() != '/') f.path.insert(0, folder);
  };
  const auto place_all = [&](std::optional<TlsSettings>& tls) {
    if (!tls) return;
    for (TlsFile* f : {&tls->cert, &tls->key, &tls->client_ca}) place(*f);
    for (TlsSettings::Named& n : tls->names)
      for (TlsFile* f : {&n.cert, &n.key}) place(*f);
  };
  place_all(settings.tls);
  for (proxy::Settings::Listener& l : settings.more_listeners) place_all(l.tls);
}

}  // namespace sluice::lua
