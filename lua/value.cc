#include "lua/value.h"

#include <algorithm>

#include "lua/box.h"
#include "lua/fields.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kDeepest = 60;

bool read_at(lua_State* L, int index, Value& out, std::string& why, std::string& path, std::vector<const void*>& above) {
  switch (lua_type(L, index)) {
    case LUA_TNIL: return true;
    case LUA_TBOOLEAN: out.held = lua_toboolean(L, index) != 0; return true;
    case LUA_TNUMBER: out.held = lua_tonumber(L, index); return true;
    case LUA_TSTRING: out.held = std::string(text_at(L, index)); return true;
    case LUA_TUSERDATA:
      if (const Box* box = box_at(L, index)) {
        if (box->kind == Kind::store_description) {
          out.held = Value::Store{static_cast<const std::string*>(box->object)->c_str()};
          return true;
        }
        if (box->kind == Kind::pool_description) {
          out.held = Value::Pool{*static_cast<const std::uint32_t*>(box->object)};
          return true;
        }
        if (box->kind == Kind::limiter_description) {
          out.held = Value::Limiter{*static_cast<const std::uint32_t*>(box->object)};
          return true;
        }
      }
      break;
    case LUA_TTABLE: {
      const void* self = lua_topointer(L, index);
      if (std::find(above.begin(), above.end(), self) != above.end()) {
        why = path + " contains itself, and a cycle cannot be copied to the workers";
        return false;
      }
      if (above.size() == kDeepest || lua_checkstack(L, 4) == 0) {
        why = path + " is nested too deeply to be copied to the workers";
        return false;
      }
      above.push_back(self);
      Value::Table table;
      const int at = index > 0 ? index : lua_gettop(L) + 1 + index;
      lua_pushnil(L);
      while (lua_next(L, at) != 0) {
        const std::size_t length = path.size();
        if (lua_type(L, -2) == LUA_TSTRING) {
          path.append(".").append(text_at(L, -2).substr(0, 60));
        } else if (lua_type(L, -2) == LUA_TNUMBER) {
          char number[40];
          path.append("[").append(field_value(L, -2, number).value_or("a number")).append("]");
        } else {
          why = path + " has a key that is a " + luaL_typename(L, -2) + ", which cannot be copied to the workers";
          lua_pop(L, 2);
          return false;
        }
        std::pair<Value, Value> entry;
        if (lua_type(L, -2) == LUA_TSTRING) entry.first.held = std::string(text_at(L, -2));
        else entry.first.held = lua_tonumber(L, -2);
        if (!read_at(L, lua_gettop(L), entry.second, why, path, above)) {
          lua_pop(L, 2);
          return false;
        }
        table.push_back(std::move(entry));
        path.resize(length);
        lua_pop(L, 1);
      }
      above.pop_back();
      out.held = std::move(table);
      return true;
    }
    default: break;
  }
  why = path + " is a " + luaL_typename(L, index) + ", which cannot be copied to the workers";
  return false;
}

}  // namespace

bool read_value(lua_State* L, int index, Value& out, std::string& why) {
  std::string path = "the value of sluice_config_pools()";
  std::vector<const void*> above;
  return read_at(L, index, out, why, path, above);
}

void push_value(lua_State* L, const Value& value, Resolver& resolver) {
  luaL_checkstack(L, 6, "a value that is nested too deeply");
  if (const auto* b = std::get_if<bool>(&value.held)) lua_pushboolean(L, *b);
  else if (const auto* n = std::get_if<double>(&value.held)) lua_pushnumber(L, *n);
  else if (const auto* s = std::get_if<std::string>(&value.held)) push(L, *s);
  else if (const auto* store = std::get_if<Value::Store>(&value.held)) resolver.push_store(L, store->name);
  else if (const auto* pool = std::get_if<Value::Pool>(&value.held)) resolver.push_pool(L, pool->index);
  else if (const auto* limiter = std::get_if<Value::Limiter>(&value.held)) resolver.push_limiter(L, limiter->index);
  else if (const auto* table = std::get_if<Value::Table>(&value.held)) {
    lua_createtable(L, 0, static_cast<int>(table->size()));
    for (const auto& [key, element] : *table) {
      push_value(L, key, resolver);
      push_value(L, element, resolver);
      lua_rawset(L, -3);
    }
  } else {
    lua_pushnil(L);
  }
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::vector<std::size_t> row;
  for (const std::string& k : known) {
    // Optimal string alignment without transpositions: names are short.
    row.resize(k.size() + 1);
    for (std::size_t j = 0; j <= k.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= k.size(); ++j) {
        const std::size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (word[i - 1] == k[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    if (row[k.size()] < least) {
      least = row[k.size()];
      best = k;
    }
  }
  return best;
}

}  // namespace sluice::lua
