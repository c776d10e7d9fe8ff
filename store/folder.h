// The folder of a store: made in one step or not at all, and open in one process at a time.
#pragma once
#include <string>

#include "store/file.h"
#include "store/store.h"
#include "vm/base/result.h"

namespace sluice::store {

// The folder, ours until the struct goes: `owner` is locked (flock) and says whose process it is.
struct Folder {
  File owner;
  bool fresh = false;          // `at` is PATH.tmp, empty but for the lock; publish() makes it PATH
  std::string path, at;
};

// Errors: a sentence without the path: in use (with the pid), not a store, a file system that cannot keep the promise.
Result<Folder, std::string> enter(const std::string& path, const Options& options);

// Syncs the folder, gives it its name and syncs its parent: after this it is found after a crash, whole.
Result<void, std::string> publish(Folder& folder);

}  // namespace sluice::store
