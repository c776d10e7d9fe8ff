// One request to a module, from the bytes of HTTP to its answer, through the server's own parts: its parser, its checks
// of methods and conditions, its statuses. Who answers the call is up to the caller.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/engine.h"
#include "tools/calls.h"

namespace sluice::tools {

using Headers = std::vector<std::pair<std::string, std::string>>;

// Takes the call and fills the answer. Life: both are good until it returns.
using Answering = std::function<void(const proxy::Call& call, proxy::Answer& answer)>;

// `own_words`, looked at after `answering`: what it answered is the module's own words, not a line of the server's. What
// the server refuses by itself, and all that succeeds, is known here.
Answer call_over_http(std::string_view method, std::string_view target, const Headers& headers, std::string_view body,
                      const proxy::StorePtr& store, const bool& own_words, const Answering& answering);

// All of a body, wherever its bytes are.
std::string bytes_of(const proxy::Body& body);

}  // namespace sluice::tools
