// Inspectors and mutators: questions about a request or response, and edits of one, that are read once at load and then
// make no Lua strings but those that are asked for.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lua/request_object.h"
#include "lua/response_object.h"
#include "lua/state.h"

namespace sluice::lua {

// Registers sluice.req_inspector_new, res_inspector_new, req_mutator_new and res_mutator_new.
// Life: what they return is the collector's; they may be made at any time.
void open_inspectors(lua_State* L);
void open_mutators(lua_State* L);

// What a step's table says: {t = "header", name = "x-user", map = { ann = 1 }}.
struct StepFields {
  std::string type, name, text, separator;
  int number = 0;                    // n, pos, idx or code
  bool has_name = false, has_text = false, has_number = false, has_separator = false, has_map = false;
};

// One kind of step: its name, whether requests and responses have it, and which fields it needs (capitals) or may have
// (small): N name, S str, E sep, I n, pos, idx or code, M map.
struct StepType {
  const char* name;
  bool of_request, of_response;
  const char* fields;
};

// Reads the table at `index` as a step of one of `types`; what it is called in errors is `what`. Raises. Returns which.
int read_step(lua_State* L, int index, std::span<const StepType> types, bool request, const char* what, StepFields& out);

std::optional<std::string_view> header_of(const RequestObject& r, std::string_view name);
std::optional<std::string_view> query_of(const RequestObject& r, std::string_view name);

}  // namespace sluice::lua
