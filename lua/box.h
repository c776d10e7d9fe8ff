// How C++ objects look from Lua: a userdata with a mark and a pointer, made once and checked on every call.
//
// A size and a mark are a whole type check: the sandbox has no userdata of its own, and those that a config reaches
// without it (open files are of this size) begin with an address, which no mark is.
#pragma once
#include <cstdint>

#include "lua/state.h"

namespace sluice::lua {

enum class Kind : std::uint64_t {
  request = 0x51ce51ce51c30001, response, rctx, fgen, route, target, store_description, pool_description, handle_value,
  word_route, shared_table, inspector, mutator, limiter, limiter_description, backend_description,
};

struct Box {
  Kind kind;
  void* object;                  // nullptr: gone for good
};

// nullptr when the value there is something else.
inline Box* box_at(lua_State* L, int index) {
  // Null for what is no userdata; a light one has no size.
  void* const at = lua_touserdata(L, index);
  return at != nullptr && lua_objlen(L, index) == sizeof(Box) ? static_cast<Box*>(at) : nullptr;
}
template <class T>
T* find_boxed(lua_State* L, int index, Kind kind) {
  Box* box = box_at(L, index);
  return box && box->kind == kind ? static_cast<T*>(box->object) : nullptr;
}
// Raises a Lua error when argument `index` is not one. `what` reads as "a request".
template <class T>
T& check_boxed(lua_State* L, int index, Kind kind, const char* what) {
  Box* box = box_at(L, index);
  if (box == nullptr || box->kind != kind) {
    if (index == 1) luaL_error(L, "%s expected before the method, got %s: call it with a colon, object:method()", what, luaL_typename(L, 1));
    luaL_error(L, "%s expected as argument %d, got %s", what, index - 1, luaL_typename(L, index));
  }
  if (box->object == nullptr) luaL_error(L, "%s that is no more: it was part of a request that is answered", what);
  return *static_cast<T*>(box->object);
}

// Pushes a new userdata whose methods are those of the registry's table `kind`.
Box* push_box(lua_State* L, Kind kind, void* object);
// Makes that table. The list ends with a null name; each method has `upvalue` as its first.
void make_class(lua_State* L, Kind kind, const char* name, const luaL_Reg* methods, const void* upvalue = nullptr);

}  // namespace sluice::lua
