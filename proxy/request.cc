#include "proxy/request.h"

#include "proxy/ascii.h"

namespace sluice::proxy {

std::string_view name(Method m) {
  constexpr std::array<std::string_view, kMethods> names{"GET",     "HEAD",  "POST",  "PUT",     "DELETE",
                                                         "OPTIONS", "PATCH", "TRACE", "CONNECT", "OTHER"};
  return names[static_cast<std::size_t>(m)];
}

std::optional<std::string_view> Request::header(std::string_view field) const {
  for (const Header& h : headers)
    if (equal_text(h.name, field)) return h.value;
  return std::nullopt;
}

std::optional<std::string_view> Request::parameter(std::string_view query_name) const {
  for (const Parameter& p : query)
    if (p.name == query_name) return p.value;
  return std::nullopt;
}

}  // namespace sluice::proxy
