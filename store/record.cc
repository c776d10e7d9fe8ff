// A record, little endian (a value of `docs`; its key is the document's):
//
//    0  u64  revision, 1 or more
//    8  u8   form: 1
//    9  u8   flags: 1 deleted, 2 extents
//   10  u8   kind, the writer's
//   11  u8   0
//   12  u32  number of runs; 0 without extents
//   16  u64  length of the document in bytes
//   24  u64  xxh64 of all other bytes, seeded with the key's xxh64
//   32       the document's bytes, or per run: u64 first extent, u32 extents, u32 0, u64 bytes
//
// An extent (a value of `ext`; its key is a u64 that is never used again):
//
//    0  u64  xxh64 of the payload, seeded with the extent's number
//    8       payload, 1..4072 bytes; all extents of a run are full but perhaps its last
#include "store/record.h"

#include "store/bytes.h"
#include "vm/base/hash.h"

namespace sluice::store {

namespace {
constexpr std::uint8_t kForm = 1;
constexpr std::uint8_t kDeleted = 1, kExtents = 2;
constexpr std::size_t kRunBytes = 24;

std::uint64_t record_sum(std::string_view key, std::string_view record) {
  return xxh64(record.substr(kRecordHead), xxh64(record.substr(0, 24), xxh64(key)));
}
}  // namespace

std::uint64_t extent_sum(std::uint64_t id, std::string_view payload) { return xxh64(payload, id); }

std::optional<Record> decode_record(std::string_view key, std::string_view bytes) {
  if (bytes.size() < kRecordHead || bytes.size() > kRecordMax) return std::nullopt;
  if (read_at<std::uint64_t>(bytes.data() + 24) != record_sum(key, bytes)) return std::nullopt;
  const std::uint8_t flags = read_at<std::uint8_t>(bytes.data() + 9);
  if (bytes[8] != kForm || (flags & ~(kDeleted | kExtents)) != 0) return std::nullopt;
  Record record;
  record.revision = read_at<std::uint64_t>(bytes.data());
  record.deleted = (flags & kDeleted) != 0;
  record.kind = read_at<std::uint8_t>(bytes.data() + 10);
  record.bytes = read_at<std::uint64_t>(bytes.data() + 16);
  const auto count = read_at<std::uint32_t>(bytes.data() + 12);
  const std::string_view rest = bytes.substr(kRecordHead);
  if ((flags & kExtents) == 0) {
    if (count != 0 || rest.size() != record.bytes) return std::nullopt;
    record.inlined = rest;
    return record;
  }
  if (count == 0 || rest.size() != count * kRunBytes) return std::nullopt;
  record.runs.reserve(count);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const char* at = rest.data() + i * kRunBytes;
    const Run run{read_at<std::uint64_t>(at), read_at<std::uint32_t>(at + 8), read_at<std::uint64_t>(at + 16)};
    if (run.count == 0 || run.bytes > std::uint64_t{run.count} * kExtentBytes ||
        run.bytes <= std::uint64_t{run.count - 1} * kExtentBytes)
      return std::nullopt;
    sum += run.bytes;
    record.runs.push_back(run);
  }
  if (sum != record.bytes) return std::nullopt;
  return record;
}

void encode_record(std::string& out, std::string_view key, const Record& record) {
  const std::size_t size =
      kRecordHead + (record.runs.empty() ? record.inlined.size() : record.runs.size() * kRunBytes);
  out.assign(size, '\0');
  char* to = out.data();
  write_at<std::uint64_t>(to, record.revision);
  write_at<std::uint8_t>(to + 8, kForm);
  write_at<std::uint8_t>(to + 9, static_cast<std::uint8_t>((record.deleted ? kDeleted : 0) |
                                                           (record.runs.empty() ? 0 : kExtents)));
  write_at<std::uint8_t>(to + 10, record.kind);
  write_at<std::uint32_t>(to + 12, static_cast<std::uint32_t>(record.runs.size()));
  write_at<std::uint64_t>(to + 16, record.bytes);
  if (record.runs.empty() && !record.inlined.empty())
    std::memcpy(to + kRecordHead, record.inlined.data(), record.inlined.size());
  for (std::size_t i = 0; i < record.runs.size(); ++i) {
    char* at = to + kRecordHead + i * kRunBytes;
    write_at<std::uint64_t>(at, record.runs[i].first);
    write_at<std::uint32_t>(at + 8, record.runs[i].count);
    write_at<std::uint64_t>(at + 16, record.runs[i].bytes);
  }
  write_at<std::uint64_t>(to + 24, record_sum(key, out));
}

}  // namespace sluice::store
