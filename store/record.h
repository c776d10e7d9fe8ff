// A document's record in `docs`: its revision, and its bytes or where they are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/batch.h"

namespace sluice::store {

inline constexpr std::size_t kRecordMax = 4080;                  // one LMDB page with its 16 byte header
inline constexpr std::size_t kRecordHead = 32;
inline constexpr std::size_t kInlineMax = kRecordMax - kRecordHead;
inline constexpr std::size_t kExtentHead = 8;
inline constexpr std::size_t kExtentBytes = kRecordMax - kExtentHead;   // payload of a full extent
inline constexpr std::size_t kRunsMax = 64;

struct Record {
  std::uint64_t revision = 0;
  bool deleted = false;
  std::uint8_t kind = 0;
  std::uint64_t bytes = 0;
  std::string_view inlined;          // when there are no runs
  std::vector<Run> runs;
};

// Absent: the bytes are not a record that was written for `key`. Life: `inlined` points into `bytes`.
std::optional<Record> decode_record(std::string_view key, std::string_view bytes);

// Shape: record.bytes is the length of what the runs hold, or of `inlined`.
void encode_record(std::string& out, std::string_view key, const Record& record);

// How many extents of how many bytes a run has: all are full but perhaps the last.
inline std::uint64_t extent_bytes(const Run& run, std::uint32_t index) {
  return index + 1 < run.count ? kExtentBytes : run.bytes - std::uint64_t{run.count - 1} * kExtentBytes;
}

// The checksum in front of an extent's payload.
std::uint64_t extent_sum(std::uint64_t id, std::string_view payload);

}  // namespace sluice::store
