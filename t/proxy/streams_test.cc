#include "proxy/streams.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <string>
#include <thread>
#include <vector>

#include "proxy/log.h"
#include "vm/base/json.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

struct Heard {
  std::vector<std::string> lines;
  std::uint64_t dropped = 0;
  bool some = false;
};

Heard drain(Streams& streams) {
  Heard h;
  h.some = streams.drain([&h](Stream, std::string_view line) { h.lines.emplace_back(line); }, [&h](Stream, std::uint64_t n) { h.dropped += n; });
  return h;
}

bool rung(const Streams& streams) {
  pollfd p{streams.wake().fd(), POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view line) override { lines.emplace_back(line); }
  bool takes(LogLevel) const override { return true; }
  void set_level(LogLevel) override {}
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("what nobody watches goes nowhere, and wakes nobody") {
  Streams streams;
  streams.say(Stream::user, LogLevel::info, 0, {{"text", "x"}});
  CHECK_FALSE(streams.watched(Stream::user));
  CHECK_FALSE(rung(streams));
  CHECK_FALSE(drain(streams).some);
  streams.watch(Stream::requests, true);
  streams.say(Stream::user, LogLevel::info, 0, {{"text", "x"}});
  CHECK_FALSE(drain(streams).some);
}

TEST_CASE("a line is one JSON object with what it is about, whatever bytes it is made of") {
  Streams streams;
  streams.watch(Stream::user, true);
  streams.say(Stream::user, LogLevel::warn, 3, {{"text", "a \"b\"\n\xff\xc3\xa9\xe2\x82"}, {"n", std::uint64_t{7}}, Field::raw("elapsed", "0.000120")});
  const Heard h = drain(streams);
  REQUIRE(h.lines.size() == 1);
  const std::string& line = h.lines[0];
  CHECK(line.back() == '\n');
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(json_valid(line));
  CHECK(json_text(line, "/stream") == "user");
  CHECK(json_text(line, "/level") == "warn");
  CHECK(json_number(line, "/worker") == 3);
  CHECK(json_text(line, "/text") == "a \"b\"\n\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(json_number(line, "/n") == 7);
  CHECK(*json_find(line, "/elapsed") == "0.000120");
  CHECK(json_text(line, "/time")->size() == 24);
  CHECK(time_text(1'764'539'401'123) == "2025-11-30T21:50:01.123Z");
  streams.say(Stream::user, LogLevel::info, Streams::kNoWorker, {{"text", std::string(10'000, 'x')}});
  const Heard longer = drain(streams);
  REQUIRE(longer.lines.size() == 1);
  CHECK_FALSE(json_find(longer.lines[0], "/worker"));
  CHECK(json_text(longer.lines[0], "/text")->size() == 8192);
}

TEST_CASE("a full queue drops lines and says how many; nobody waits") {
  Streams streams(1000);
  streams.watch(Stream::user, true);
  for (int i = 0; i < 100; ++i) streams.say(Stream::user, LogLevel::info, 0, {{"text", "line"}});
  const Heard h = drain(streams);
  CHECK(h.lines.size() > 5);
  CHECK(h.lines.size() < 20);
  CHECK(h.dropped == 100 - h.lines.size());
  CHECK_FALSE(drain(streams).some);
  streams.say(Stream::user, LogLevel::info, 0, {{"text", "room again"}});
  CHECK(drain(streams).lines.size() == 1);
}

TEST_CASE("who drains is woken once, and not again until it has found nothing") {
  Streams streams;
  streams.watch(Stream::events, true);
  streams.say(Stream::events, LogLevel::info, 0, {{"text", "1"}});
  CHECK(rung(streams));
  streams.wake().quiet();
  streams.say(Stream::events, LogLevel::info, 0, {{"text", "2"}});
  CHECK_FALSE(rung(streams));
  CHECK(drain(streams).lines.size() == 2);
  streams.say(Stream::events, LogLevel::info, 0, {{"text", "3"}});
  CHECK_FALSE(rung(streams));
  CHECK(drain(streams).lines.size() == 1);
  CHECK_FALSE(drain(streams).some);
  streams.say(Stream::events, LogLevel::info, 0, {{"text", "4"}});
  CHECK(rung(streams));
  streams.wake().quiet();
  // Whoever stops watching takes what waits with it, and the next one is woken again.
  streams.watch(Stream::events, false);
  CHECK_FALSE(drain(streams).some);
  streams.watch(Stream::events, true);
  streams.say(Stream::events, LogLevel::info, 0, {{"text", "5"}});
  CHECK(rung(streams));
  CHECK(drain(streams).lines.size() == 1);
}

TEST_CASE("many threads at once: every line is whole, and none is lost uncounted") {
  Streams streams(20'000);
  streams.watch(Stream::user, true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&streams, t] {
      for (int i = 0; i < 2'000; ++i) streams.say(Stream::user, LogLevel::info, t, {{"text", "some words of a line"}});
    });
  std::uint64_t heard = 0;
  const auto take = [&] {
    const Heard h = drain(streams);
    for (const std::string& line : h.lines) CHECK(json_valid(line));
    heard += h.lines.size() + h.dropped;
  };
  for (int i = 0; i < 200; ++i) take();
  for (std::thread& t : threads) t.join();
  take();
  CHECK(heard == 8'000);
}

TEST_CASE("an event is a line of the log, and has a name for who watches") {
  Lines log;
  log.event(LogLevel::warn, "backend_bad", "backend east is bad", {{"backend", "east"}});
  CHECK(log.lines == std::vector<std::string>{"backend east is bad"});
  Streams streams;
  log.set_streams(&streams);
  streams.watch(Stream::events, true);
  log.event(LogLevel::warn, "backend_bad", "backend east is bad", {{"backend", "east"}, {"failures", std::uint64_t{3}}});
  log.info("something else");
  const Heard h = drain(streams);
  REQUIRE(h.lines.size() == 2);
  CHECK(json_text(h.lines[0], "/event") == "backend_bad");
  CHECK(json_text(h.lines[0], "/text") == "backend east is bad");
  CHECK(json_text(h.lines[0], "/backend") == "east");
  CHECK(json_number(h.lines[0], "/failures") == 3);
  CHECK(json_text(h.lines[1], "/event") == "log");
  CHECK(log.lines.size() == 3);
}
