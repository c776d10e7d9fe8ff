// T1: a process that is killed at any moment has lost nothing that it had answered, and nothing is half there.
#include <sys/select.h>
#include <time.h>

#include <random>

#include "child.h"
#include "scratch.h"

using namespace sluice;
using namespace sluice::store;

namespace {

std::string document_of(std::uint64_t i) { return pattern(100 + i * 977 % 60'000, i); }

// Commit i writes i under four keys, the document i % 8, and says so once it is durable.
int commit_for_ever(const std::string& path, std::uint64_t from, int out) {
  auto store = Store::open(path, small_map());
  if (!store) return 2;
  for (std::uint64_t i = from;; ++i) {
    Batch batch;
    const std::string number = std::to_string(i), bytes = document_of(i);
    for (char k = 'a'; k < 'e'; ++k) batch.put(std::string(1, k), number);
    batch.put("once" + std::to_string(i % 1000), number);
    batch.write(whole("d" + std::to_string(i % 8), i, bytes));
    const Batch* one[] = {&batch};
    if (!(*store)->commit(one)) return 3;
    if (::write(out, &i, sizeof i) != static_cast<ssize_t>(sizeof i)) return 4;
  }
}

void nap(std::uint64_t microseconds) {
  timespec t{0, static_cast<long>(microseconds * 1000)};
  nanosleep(&t, nullptr);
}

}  // namespace

TEST_CASE("killed at random moments, sixty times, a store has every commit that was answered, whole") {
  Scratch scratch;
  const std::string path = scratch / "s";
  std::mt19937_64 random(static_cast<std::uint64_t>(time(nullptr)));
  std::uint64_t last = 0, total = 0;
  for (int round = 0; round < 60; ++round) {
    std::uint64_t acked = last;
    {
      Child child([&](int out) { return commit_for_ever(path, last + 1, out); });
      std::uint64_t i = 0;
      // Every fourth kill may fall into the opening or the creation, the others come after an answer.
      if (round % 4 != 0 && read(child.out(), &i, sizeof i) == static_cast<ssize_t>(sizeof i)) acked = i;
      // The moment of the kill is the test's subject; nothing is waited for.
      nap(1'000 + random() % 40'000);
      child.end();
      while (read(child.out(), &i, sizeof i) == static_cast<ssize_t>(sizeof i)) acked = i;
      const int status = child.wait();
      REQUIRE(WIFSIGNALED(status));
    }
    total += acked - last;
    CAPTURE(round);
    CAPTURE(acked);
    auto store = open_store(path);
    const Snapshot s = snapshot(*store);
    const auto a = *s.get("a");
    const std::uint64_t state = a ? std::stoull(std::string(*a)) : 0;
    REQUIRE(state >= acked);
    REQUIRE(state <= acked + 1);
    for (char k = 'b'; k < 'e'; ++k) REQUIRE(*s.get(std::string(1, k)) == a);
    for (std::uint64_t i = state > 8 ? state - 7 : 1; i <= state; ++i) {
      const auto d = s.document("d" + std::to_string(i % 8));
      REQUIRE(d);
      REQUIRE(d->revision == i);
      REQUIRE(s.verify(*d));
      REQUIRE((content(*d) == document_of(i)));
    }
    last = state;
  }
  CHECK(total > 0);
}
