#include "proxy/test_control.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <system_error>

namespace sluice::proxy {
namespace {

constexpr std::uint64_t kClockMax = std::uint64_t{1} << 53;   // what a number holds exactly

std::string_view next_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

Result<std::unique_ptr<TestControl>, std::string> TestControl::open(const std::string& path) {
  auto socket = UnixSocket::open(path, UnixSocket::Kind::datagram);
  if (!socket) return "test control " + socket.error();
  return std::unique_ptr<TestControl>(new TestControl(*std::move(socket)));
}

void TestControl::hear(EngineControl& engine) {
  std::array<char, 512> asked;
  for (;;) {
    sockaddr_un from{};
    socklen_t from_size = sizeof from;
    const ssize_t size = recvfrom(fd(), asked.data(), asked.size(), 0, reinterpret_cast<sockaddr*>(&from), &from_size);
    if (size < 0) return;
    std::string_view line(asked.data(), static_cast<std::size_t>(size));
    while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    const std::string answered = answer(line, engine);
    // Who has no address, or has gone, hears nothing.
    if (from_size > sizeof from.sun_family)
      sendto(fd(), answered.data(), answered.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&from), from_size);
  }
}

std::string TestControl::answer(std::string_view line, EngineControl& engine) {
  const std::string_view what = next_word(line);
  if (what == "clock") {
    std::uint64_t ms = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), ms);
    if (error != std::errc() || end != line.data() + line.size() || ms > kClockMax)
      return "error: a clock is set to a whole number of ms";
    if (ms < clock_ms_.load()) return "error: the clock is at " + std::to_string(clock_ms_.load()) + " and does not go back";
    clock_ms_.store(ms);
    return "ok";
  }
  if (what == "timer") {
    const std::string_view store = next_word(line);
    const Result<void, std::string> ran = engine.run_timer(store, line);
    return ran ? "ok" : "error: " + ran.error();
  }
  return "error: say `clock MS` or `timer STORE NAME`";
}

}  // namespace sluice::proxy
