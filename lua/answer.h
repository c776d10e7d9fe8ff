// What a route returned, turned into a response.
#pragma once
#include <string>

#include "lua/api.h"
#include "proxy/response.h"

namespace sluice::lua {

// Reads the values on the stack of `L` (all of them), and fills `out`, which is reset.
// Shape:  a response object (its body moves, uncopied); a string (200); a status alone, or with a body, and headers;
//         a table {status=, body=, headers=}.
// Errors: a sentence for the log; `out` is left reset.
bool read_answer(lua_State* L, proxy::Response& out, std::string& why);

}  // namespace sluice::lua
