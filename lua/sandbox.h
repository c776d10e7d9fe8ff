// What Lua's own library is allowed to do in a config: compute, and nothing that reaches the process or the disk.
//
// There: base, string, table, math, bit, coroutine, os.time/date/clock/difftime/getenv, debug.traceback, require of Lua
// files beside the config (as they were when the generation was read). Gone: io, os.execute/exit/remove/..., package,
// ffi, jit, the rest of debug, dofile, loadfile, newproxy, getfenv, setfenv, string.dump, bytecode.
#pragma once
#include <map>
#include <string>

#include "lua/state.h"

namespace sluice::lua {

// The text of every file that was read beside the config, by module name or "file NAME", so that all VMs of a generation run the same.
// Thread: control. Frozen once the config VM has run.
struct Sources {
  std::string folder;                         // of the config file, with its slash; empty: no require()
  std::map<std::string, std::string> text;
  bool frozen = false;                        // workers read it: a cron's require() adds nothing any more
};

// The registry's table of the coroutines that routes run in: a yield there is an error.
inline constexpr const char* kRouteCoroutines = "sluice.route_coroutines";
void open_coroutines(lua_State* L);

// Opens what is allowed. require() finds what is in `sources`; with `read`, which is then the same, it reads files into it.
// Life: both outlive the VM.
void open_sandbox(lua_State* L, const Sources& sources, Sources* read);

// Pushes read_file(name): the text of a file beside the config, or nil and why not. With `read` it reads, and keeps what it
// read; else it finds what was kept. Not for configs: the route library has it.
void push_file_reader(lua_State* L, const Sources& sources, Sources* read);

}  // namespace sluice::lua
