#include "lua/credentials.h"

#include <algorithm>

#include "lua/box.h"
#include "lua/fields.h"
#include "lua/inspector.h"
#include "lua/random_seed.h"
#include "lua/runtime.h"
#include "lua/targets.h"
#include "vm/base/hash.h"

namespace sluice::lua {
namespace {

// Looks at every byte of both, which are as long as each other.
bool same_bytes(std::string_view a, std::string_view b) {
  unsigned char different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different = static_cast<unsigned char>(different | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return different == 0;
}

// upvalue 1: Credentials. Of the live request or one that the route made.
int accept(lua_State* L) {
  const auto& known = *static_cast<const Credentials*>(lua_touserdata(L, lua_upvalueindex(1)));
  const RequestObject& r = check_boxed<RequestObject>(L, 1, Kind::request, "a request");
  if (!r.alive) return luaL_error(L, "a request that is no more: it is answered");
  lua_pushboolean(L, known.accept(header_of(r, "authorization").value_or("")));
  return 1;
}

void read_list(lua_State* L, int index, Secrets& into) {
  luaL_checktype(L, index, LUA_TTABLE);
  for (int i = 1, n = static_cast<int>(lua_objlen(L, index)); i <= n; ++i) {
    lua_rawgeti(L, index, i);
    if (lua_type(L, -1) == LUA_TSTRING) into.add(text_at(L, -1));
    lua_pop(L, 1);
  }
}

}  // namespace

Secrets::Secrets() : seed_(random_seed()) {}

void Secrets::add(std::string_view secret) {
  const std::uint64_t hash = xxh3_64(secret, seed_);
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), hash, [](const Entry& e, std::uint64_t h) { return e.hash < h; });
  entries_.insert(at, {hash, std::string(secret)});
}

bool Secrets::has(std::string_view shown) const {
  const std::uint64_t hash = xxh3_64(shown, seed_);
  auto at = std::lower_bound(entries_.begin(), entries_.end(), hash, [](const Entry& e, std::uint64_t h) { return e.hash < h; });
  bool found = false;
  for (; at != entries_.end() && at->hash == hash; ++at) found |= at->text.size() == shown.size() && same_bytes(at->text, shown);
  return found;
}

bool Credentials::accept(std::string_view authorization) const {
  const std::size_t space = authorization.find(' ');
  if (space == authorization.npos) return false;
  const std::string_view scheme = authorization.substr(0, space);
  const std::size_t word = authorization.find_first_not_of(' ', space);
  if (word == authorization.npos) return false;
  if (same_field(scheme, "bearer")) return bearer.has(authorization.substr(word));
  return same_field(scheme, "basic") && basic.has(authorization.substr(word));
}

int credentials(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  runtime.credentials.push_back(std::make_unique<Credentials>());
  Credentials& made = *runtime.credentials.back();
  read_list(L, 1, made.bearer);
  read_list(L, 2, made.basic);
  push_pointer(L, &made);
  lua_pushcclosure(L, accept, 1);
  return 1;
}

}  // namespace sluice::lua
