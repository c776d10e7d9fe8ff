// Reads LMDB's pages without LMDB and finds out whether they hang together.
#pragma once
#include <cstdint>
#include <string>

namespace sluice::store {

struct PageReader {
  int fd = -1;
  std::uint64_t file_bytes = 0;
  std::uint32_t page_bytes = 0;
  std::uint64_t pages() const { return file_bytes / page_bytes; }
  bool read(std::uint64_t page, void* to, std::uint64_t bytes) const;
};

struct Tree {
  std::uint16_t flags = 0, depth = 0;
  std::uint64_t branches = 0, leafs = 0, overflows = 0, entries = 0, root = 0;
  std::uint64_t pages() const { return branches + leafs + overflows; }
};

struct Meta {
  Tree free, main;
  std::uint64_t last_page = 0, txn = 0;
};

// Each answers false with `why`, a few words that follow "is damaged: ".
bool read_meta(const PageReader& reader, std::uint64_t page, Meta& meta, std::string& why);

// Whether the commit that wrote the tree under `meta` calls itself by the number in `meta`.
bool check_commit_number(const PageReader& reader, const Meta& meta, std::string& why);

// Every page that can be reached is in the file, is what it should be, is reached once and is not free; keys are in
// order; counts agree. Beyond 65,536 pages (256 MiB) only the roots are looked at, so that a large store opens at once.
bool walk(const PageReader& reader, const Meta& meta, std::string& why);

}  // namespace sluice::store
