// What a reload makes of listening sockets, over real ones.
#include "proxy/listen_set.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <set>

using namespace sluice;
using namespace sluice::proxy;
using Listener = Settings::Listener;

namespace {

Listener local(std::uint16_t port, std::string tag = "") { return {"127.0.0.1", port, std::move(tag), std::nullopt}; }

// As a reload does both phases. Lines for the log.
std::vector<std::string> change(ListenSet& set, const std::vector<Listener>& wanted, std::size_t workers = 1, std::uint64_t now_ms = 0) {
  auto plan = set.prepare(wanted, workers);
  REQUIRE_MESSAGE(plan.has_value(), plan.error());
  return set.apply(*std::move(plan), now_ms);
}

std::uint16_t port_of(const ListenSet& set, std::size_t n) { return set.places().at(n)->address.port(); }

// 0: connected; EINPROGRESS: nobody has answered.
int try_connect(std::uint16_t port, int* keep = nullptr) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int error = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  pollfd p{fd, POLLOUT, 0};
  if (error == EINPROGRESS && poll(&p, 1, 100) > 0) {
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (keep) *keep = fd;
  else close(fd);
  return error;
}

bool accepts(const ListenSocketPtr& socket) {
  const int fd = accept4(socket->fd(), nullptr, nullptr, SOCK_NONBLOCK);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

}  // namespace

TEST_CASE("what a plan has opened is closed when it is dropped, and nothing that serves has changed") {
  ListenSet set;
  change(set, {local(0)});
  const std::uint16_t port = port_of(set, 0);
  std::uint16_t other = 0;
  {
    const auto plan = set.prepare({local(port), local(0)}, 2);
    REQUIRE(plan);
    other = plan->places[1].address.port();
    CHECK(try_connect(other) == 0);
  }
  CHECK(try_connect(other) == ECONNREFUSED);
  CHECK(set.places().size() == 1);
  CHECK(set.of_worker(0, 1).size() == 1);
  CHECK(try_connect(port) == 0);
}

TEST_CASE("what stays keeps its sockets, in whatever words it is written") {
  ListenSet set;
  change(set, {local(0), local(0, "admin")});
  const std::uint16_t first = port_of(set, 0), second = port_of(set, 1);
  const int fd = set.of_worker(0, 1)[1].socket->fd();
  CHECK(change(set, {local(0), local(0, "admin")}).empty());
  CHECK(port_of(set, 0) == first);
  // The order in which those with port 0 stand does not matter as long as their tags differ.
  CHECK(change(set, {local(0, "admin"), local(0)}).empty());
  CHECK(port_of(set, 0) == second);
  CHECK(change(set, {local(first), {"localhost", second, "admin", std::nullopt}}) ==
        std::vector<std::string>{"listening on localhost port " + std::to_string(second) + ", tag admin"});
  CHECK(set.of_worker(0, 1)[1].socket->fd() == fd);
  CHECK(change(set, {local(first), local(second, "other")}) ==
        std::vector<std::string>{"listening on 127.0.0.1 port " + std::to_string(second) + ", tag other"});
  CHECK(set.of_worker(0, 1)[1].tag == "other");
  CHECK(set.of_worker(0, 1)[1].socket->fd() == fd);
}

TEST_CASE("an address that is gone takes nothing new, serves who has connected, and closes when its worker has let go") {
  ListenSet set;
  change(set, {local(0), local(0, "admin")});
  const std::uint16_t port = port_of(set, 1);
  std::vector<Listening> worker = set.of_worker(0, 1);
  CHECK(try_connect(port) == 0);
  CHECK(change(set, {local(0)}, 1, 1'000) == std::vector<std::string>{"listening no more on 127.0.0.1 port " + std::to_string(port) + ", tag admin"});
  CHECK(set.places().size() == 1);
  CHECK(try_connect(port) == EINPROGRESS);
  CHECK(accepts(worker[1].socket));
  CHECK_FALSE(accepts(worker[1].socket));
  CHECK(set.next_ms(1'000) == 1'000 + ListenSet::kRetire_ms);
  CHECK_FALSE(set.tick(1'499));
  CHECK(set.of_worker(0, 1).size() == 2);       // still accepted from
  CHECK(set.tick(1'500));
  CHECK(set.of_worker(0, 1).size() == 1);
  CHECK_FALSE(set.tick(1'510));
  CHECK(set.next_ms(1'510) < 1'600);            // looks whether the worker has let go
  CHECK(try_connect(port) == EINPROGRESS);
  worker.clear();
  CHECK_FALSE(set.tick(1'520));
  CHECK(try_connect(port) == ECONNREFUSED);
  CHECK(set.next_ms(1'520) == ListenSet::kNever);
}

TEST_CASE("an address that comes back goes on with its sockets, at whatever point") {
  ListenSet set;
  change(set, {local(0), local(0, "admin")});
  const std::uint16_t port = port_of(set, 1);
  const std::vector<Listening> worker = set.of_worker(0, 1);
  for (const bool told : {false, true}) {
    change(set, {local(0)}, 1, 0);
    if (told) CHECK(set.tick(ListenSet::kRetire_ms));
    CHECK(change(set, {local(0), local(port, "admin")}, 1, 10'000).size() == 1);
    CHECK(set.of_worker(0, 1).at(1).socket == worker[1].socket);
    CHECK(try_connect(port) == 0);
    CHECK_FALSE(set.tick(100'000));
  }
}

TEST_CASE("more workers get sockets of their own, fewer share all that there are") {
  ListenSet set;
  change(set, {local(0)}, 2);
  CHECK(set.places()[0]->sockets.size() == 2);
  change(set, {local(0)}, 5);
  CHECK(set.places()[0]->sockets.size() == 5);
  change(set, {local(0)}, 2);
  for (const std::size_t workers : {1u, 2u, 3u}) {
    std::set<int> all;
    for (std::size_t w = 0; w < workers; ++w)
      for (const Listening& l : set.of_worker(w, workers)) CHECK(all.insert(l.socket->fd()).second);
    CHECK(all.size() == 5);
  }
}

TEST_CASE("one address twice, one of another process, and one that is not ours are refused") {
  ListenSet set;
  change(set, {local(0)});
  const std::string mine = std::to_string(port_of(set, 0));
  auto refused = set.prepare({local(port_of(set, 0)), {"localhost", port_of(set, 0), "x", std::nullopt}}, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == "cannot listen on localhost:" + mine + ": it is listened on already, as 127.0.0.1:" + mine);
  const auto others = open_listeners("127.0.0.1", 0, 1);
  REQUIRE(others);
  refused = set.prepare({local(others->port)}, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == "cannot listen on 127.0.0.1:" + std::to_string(others->port) + ": port " + std::to_string(others->port) + " is in use");
  refused = set.prepare({{"192.0.2.1", 0, "", std::nullopt}}, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().starts_with("cannot listen on 192.0.2.1:0: "));
  refused = set.prepare({{"no such host", 1, "", std::nullopt}}, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().starts_with("cannot listen on no such host:1: "));
}

TEST_CASE("all addresses of a port may stand beside one of them, or take its place, when both are ours") {
  ListenSet set;
  change(set, {local(0)});
  const std::uint16_t port = port_of(set, 0);
  change(set, {local(port), {"0.0.0.0", port, "all", std::nullopt}}, 2);
  CHECK(set.places().size() == 2);
  change(set, {{"0.0.0.0", port, "all", std::nullopt}}, 2, 0);
  CHECK(set.tick(ListenSet::kRetire_ms));
  CHECK_FALSE(set.tick(ListenSet::kRetire_ms + 1));
  CHECK(try_connect(port) == 0);
}
