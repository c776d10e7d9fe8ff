// A folder for one test, gone after it; and the few calls that store tests repeat.
#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "store/store.h"

namespace sluice::store {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-store-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// A map that a sanitizer's address space has room for.
inline Options small_map() {
  Options options;
  options.map_bytes = std::uint64_t{64} << 30;
  return options;
}

inline std::unique_ptr<Store> open_store(const std::string& path, const Options& options = small_map()) {
  auto store = Store::open(path, options);
  if (!store) FAIL(store.error());
  return std::move(*store);
}

inline Result<void> commit(Store& store, const Batch& batch) {
  const Batch* one[] = {&batch};
  return store.commit(one);
}

inline Snapshot snapshot(Store& store) {
  Reader reader(store);
  auto s = reader.snapshot();
  REQUIRE(s);
  return *s;
}

inline DocumentWrite whole(std::string key, std::uint64_t revision, std::string_view bytes) {
  DocumentWrite d;
  d.key = std::move(key);
  d.revision = revision;
  d.pieces.push_back({bytes});
  return d;
}

inline DocumentWrite::Piece kept(std::uint64_t at, std::uint64_t length) { return {{}, true, at, length}; }

inline Result<void> write(Store& store, DocumentWrite document) {
  Batch batch;
  batch.write(std::move(document));
  return commit(store, batch);
}

inline std::string content(const Document& document) {
  std::string all;
  for (std::string_view piece : document.pieces) all += piece;
  return all;
}

// Bytes that differ at every place and by `seed`.
inline std::string pattern(std::size_t bytes, std::uint64_t seed) {
  std::string out(bytes, '\0');
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ull + 1;
  for (char& c : out) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x >> 32);
  }
  return out;
}

}  // namespace sluice::store
