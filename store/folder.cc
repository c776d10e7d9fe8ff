// The file `owner`: one line "pid N\n" of the process that has the store open. Only the lock on it means anything; the
// text is for people. Further lines may follow for tools.
#include "store/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "vm/base/handle.h"

namespace sluice::store {

namespace {
constexpr std::array<const char*, 4> kFiles{"data.mdb", "lock.mdb", "superblock", "owner"};

std::string why() { return std::strerror(errno); }

bool exists(const std::string& path) {
  struct stat s{};
  return lstat(path.c_str(), &s) == 0;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Source: linux/magic.h and the kernel's file systems; there memory maps or locks do not hold across machines.
Result<void, std::string> check_filesystem(const std::string& path) {
  struct statfs s{};
  if (statfs(path.c_str(), &s) != 0) return "cannot look at " + path + ": " + why();
  struct Remote { unsigned long magic; const char* name; };
  constexpr std::array<Remote, 7> kRemote{{{0x6969, "NFS"}, {0xff534d42, "CIFS"}, {0xfe534d42, "SMB"}, {0x517b, "SMB"},
                                           {0x65735546, "FUSE"}, {0x01021997, "9p"}, {0x00c36400, "Ceph"}}};
  for (const Remote& remote : kRemote)
    if (static_cast<unsigned long>(s.f_type) == remote.magic)
      return std::string("lies on ") + remote.name + ", which does not keep what a store needs of a disk; use a local disk";
  return {};
}

std::string first_line(int fd) {
  char text[64];
  const ssize_t n = pread(fd, text, sizeof text, 0);
  std::string_view line(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  return std::string(line.substr(0, line.find('\n')));
}

// Locks `folder`/owner. No value: the folder was renamed or removed meanwhile, so look again.
Result<std::optional<File>, std::string> lock(const std::string& folder) {
  const std::string name = folder + "/owner";
  File file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file && errno == ENOENT) return std::optional<File>();
  if (!file) return "cannot open its file owner: " + why();
  if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return "cannot lock its file owner: " + why();
    const std::string line = first_line(file.fd());
    if (line == "pid " + std::to_string(getpid())) return std::string("is open in this process already");
    return line.empty() ? std::string("in use by another process; stop it first")
                        : "in use by " + line + "; stop it first, or name another folder";
  }
  struct stat ours{}, named{};
  if (fstat(file.fd(), &ours) != 0 || stat(name.c_str(), &named) != 0 || ours.st_dev != named.st_dev ||
      ours.st_ino != named.st_ino)
    return std::optional<File>();
  const std::string line = "pid " + std::to_string(getpid()) + "\n";
  if (ftruncate(file.fd(), 0) != 0 ||
      pwrite(file.fd(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()))
    return "cannot write its file owner: " + why();
  return std::optional<File>(std::move(file));
}

Result<bool, std::string> is_empty(const std::string& folder) {
  Handle<DIR, closedir> dir(opendir(folder.c_str()));
  if (!dir) return "cannot list it: " + why();
  while (const dirent* entry = readdir(dir.get()))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..") return false;
  return true;
}

Result<void, std::string> sync_folder(const std::string& path) {
  File dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir || fsync(dir.fd()) != 0) return "cannot sync " + path + ": " + why();
  return {};
}

// The folders above a new store, each on disk before the next is made in it: `data/shop` needs no `data` beforehand.
Result<void, std::string> make_parents(const std::string& path) {
  const std::string parent = parent_of(path);
  if (exists(parent)) return {};
  if (auto above = make_parents(parent); !above) return above;
  if (mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) return "cannot make " + parent + ": " + why();
  return sync_folder(parent_of(parent));
}

// Takes PATH.tmp, which a crash may have left half done. No value: look again.
Result<std::optional<Folder>, std::string> enter_fresh(const std::string& path) {
  Folder folder;
  folder.path = path;
  folder.at = path + ".tmp";
  folder.fresh = true;
  if (mkdir(folder.at.c_str(), 0700) != 0 && errno != EEXIST) return "cannot make " + folder.at + ": " + why();
  auto owner = lock(folder.at);
  if (!owner) return owner.error();
  if (!*owner) return std::optional<Folder>();
  for (const char* name : kFiles)
    if (std::string_view(name) != "owner") unlink((folder.at + "/" + name).c_str());
  folder.owner = std::move(**owner);
  return std::optional<Folder>(std::move(folder));
}
}  // namespace

Result<Folder, std::string> enter(const std::string& given, const Options& options) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.empty() || path == "/" || path == "." || path == "..") return std::string("is no name for a store's folder");
  // Another process may make or remove the folder between two looks; a few looks settle it.
  for (int look = 0; look < 8; ++look) {
    struct stat s{};
    bool fresh = false;
    if (stat(path.c_str(), &s) != 0) {
      if (errno != ENOENT) return "cannot look at it: " + why();
      fresh = true;
    } else if (!S_ISDIR(s.st_mode)) {
      return std::string("is a file; a store is a folder");
    } else {
      Result<bool, std::string> empty = is_empty(path);
      if (!empty) return empty.error();
      fresh = *empty;
      if (!fresh && !exists(path + "/superblock") && !exists(path + "/data.mdb"))
        return std::string("holds other files and no store; name a new or an empty folder");
    }
    if (fresh)
      if (auto made = make_parents(path); !made) return made.error();
    if (!options.any_filesystem)
      if (auto fit = check_filesystem(fresh ? parent_of(path) : path); !fit) return fit.error();
    if (fresh) {
      auto folder = enter_fresh(path);
      if (!folder) return folder.error();
      if (*folder) return std::move(**folder);
      continue;
    }
    auto owner = lock(path);
    if (!owner) return owner.error();
    if (!*owner) continue;
    Folder folder;
    folder.path = folder.at = path;
    folder.owner = std::move(**owner);
    return folder;
  }
  return std::string("is being made or removed by another process; try again");
}

Result<void, std::string> publish(Folder& folder) {
  if (auto synced = sync_folder(folder.at); !synced) return synced;
  // rename() takes the place of an empty folder, and of nothing else.
  if (std::rename(folder.at.c_str(), folder.path.c_str()) != 0) {
    if (errno == EBUSY || errno == EXDEV) return std::string("is a mount point; name a folder inside it");
    return "cannot be named: " + why();
  }
  folder.at = folder.path;
  folder.fresh = false;
  return sync_folder(parent_of(folder.path));
}

}  // namespace sluice::store
