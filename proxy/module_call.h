// The module interface, in the words of HTTP on one side and of the engine on the other.
//
// Whoever asks a store goes through here: the module route with a client's request, Lua with one that a script made.
#pragma once
#include <span>
#include <string_view>

#include "proxy/engine.h"
#include "proxy/request.h"
#include "proxy/response.h"

namespace sluice::proxy {

// A request to a module, wherever it comes from. Life: views and `body` are the caller's, good during the call.
struct ModuleRequest {
  Method method = Method::get;
  std::string_view path;                  // behind the mount and the store's name: "/views/total"
  std::span<const Parameter> query;
  std::span<const Header> headers;        // looked at for conditions only
  const Buffer* body = nullptr;           // nullptr or empty: none
  bool has_length = false;                // the client said how long its body is, if only that there is none
};

// As the sender of `request`, who has it whole.
ModuleRequest module_request(const Request& request, std::string_view path);

// Fills `call` (all but what the engine resolves), or answers at once.
// Errors: false: `out` is the answer: OPTIONS, 404 route, 405 with the exact Allow, 411, 428, 400 for a name, a condition
//         or a body that cannot be. What needs the module's own knowledge (no_view, query, keyed, ...) is left to
//         Engine::prepare. Never allocates on success.
// Life:   `call` points into what `request` points to.
// Source: design http.md, "Module interface".
bool make_call(Call& call, Response& out, const StorePtr& store, const ModuleRequest& request);

// What a pool hashes to pick a store: the object's KEY; of a view or an input the value of its first parameter that is
// not of paging (`user` in ?user=7&from=0), so that what is written and read about one user meets in one store; without
// any, the NAME. Empty when the path leads nowhere.
std::string_view distribution_key(std::string_view path, std::span<const Parameter> query);

// 1 to 64 of A-Z a-z 0-9 - _: what keys, views, inputs and stores are called.
bool is_name(std::string_view text);

}  // namespace sluice::proxy
