// The tables that Lua code finds: `sluice` in both stages, and `core`, which only the route library is handed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lua/commons.h"
#include "lua/home.h"
#include "lua/runtime.h"
#include "lua/sandbox.h"
#include "lua/shared_api.h"
#include "lua/value.h"
#include "proxy/config.h"

namespace sluice::lua {

// A backend as sluice.backend{} said it, until a pool takes it.
struct BackendDraft {
  proxy::BackendSpec spec;
  std::uint32_t weight = 1;
};

struct SourceText;

// What the config VM collects. Thread: control.
struct Draft {
  proxy::Settings settings;
  std::vector<proxy::StoreSpec> stores;
  std::vector<PoolSpec> pools;
  std::vector<std::unique_ptr<BackendDraft>> backends;      // what descriptions point at
  std::string folder;                            // of the file, with its slash, or empty
  bool closed = false;                           // the file has been read: nothing more is declared
  const SourceText* source = nullptr;            // the file itself, while it is read
  Commons* commons = nullptr;
  Home home;                                     // of the config VM
  std::vector<SharedSpec> shared;
  std::vector<std::shared_ptr<Limiter>> limiters;
  std::vector<std::shared_ptr<Limiter>> own_limiters;   // of this VM's crons
  std::vector<std::shared_ptr<UserStat>> stats;
  std::vector<std::unique_ptr<std::string>> names;          // what descriptions point at
  std::vector<std::unique_ptr<std::uint32_t>> indices;
};

// What core.fail() needs to name a line.
struct SourceText {
  std::string file;                              // as errors name it: without folders
  std::string text;
};

// Each pushes nothing and sets `sluice` (and, for the route library, leaves `core` on the stack).
void open_common(lua_State* L, const SourceText& source, const Home& home);
// core.read_file(), of files beside the config.
void open_file_reader(lua_State* L, const Sources& sources, Sources* read);
void open_config_stage(lua_State* L, Draft& draft);
void open_backends(lua_State* L, Draft& draft);  // sluice.backend and core.backend; sluice.pool and core.pool
void open_worker_stage(lua_State* L, Runtime& runtime, std::shared_ptr<const proxy::StoreSet> stores);

// Pushes the table `core`, made by open_common().
void push_core(lua_State* L);
void set_functions(lua_State* L, const luaL_Reg* functions, const void* upvalue);   // into the table at the top

void open_routers(lua_State* L, Runtime& runtime);
// What C++ has of handlers: core.static(), core.cache().
void open_handlers(lua_State* L, Runtime& runtime);

// The line, from `from` on, where `name` is given a value; `from` when there is none. Shape: lines count from 1.
int line_of(std::string_view text, std::string_view name, int from);
std::string_view line_text(std::string_view text, int line);

}  // namespace sluice::lua
