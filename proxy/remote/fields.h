// Header fields that belong to one connection and not to the message: what a proxy takes off, both ways.
#pragma once
#include <string_view>
#include <vector>

#include "proxy/ascii.h"
#include "proxy/request.h"

namespace sluice::proxy {

// Source: RFC 9110, 7.6.1; Proxy-Connection and Keep-Alive are of older clients.
constexpr bool is_hop_field(std::string_view name) {
  switch (name.size()) {
    case 2: return same_text(name, "te");
    case 7: return same_text(name, "trailer") || same_text(name, "upgrade");
    case 10: return same_text(name, "connection") || same_text(name, "keep-alive");
    case 16: return same_text(name, "proxy-connection");
    case 17: return same_text(name, "transfer-encoding");
    case 19: return same_text(name, "proxy-authorization");
    default: return false;
  }
}

// Whether a Connection field of `fields` names it: it is of that connection alone, too.
inline bool named_by_connection(const std::vector<Header>& fields, std::string_view name) {
  bool named = false;
  for (const Header& f : fields)
    if (f.name.size() == 10 && same_text(f.name, "connection"))
      each_token(f.value, [&](std::string_view token) { named = named || equal_text(token, name); });
  return named;
}

// A name of RFC 9110's token characters.
bool is_field_name(std::string_view text);
// Without control bytes, the tab apart.
bool is_field_text(std::string_view text);

}  // namespace sluice::proxy
