// settings{}: names, units and ranges between a config file and proxy::Settings.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lua/state.h"
#include "proxy/settings.h"

namespace sluice::lua {

struct SettingProblem {
  std::string name;              // of the setting, to find its line
  std::string sentence;
};

// Reads the table at `index` into `out`; what it does not name stays.
// Units: sizes are numbers of bytes or "64KiB", "64MiB", "1GiB"; times are seconds.
std::optional<SettingProblem> read_settings(lua_State* L, int index, proxy::Settings& out);

// All names, sorted: what documentation is checked against.
std::vector<std::string> setting_names();
// "64MiB", "512", 4096 (a number as text). Absent when it is neither.
std::optional<std::uint64_t> read_size(std::string_view text);

}  // namespace sluice::lua
