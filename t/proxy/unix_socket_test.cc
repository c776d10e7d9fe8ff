#include "proxy/unix_socket.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "t/proxy/place.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

// A socket that a process which is no more left behind.
void leave(const std::string& path, UnixSocket::Kind kind) {
  auto socket = UnixSocket::open(path, kind);
  REQUIRE(socket);
  std::filesystem::rename(path, path + ".kept");
  socket->reset();                               // closes it, and finds nothing to remove
  std::filesystem::rename(path + ".kept", path);
}

}  // namespace

TEST_CASE("a socket is for its user alone, takes clients, and goes with its owner") {
  const Place place;
  const std::string path = place.path + "/s";
  auto socket = UnixSocket::open(path, UnixSocket::Kind::stream);
  REQUIRE(socket);
  struct stat st {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  const auto client = connect_unix(path);
  REQUIRE(client);
  const int server = accept((*socket)->fd(), nullptr, nullptr);
  CHECK(server >= 0);
  close(server);
  close(*client);
  socket->reset();
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(connect_unix(path).error() == path + ": No such file or directory");
}

TEST_CASE("what a dead process left is replaced; a live one's is refused with its number; what is no socket stays") {
  const Place place;
  const std::string path = place.path + "/s";
  for (const auto kind : {UnixSocket::Kind::stream, UnixSocket::Kind::datagram}) {
    leave(path, kind);
    REQUIRE(std::filesystem::exists(path));
    auto socket = UnixSocket::open(path, kind);
    REQUIRE(socket);
    const std::string who = UnixSocket::open(path, kind).error();
    if (kind == UnixSocket::Kind::stream) CHECK(who == path + ": the running process " + std::to_string(getpid()) + " has this socket");
    else CHECK(who == path + ": a running process has this socket");
    // The refused one has taken nothing from it.
    CHECK(std::filesystem::exists(path));
  }
  leave(path, UnixSocket::Kind::datagram);
  CHECK(UnixSocket::open(path, UnixSocket::Kind::stream));
  std::filesystem::create_directory(path);
  CHECK(UnixSocket::open(path, UnixSocket::Kind::stream).error() == path + ": there is something that is no socket");
  CHECK(std::filesystem::is_directory(path));
  CHECK(UnixSocket::open(place.path + "/none/s", UnixSocket::Kind::stream).error() == place.path + "/none/s: No such file or directory");
}

TEST_CASE("a path that is too long for an address works, unless its last part is") {
  const Place place;
  const std::string folder = place.path + "/" + std::string(150, 'd');
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/sluice.sock";
  auto socket = UnixSocket::open(path, UnixSocket::Kind::stream);
  REQUIRE(socket);
  CHECK(std::filesystem::exists(path));
  const auto client = connect_unix(path);
  REQUIRE(client);
  close(*client);
  CHECK(UnixSocket::open(path, UnixSocket::Kind::stream).error().find("the running process") != std::string::npos);
  socket->reset();
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(UnixSocket::open(place.path + "/" + std::string(120, 'x'), UnixSocket::Kind::stream).error().ends_with("x: File name too long"));
}

TEST_CASE("a socket that another has replaced by now is the other's to remove") {
  const Place place;
  const std::string path = place.path + "/s";
  auto first = UnixSocket::open(path, UnixSocket::Kind::stream);
  REQUIRE(first);
  std::filesystem::remove(path);
  auto second = UnixSocket::open(path, UnixSocket::Kind::stream);
  REQUIRE(second);
  first->reset();
  CHECK(std::filesystem::exists(path));
}
