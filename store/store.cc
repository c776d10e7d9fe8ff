#include "store/store.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/impl.h"
#include "store/precheck.h"
#include "vm/base/check.h"

namespace sluice::store {

namespace {

std::string sentence(const Error& error) {
  std::string text = error.what;
  if (error.code != Errc::damaged && error.code != Errc::future && error.detail != 0)
    text += std::string(": ") + std::strerror(error.detail);
  return text;
}

File open_file(const std::string& path, int flags) { return File(open(path.c_str(), flags | O_CLOEXEC, 0600)); }

// LMDB maps lock.mdb and would only stretch it: a page of it that a full disk has no room for would end the process.
// Nobody has the environment open, the folder's lock sees to that, so closing the file here drops no one's locks.
Result<void, std::string> fill_lock_file(const std::string& folder) {
  constexpr std::size_t kLockBytes = 1025 * 64;
  File file = open_file(folder + "/lock.mdb", O_RDWR | O_CREAT);
  struct stat s{};
  if (!file || fstat(file.fd(), &s) != 0) return std::string("cannot open its lock.mdb: ") + std::strerror(errno);
  const std::string zeros(kLockBytes, '\0');
  for (auto at = static_cast<std::size_t>(s.st_size); at < kLockBytes;) {
    const ssize_t n = pwrite(file.fd(), zeros.data(), kLockBytes - at, static_cast<off_t>(at));
    if (n < 0) return std::string("cannot fill its lock.mdb: ") + std::strerror(errno);
    at += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void, std::string> make(Store::Impl& store) {
  const Options& options = store.options;
  if (options.quota_bytes != 0 && options.quota_bytes < kFirstBytes)
    return "a quota of " + std::to_string(options.quota_bytes) + " bytes is below the least, " +
           std::to_string(kFirstBytes);
  const std::string& at = store.folder.at;
  Superblock superblock;
  superblock.page_bytes = static_cast<std::uint32_t>(store.page_bytes);
  if (getrandom(superblock.identity.data(), superblock.identity.size(), 0) !=
      static_cast<ssize_t>(superblock.identity.size()))
    return std::string("no random bytes for its identity");
  if (auto filled = fill_lock_file(at); !filled) return filled;
  auto env = Environment::open(at, options);
  if (!env) return env.error();
  store.env = std::move(*env);
  File data = open_file(at + "/data.mdb", O_RDWR);
  File copies = open_file(at + "/superblock", O_RDWR | O_CREAT | O_TRUNC);
  if (!data || !copies) return std::string("cannot make its files: ") + std::strerror(errno);
  store.space = Space(std::move(data), std::move(copies), superblock, options);
  if (auto grown = store.space.reach(kFirstBytes); !grown) return sentence(grown.error());
  if (auto made = store.env.create(superblock.identity_view()); !made) return made;
  return publish(store.folder);
}

Result<void, std::string> open_made(Store::Impl& store) {
  const std::string& at = store.folder.at;
  File copies = open_file(at + "/superblock", O_RDWR);
  if (!copies) return std::string("cannot open its superblock: ") + std::strerror(errno);
  Result<Superblock> superblock = read_superblock(copies.fd());
  if (!superblock) return sentence(superblock.error());
  if (superblock->page_bytes != store.page_bytes)
    return "was made with pages of " + std::to_string(superblock->page_bytes) + " bytes, this machine has " +
           std::to_string(store.page_bytes) + "; export it where it was made";
  File data = open_file(at + "/data.mdb", O_RDWR);
  if (!data) return std::string("cannot open its data.mdb: ") + std::strerror(errno);
  // After a failed flush the page cache may say more than the disk: nothing is believed before the disk agrees.
  const Faults& faults = store.options.faults;
  int error = faults.open_sync ? faults.open_sync(faults.context) : 0;
  if (error == 0 && fdatasync(data.fd()) != 0) error = errno;
  if (error != 0) return std::string("data.mdb cannot be synced, the disk may be failing: ") + std::strerror(error);
  if (auto sound = check_file(data.fd(), *superblock, store.options.map_bytes); !sound) return sound;
  if (auto filled = fill_lock_file(at); !filled) return filled;
  auto env = Environment::open(at, store.options);
  if (!env) return env.error();
  store.env = std::move(*env);
  store.space = Space(std::move(data), std::move(copies), *superblock, store.options);
  return store.env.find(superblock->identity_view());
}

}  // namespace

Result<std::unique_ptr<Store>, std::string> Store::open(const std::string& path, const Options& options) {
  const auto refuse = [&](const std::string& why) { return "store " + path + ": " + why; };
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->options = options;
  impl->page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (impl->page_bytes != 4096) return refuse("this machine's pages are not 4096 bytes; stores need that");
  Result<Folder, std::string> folder = enter(path, options);
  if (!folder) return refuse(folder.error());
  impl->folder = std::move(*folder);
  auto ready = impl->folder.fresh ? make(*impl) : open_made(*impl);
  if (!ready) return refuse(ready.error());
  if (auto looked = impl->load(); !looked) return refuse(sentence(looked.error()));
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Store::~Store() { impl_->generations.finish(); }

std::uint64_t Store::published() const { return impl_->published.load(std::memory_order_acquire); }

bool Store::closed() const { return impl_->closed.load(std::memory_order_acquire); }

const std::string& Store::path() const { return impl_->path; }

StoreCounters Store::counters() const {
  StoreCounters c;
  c.commits = impl_->commits.load(std::memory_order_relaxed);
  c.batches = impl_->batch_count.load(std::memory_order_relaxed);
  c.bytes_written = impl_->bytes_written.load(std::memory_order_relaxed);
  c.sync_us = impl_->sync_us.load(std::memory_order_relaxed);
  c.file_bytes = impl_->file_bytes.load(std::memory_order_relaxed);
  c.generations_alive = impl_->generations.alive();
  return c;
}

}  // namespace sluice::store
