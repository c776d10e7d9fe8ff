// What leads to a route: stores, pools, generators, functions, as the calls that build routes take them.
#pragma once
#include <memory>

#include "lua/fgen.h"
#include "lua/runtime.h"

namespace sluice::lua {

// The runtime in the first upvalue. Raises once it serves; `what` is the call's name.
Runtime& building(lua_State* L, const char* what);
// Pushes it.
Fgen& new_fgen(lua_State* L, Runtime& runtime);
Target* push_target(lua_State* L, Runtime& runtime, std::unique_ptr<Target> target);
// A function in a generator's place: it answers requests itself, in every slot.
Fgen& wrap_function(lua_State* L, Runtime& runtime, int index, const char* name);
// Of a store, a pool, a route or a ready generator; raises for others.
Target* target_at(lua_State* L, Runtime& runtime, int index, const char* what);
// What answers requests: a route or routes by method. A store or pool does by the module interface.
Target* answering(lua_State* L, Runtime& runtime, int index, const char* what);
// The same as one route: a map of methods chooses when it is asked.
proxy::Route& one_route(lua_State* L, Runtime& runtime, int index, const char* what);
// A route of C++ under that name, as a value.
Target* push_route(lua_State* L, Runtime& runtime, std::unique_ptr<proxy::Route> route, const char* name);

}  // namespace sluice::lua
