#include "proxy/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::proxy {
namespace {

constexpr int kWaiting = 64;                 // clients that are not accepted yet
constexpr int kLockTries = 200;              // 10 ms each: nobody holds it for longer than a few calls

// Closed on the way out.
struct Fd {
  explicit Fd(int its) : fd(its) {}
  ~Fd() {
    if (fd >= 0) close(fd);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int take() { return std::exchange(fd, -1); }
  int fd;
};

// The socket's address, by way of its folder's descriptor when the path is longer than an address has room for.
// Life: while `folder` is open. Errors: 0, or an errno.
struct Address {
  sockaddr_un at{};
  Fd folder{-1};
  int error = 0;

  explicit Address(const std::string& path) {
    at.sun_family = AF_UNIX;
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    folder.fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder.fd < 0) {
      error = errno;
      return;
    }
    std::string said = path;
    if (said.size() >= sizeof at.sun_path)
      said = "/proc/self/fd/" + std::to_string(folder.fd) + "/" + (slash == path.npos ? path : path.substr(slash + 1));
    if (said.size() >= sizeof at.sun_path) error = ENAMETOOLONG;
    else std::memcpy(at.sun_path, said.data(), said.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&at); }
};

// Two servers that start at once look and replace one after the other. A file system without locks goes without.
void lock(int folder) {
  for (int i = 0; i < kLockTries; ++i) {
    if (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
}

// Empty when nobody answers there; else who does.
std::string who_has(const Address& address, int type) {
  const Fd asking(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (asking.fd < 0) return std::strerror(errno);
  if (connect(asking.fd, address.get(), sizeof address.at) != 0 && errno != EAGAIN && errno != EPROTOTYPE)
    return errno == ECONNREFUSED || errno == ENOENT ? std::string() : std::strerror(errno);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(asking.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return "a running process has this socket";
  return "the running process " + std::to_string(peer.pid) + " has this socket";
}

}  // namespace

Result<std::unique_ptr<UnixSocket>, std::string> UnixSocket::open(const std::string& path, Kind kind) {
  const std::string said = path + ": ";
  const int type = kind == Kind::stream ? SOCK_STREAM : SOCK_DGRAM;
  const Address address(path);
  if (address.error != 0) return said + std::strerror(address.error);
  lock(address.folder.fd);                   // until the folder is closed
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) return said + "there is something that is no socket";
    if (std::string who = who_has(address, type); !who.empty()) return said + who;
    unlink(path.c_str());
  }
  Fd made(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.fd < 0) return said + std::strerror(errno);
  // The mode of a socket is that of the file it is bound to.
  if (fchmod(made.fd, 0600) != 0 || bind(made.fd, address.get(), sizeof address.at) != 0) return said + std::strerror(errno);
  if ((kind == Kind::stream && listen(made.fd, kWaiting) != 0) || lstat(path.c_str(), &there) != 0) {
    const std::string why = std::strerror(errno);
    unlink(path.c_str());
    return said + why;
  }
  return std::unique_ptr<UnixSocket>(new UnixSocket(path, made.take(), there.st_dev, there.st_ino));
}

bool UnixSocket::there() const {
  struct stat now {};
  return lstat(path_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
}

UnixSocket::~UnixSocket() {
  if (there()) unlink(path_.c_str());
  close(fd_);
}

Result<int, std::string> connect_unix(const std::string& path) {
  const Address address(path);
  if (address.error != 0) return path + ": " + std::strerror(address.error);
  Fd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.fd < 0 || connect(made.fd, address.get(), sizeof address.at) != 0) return path + ": " + std::strerror(errno);
  return made.take();
}

}  // namespace sluice::proxy
