// Header and query fields between Lua and HTTP: names compared, values written, lines checked.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "lua/state.h"

namespace sluice::lua {

// Case does not matter. Source: RFC 9110, 5.1.
bool same_field(std::string_view a, std::string_view b);
bool valid_field_name(std::string_view name);             // a token. Source: RFC 9110, 5.6.2
bool valid_field_value(std::string_view value);           // no control bytes but a tab
// Fields that the writer of HTTP owns: a route that set them could break the framing.
bool is_framing_field(std::string_view name);
void push_lower(lua_State* L, std::string_view name);

// A Lua string, number or boolean as text; absent for other types. Shape: `number` holds 40 bytes.
std::optional<std::string_view> field_value(lua_State* L, int index, char* number);

}  // namespace sluice::lua
