// What functions of the config stage begin and end with: the draft that they add to, and an error with the caller's line.
#pragma once
#include <string_view>

#include "lua/library.h"

namespace sluice::lua {

// The draft behind a function that was set with it (set_functions). Errors: raises when the file has been read.
inline Draft& draft(lua_State* L, const char* what) {
  Draft& d = *static_cast<Draft*>(lua_touserdata(L, lua_upvalueindex(1)));
  if (d.closed) luaL_error(L, "%s: only while the config is read", what);
  return d;
}

// Does not return: nothing that has a destructor may be alive in the caller. `sentence` is of somebody who stays.
inline int raise(lua_State* L, std::string_view sentence) {
  luaL_where(L, 1);
  push(L, sentence);
  lua_concat(L, 2);
  return lua_error(L);
}

}  // namespace sluice::lua
