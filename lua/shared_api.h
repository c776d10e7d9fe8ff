// `sluice.shared`: the shared tables that a config declares, by their names.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lua/home.h"
#include "lua/shared_table.h"
#include "lua/state.h"

namespace sluice::lua {

struct SharedSpec {
  std::string name;
  std::uint64_t bytes = 0;
  std::shared_ptr<SharedTable> table;
};

// Sets `sluice.shared`, which is empty, and its methods.
void open_shared(lua_State* L, const Home& home);
// Life: the table's is the caller's to see to.
void add_shared(lua_State* L, const SharedSpec& spec);

}  // namespace sluice::lua
