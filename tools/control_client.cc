#include "tools/control_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "proxy/unix_socket.h"

namespace sluice::tools {
namespace {

std::int64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000;
}

}  // namespace

Result<std::unique_ptr<ControlClient>, std::string> ControlClient::connect(const std::string& path) {
  auto fd = proxy::connect_unix(path);
  if (fd) return std::unique_ptr<ControlClient>(new ControlClient(*fd));
  std::string why = fd.error();
  if (errno == ENOENT) why += "; no server has its control socket there";
  if (errno == ECONNREFUSED) why += "; the server that had it has ended";
  return why;
}

ControlClient::~ControlClient() { close(fd_); }

bool ControlClient::send(std::string_view line) {
  std::string bytes(line);
  bytes.push_back('\n');
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

ControlClient::Heard ControlClient::hear(std::string& line, int timeout_ms) {
  const std::int64_t deadline = now_ms() + timeout_ms;
  std::size_t looked = at_;
  for (;;) {
    const std::size_t end = in_.find('\n', looked);
    if (end != in_.npos) {
      line.assign(in_, at_, end - at_);
      at_ = end + 1;
      return Heard::line;
    }
    in_.erase(0, at_);
    at_ = 0;
    looked = in_.size();
    const int left = timeout_ms < 0 ? -1 : static_cast<int>(std::max<std::int64_t>(deadline - now_ms(), 0));
    pollfd p{fd_, POLLIN, 0};
    const int ready = poll(&p, 1, left);
    if (ready == 0) return Heard::late;
    if (ready < 0) continue;                     // a signal
    std::array<char, 65'536> bytes;
    const ssize_t n = recv(fd_, bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Heard::end;
    in_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace sluice::tools
