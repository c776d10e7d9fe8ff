// What a PUT or DELETE asks of a document before it is changed: If-Match and If-None-Match.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "proxy/engine.h"
#include "proxy/request.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// No document is ever at this revision: the condition of an If-Match whose tags are none of ours.
inline constexpr std::uint64_t kNoRevision = std::numeric_limits<std::uint64_t>::max();

// Fills `condition`, `revision` and `more` of `call` from the header fields. Several lines of one field are one list.
// Shape:  PUT (`may_create`): exactly one of `If-None-Match: *` and an If-Match of entity tags; DELETE: the latter. Tags
//         that we could not have given (weak ones too: If-Match compares strongly) match nothing.
// Errors: Errc::condition, none is given; Errc::request, one that does not say it (`If-Match: *` included, which would
//         overwrite what the client has not seen), or both. `what` is the line for the client. Never allocates.
// Source: RFC 9110, 13.1.1, 13.1.2, 8.8.3; design http.md, "Module interface".
Result<void> read_condition(Call& call, std::span<const Header> headers, bool may_create);

}  // namespace sluice::proxy
