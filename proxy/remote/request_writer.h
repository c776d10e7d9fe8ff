// A request as it goes on to a backend: the same message, with what belongs to each connection made anew.
#pragma once
#include <string>
#include <string_view>

#include "proxy/request.h"

namespace sluice::proxy {

// A request passed through so many nodes like this one goes round in a circle.
inline constexpr int kMostHops = 8;

// Appends the head, the empty line included; the body follows as it is. False: kMostHops; nothing was appended.
// Shape:  `path` is what is behind the mount, decoded; empty: "/". `host_line` is whole.
//         Target: as the client wrote it where that is known, else encoded anew. Kept: all fields but those of the connection
//         (RFC 9110, 7.6.1), Host, Content-Length and Expect. Said anew: Host, Content-Length, X-Forwarded-For (the client's
//         address behind what came), X-Forwarded-Host (the client's Host), Via.
// Source: RFC 9110, 7.6; RFC 9112, 3.2.1.
bool append_request_head(std::string& out, const Request& request, std::string_view path, std::string_view host_line);

// "/a%20b" for "/a b", in the path's alphabet; and a query of these parameters, with its `?` unless there are none.
void append_encoded_path(std::string& out, std::string_view path);
void append_encoded_query(std::string& out, std::span<const Parameter> query);

}  // namespace sluice::proxy
