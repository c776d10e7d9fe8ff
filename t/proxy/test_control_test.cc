// The socket through which tests of modules move time.
#include "proxy/test_control.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "t/proxy/place.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

class TimerEngine final : public EngineControl {
 public:
  Result<std::shared_ptr<const StoreSet>, std::string> check(std::span<const StoreSpec>) override { return std::string("no"); }
  Result<std::unique_ptr<StorePlan>, std::string> prepare(std::span<const StoreSpec>) override { return std::string("no"); }
  std::shared_ptr<const StoreSet> apply(std::unique_ptr<StorePlan>) override { return nullptr; }
  std::unique_ptr<Engine> worker(std::uint16_t, Inbox<EventPtr>&) override { return nullptr; }
  void stop() override {}
  Result<void, std::string> run_timer(std::string_view store, std::string_view timer) override {
    if (store != "shop") return "there is no store `" + std::string(store) + "`";
    ran.append(timer).push_back(' ');
    return {};
  }
  EngineCounters counters() const override { return {}; }
  std::string ran;
};

// A client with an address of its own.
class Asker {
 public:
  Asker(const std::string& own, const std::string& other) : fd_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    const sockaddr_un mine = address(own), theirs = address(other);
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&mine), sizeof mine) == 0);
    REQUIRE(connect(fd_, reinterpret_cast<const sockaddr*>(&theirs), sizeof theirs) == 0);
  }
  ~Asker() { close(fd_); }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  void send(std::string_view line) { REQUIRE(::send(fd_, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size())); }
  std::string heard() {
    char bytes[512];
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    REQUIRE(n >= 0);
    return {bytes, static_cast<std::size_t>(n)};
  }

 private:
  static sockaddr_un address(const std::string& path) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, path.data(), path.size());
    return at;
  }
  int fd_;
};

}  // namespace

TEST_CASE("a test sets the clock, forward only, and runs timers") {
  const Place place;
  auto control = TestControl::open(place.path + "/control");
  REQUIRE(control);
  struct stat st {};
  REQUIRE(stat((place.path + "/control").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  TimerEngine engine;
  Asker asker(place.path + "/asker", place.path + "/control");
  const auto ask = [&](std::string_view line) {
    asker.send(line);
    (*control)->hear(engine);
    return asker.heard();
  };
  CHECK((*control)->clock_ms().load() == 0);
  CHECK(ask("clock 1700000000000") == "ok");
  CHECK((*control)->clock_ms().load() == 1'700'000'000'000);
  CHECK(ask("clock 1700000000000\n") == "ok");
  CHECK(ask("clock 5") == "error: the clock is at 1700000000000 and does not go back");
  for (const char* wrong : {"clock", "clock x", "clock -1", "clock 1.5", "clock 99999999999999999999"})
    CHECK(ask(wrong) == "error: a clock is set to a whole number of ms");
  CHECK(ask("timer shop sweep") == "ok");
  CHECK(engine.ran == "sweep ");
  CHECK(ask("timer none sweep") == "error: there is no store `none`");
  CHECK(ask("what") == "error: say `clock MS` or `timer STORE NAME`");
  CHECK(ask("") == "error: say `clock MS` or `timer STORE NAME`");
}

TEST_CASE("a socket that nobody has any more is replaced; another's is refused, as is what is no socket") {
  const Place place;
  const std::string path = place.path + "/control";
  auto first = TestControl::open(path);
  REQUIRE(first);
  CHECK(TestControl::open(path).error() == "test control " + path + ": a running process has this socket");
  first->reset();
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::create_directory(path);
  CHECK(TestControl::open(path).error() == "test control " + path + ": there is something that is no socket");
}
