// Whole numbers as the little-endian bytes that every file of a store uses.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

namespace sluice::store {

static_assert(std::endian::native == std::endian::little, "LMDB's files are native; a store's are little endian");

template <class T>
T read_at(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write_at(char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace sluice::store
