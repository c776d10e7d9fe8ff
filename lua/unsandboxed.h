// What a config has beyond the sandbox once it says settings { lua_sandbox = false }: files, processes, modules of Lua and C.
//
// io, os but exit and setlocale, package with its paths, ffi (by require), dofile, loadfile, getfenv, setfenv, and of debug
// what reads: getinfo, getlocal, getupvalue. Still gone, since nobody needs them and each breaks what the server relies
// on: os.exit (it would leave requests unanswered), os.setlocale (of all threads), jit, load() of bytecode, newproxy (its finalizers
// run between requests), and of debug what writes or reaches the registry, or takes the watchdog's hook away.
#pragma once
#include "lua/state.h"

namespace sluice::lua {

// Behind open_sandbox(). require() finds what is beside the config first, as before. Opening it again does nothing.
void open_unsandboxed(lua_State* L);

}  // namespace sluice::lua
