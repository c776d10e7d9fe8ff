// Which generations are alive, and what workers say that they hold.
#include "proxy/generations.h"

#include <doctest/doctest.h>

using namespace sluice::proxy;

namespace {

News held_by(std::uint16_t worker, std::uint64_t asked, std::vector<HeldGeneration> held) {
  News news;
  news.kind = News::Kind::held;
  news.worker = worker;
  news.asked = asked;
  news.held = std::move(held);
  return news;
}

HeldGeneration holds(std::uint64_t number, std::uint64_t exchanges, std::string oldest = "", std::uint64_t oldest_us = 0) {
  HeldGeneration h;
  h.number = number;
  h.exchanges = exchanges;
  h.oldest = std::move(oldest);
  h.oldest_us = oldest_us;
  return h;
}

}  // namespace

TEST_CASE("a generation is alive until every worker that was given it has given it back") {
  Generations g;
  CHECK(g.alive() == 0);
  for (int worker = 0; worker < 2; ++worker) g.given(1, 1'000);
  CHECK(g.alive() == 1);
  CHECK(g.oldest_held_since_ms() == 0);
  for (int worker = 0; worker < 2; ++worker) g.given(2, 5'000);
  CHECK(g.alive() == 2);
  CHECK(g.newest() == 2);
  CHECK(g.oldest_held_since_ms() == 5'000);     // when it was replaced
  g.returned(1);
  CHECK(g.alive() == 2);
  g.returned(1);
  CHECK(g.alive() == 1);
  CHECK(g.oldest_held_since_ms() == 0);
  g.returned(1);                                // of no meaning any more
  CHECK(g.alive() == 1);
}

TEST_CASE("what workers hold is put together once all have answered, the oldest generation first") {
  Generations g;
  g.given(1, 1'000);
  g.given(2, 5'000);
  g.given(2, 5'000);
  std::vector<GenerationReport> got;
  int times = 0;
  const std::uint64_t asked = g.ask({0, 1}, [&](const std::vector<GenerationReport>& reports) {
    got = reports;
    ++times;
  });
  g.answered(held_by(1, asked, {holds(2, 3)}));
  g.answered(held_by(1, asked + 1, {}));        // to nobody
  CHECK(times == 0);
  g.answered(held_by(0, asked, {holds(1, 1, "GET /slow", 60'200'000), holds(2, 0)}));
  REQUIRE(times == 1);
  REQUIRE(got.size() == 2);
  CHECK(got[0].number == 1);
  CHECK(got[0].since_ms == 1'000);
  CHECK_FALSE(got[0].serves);
  CHECK(got[1].serves);
  REQUIRE(got[1].parts.size() == 2);
  CHECK(got[1].parts[0].worker == 0);
  CHECK(describe(got[0], 62'000) == "generation 1, since 61 s: worker 0: 1 request (GET /slow, 60.2 s)");
  CHECK(describe(got[1], 6'000) == "generation 2, since 1 s, serves: worker 0: 0 requests; worker 1: 3 requests");
  g.answered(held_by(0, asked, {}));
  CHECK(times == 1);
}

TEST_CASE("a worker that ends is not waited for") {
  Generations g;
  int times = 0;
  const std::uint64_t asked = g.ask({0, 1}, [&](const std::vector<GenerationReport>&) { ++times; });
  g.answered(held_by(0, asked, {}));
  CHECK(times == 0);
  g.ended(1);
  CHECK(times == 1);
}

TEST_CASE("all that can hold a generation is said in words") {
  GenerationReport r{7, 0, false, {}};
  HeldGeneration h = holds(7, 2, "POST /x", 1'500'000);
  h.events = 1;
  h.kept = 2;
  h.slots = 4;
  h.slots_in_use = 3;
  h.memory_bytes = 812 * 1024;
  r.parts.push_back({1, h});
  CHECK(describe(r, 2'000) ==
        "generation 7, since 2 s: worker 1: 2 requests (POST /x, 1.5 s), 1 event, 2 routes behind their answers, 3 of 4 slots, 812 KiB of Lua");
}
