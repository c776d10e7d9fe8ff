#include "proxy/remote/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace sluice::proxy {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kHostBytes = 254;

std::string text_of(const sockaddr_storage& at) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (at.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(at);
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(in.sin_port));
  }
  const auto& in = reinterpret_cast<const sockaddr_in6&>(at);
  inet_ntop(AF_INET6, &in.sin6_addr, text.data(), text.size());
  return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(in.sin6_port));
}

Result<std::vector<SocketAddress>, std::string> unix_address(const BackendPlace& place) {
  SocketAddress a;
  auto& un = reinterpret_cast<sockaddr_un&>(a.storage);
  if (place.path.size() >= sizeof un.sun_path)
    return "the path of a Unix socket has at most " + std::to_string(sizeof un.sun_path - 1) + " bytes: " + place.path;
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, place.path.data(), place.path.size());
  a.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + place.path.size() + 1);
  a.text = place.text();
  std::vector<SocketAddress> all;
  all.push_back(std::move(a));
  return all;
}

}  // namespace

std::string BackendPlace::text() const {
  if (!path.empty()) return std::string(kUnix) + path;
  const bool six = host.find(':') != host.npos;
  return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<BackendPlace, std::string> read_place(std::string_view text) {
  BackendPlace place;
  if (text.starts_with(kUnix)) {
    place.path = text.substr(kUnix.size());
    if (place.path.empty()) return std::string("`unix:` needs the path of a socket behind it");
    return place;
  }
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == text.npos ? 0 : colon);
  const std::string_view port = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  unsigned number = 0;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
  bool good = !host.empty() && !port.empty() && read.ec == std::errc() && read.ptr == port.data() + port.size() && number >= 1 &&
              number <= 65535 && (bracketed || host.find(':') == host.npos) && host.size() <= kHostBytes;
  for (const char c : host) good = good && static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
  if (!good) return "a backend is \"HOST:PORT\", \"[::1]:PORT\" or \"unix:PATH\", not \"" + std::string(text) + "\"";
  place.host = host;
  place.port = static_cast<std::uint16_t>(number);
  return place;
}

Result<std::vector<SocketAddress>, std::string> resolve(const BackendPlace& place) {
  if (!place.path.empty()) return unix_address(place);
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &wanted, &found);
  if (error != 0) return "`" + place.host + "` is not found: " + gai_strerror(error);
  std::vector<SocketAddress> all;
  for (const addrinfo* a = found; a; a = a->ai_next) {
    if ((a->ai_family != AF_INET && a->ai_family != AF_INET6) || a->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress one;
    std::memcpy(&one.storage, a->ai_addr, a->ai_addrlen);
    one.size = a->ai_addrlen;
    one.text = text_of(one.storage);
    all.push_back(std::move(one));
  }
  freeaddrinfo(found);
  if (all.empty()) return "`" + place.host + "` has no address of IPv4 or IPv6";
  return all;
}

}  // namespace sluice::proxy
