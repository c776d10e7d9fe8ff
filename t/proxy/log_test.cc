#include "proxy/log.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <regex>
#include <string>

using namespace sluice::proxy;

namespace {

// What a log with that level wrote into a pipe.
template <class F>
std::string written(LogLevel level, F&& f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  {
    const auto log = make_log(ends[1], level);
    f(*log);
  }
  close(ends[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  return out;
}

}  // namespace

TEST_CASE("a line has its time in UTC, its level and its words, and all are out when the log is gone") {
  const std::string out = written(LogLevel::info, [](Log& log) {
    log.debug("not this");
    log.info("one");
    log.warn("two");
    log.error("three\n");
  });
  CHECK(std::regex_match(out, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z info one\n"
                                         "[^ ]+ warning two\n[^ ]+ error three\n")));
}

TEST_CASE("one event is one line, and no byte of it moves a terminal") {
  const std::string out =
      written(LogLevel::info, [](Log& log) { log.info(std::string_view("a\nb\r\x1b[31m\ttab\0end", 17)); });
  CHECK(out.find("info a\\nb\\x0d\\x1b[31m\ttab\\x00end\n") != std::string::npos);
}

TEST_CASE("the level can change while others write") {
  const std::string out = written(LogLevel::error, [](Log& log) {
    log.info("before");
    CHECK_FALSE(log.takes(LogLevel::info));
    log.set_level(LogLevel::debug);
    CHECK(log.takes(LogLevel::debug));
    log.debug("after");
    log.set_level(LogLevel::off);
    log.error("never");
  });
  CHECK(out.find("before") == std::string::npos);
  CHECK(out.find("debug after\n") != std::string::npos);
  CHECK(out.find("never") == std::string::npos);
}

TEST_CASE("levels have the names that settings use") {
  CHECK(find_log_level("debug") == LogLevel::debug);
  CHECK(find_log_level("warn") == LogLevel::warn);
  CHECK(find_log_level("off") == LogLevel::off);
  CHECK_FALSE(find_log_level("warning").has_value());
  CHECK_FALSE(find_log_level("").has_value());
}
