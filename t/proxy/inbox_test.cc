#include "proxy/inbox.h"

#include <doctest/doctest.h>

#include <memory>

using namespace sluice;
using namespace sluice::proxy;

TEST_CASE("a full inbox refuses and leaves the message with the writer") {
  Inbox<std::unique_ptr<int>> inbox("test.ints", 1);
  REQUIRE(inbox.push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  CHECK(inbox.push(std::move(second)).error().code == Errc::full);
  CHECK(second != nullptr);
}

TEST_CASE("push_all moves what fits and keeps the rest in order") {
  Inbox<int> inbox("test.ints", 2);
  std::vector<int> from{1, 2, 3};
  CHECK(inbox.push_all(from) == 2);
  CHECK(from == std::vector<int>{3});
  std::vector<int> got;
  CHECK(inbox.drain([&](int n) { got.push_back(n); }) == 2);
  CHECK(got == std::vector<int>{1, 2});
}
