// A listener's `tls = {...}`: names, choices and files between a config and proxy::TlsSettings.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "lua/state.h"
#include "proxy/settings.h"

namespace sluice::lua {

// Reads the value at the top of the stack. What is wrong, and in `field` the name that stands on its line; nothing: it is right.
// Files are not looked at: proxy/tls.h does that when all else is known.
std::optional<std::string> read_tls(lua_State* L, proxy::TlsSettings& out, std::string& field);

// Makes the files of all listeners count from `folder`, and says where the config `file`, from line `from` on, names each.
void place_tls(proxy::Settings& settings, std::string_view folder, std::string_view file, std::string_view text, int from);

}  // namespace sluice::lua
