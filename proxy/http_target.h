// A request target taken apart: form, path and query, percent-decoded once.
#pragma once
#include <string>
#include <string_view>

#include "proxy/request.h"
#include "vm/base/errc.h"

namespace sluice::proxy {

// What is wrong with a request. `status` 0: nothing.
// Shape: `line` is a literal without a line feed. `fatal`: its framing cannot be trusted, so nothing more is read.
struct Refusal {
  std::uint16_t status = 0;
  Errc code = Errc::none;
  const char* line = "";
  bool fatal = false;
};

// Fills `r.path` and `r.query` from `r.target` (`r.method` is set). Origin-form, absolute-form (http, https) and `*` for
// OPTIONS; no fragment, no dot segment, no encoded slash or control byte in the path; `+` is a space in the query.
// Life:   views point into the target, or into `arena` where something was encoded. `arena` is emptied first and never
//         grows beyond the target's size, so it moves at most once, before anything points into it.
// Source: RFC 9112, 3.2; RFC 3986, 2.1 and 3.3; application/x-www-form-urlencoded of the URL standard for `+`.
Refusal read_target(Request& r, std::string& arena);

}  // namespace sluice::proxy
