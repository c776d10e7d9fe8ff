// The hash functions that answers and files depend on, by their published names.
#pragma once
#include <cstdint>
#include <string_view>

namespace sluice {

// Source: xxHash specification, XXH64, seed 0. Module answers (`hash`, `bucket`) and stored checksums.
std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed = 0);

// Source: xxHash specification, XXH3 64 bits. Key distribution over shards and pools.
std::uint64_t xxh3_64(std::string_view bytes, std::uint64_t seed = 0);

// CRC-32C (Castagnoli), as stored in `.pmod` files. Source: RFC 3720, B.4.
std::uint32_t crc32c(std::string_view bytes);

// Which of `buckets` a hash goes to; growing from n to n+1 buckets moves 1/(n+1) of the keys.
// Shape:  buckets >= 1; the result is 0..buckets-1.
// Source: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014.
std::uint32_t jump_hash(std::uint64_t hash, std::uint32_t buckets);

}  // namespace sluice
