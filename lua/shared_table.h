// A bounded table of small values by key that all workers share, and that survives reloads: `sluice.shared.NAME`.
//
// One lock, held for one look-up and the copy of one value. The least recently used entry goes when there is no room; one
// that has expired is gone for whoever looks, and its room is taken back when it is met.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::lua {

struct SharedValue {
  enum class Type : std::uint8_t { boolean, number, text };
  Type type = Type::boolean;
  double number = 0;                 // of a boolean: 0 or 1
  std::string_view text;
};

enum class SharedPut : std::uint8_t { done, exists, absent, no_room, no_number, too_large };

// Units: times are microseconds of the monotonic clock; `expires_us` 0: never.
// Thread: any.
class SharedTable {
 public:
  static constexpr std::size_t kKeyBytes = 4096;
  static constexpr std::uint64_t kLeastBytes = 4096;

  // Units: bytes of keys, values and what they are kept in.
  explicit SharedTable(std::uint64_t limit_bytes);
  ~SharedTable();
  SharedTable(const SharedTable&) = delete;
  SharedTable& operator=(const SharedTable&) = delete;
  // A smaller limit is reached by and by, as entries are put.
  void set_limit(std::uint64_t bytes);
  // Buckets for as much as that, when it is far more than there are for now. What is kept moves over as the table is used.
  void make_buckets_for(std::uint64_t limit_bytes);

  // A text is copied into `room`, where the value then points.
  std::optional<SharedValue> get(std::string_view key, std::uint64_t now_us, std::string& room);
  enum class When : std::uint8_t { always, absent, present };
  SharedPut put(std::string_view key, const SharedValue& value, When when, std::uint64_t now_us, std::uint64_t expires_us);
  // Adds to a number; of an absent key `initial`, which then expires at `expires_us`, is what it is added to. `sum` is what there is now.
  // Nothing is changed when that is beyond what a double holds.
  SharedPut increment(std::string_view key, double by, std::optional<double> initial, std::uint64_t now_us,
                      std::uint64_t expires_us, double& sum);
  bool remove(std::string_view key, std::uint64_t now_us);
  bool expire(std::string_view key, std::uint64_t now_us, std::uint64_t expires_us);
  // When it expires; nothing: it is not there.
  std::optional<std::uint64_t> expires(std::string_view key, std::uint64_t now_us);
  // The most recently used first.
  std::vector<std::string> keys(std::size_t most, std::uint64_t now_us);
  void clear();

  struct Stats {
    std::uint64_t entries = 0, bytes = 0, limit_bytes = 0, hits = 0, misses = 0, evicted = 0;
  };
  Stats stats();

 private:
  // Followed by the key's bytes and then the text's.
  struct Entry {
    Entry* next;                     // of the same bucket
    Entry* newer;
    Entry* older;
    std::uint64_t hash, expires_us;
    double number;
    std::uint32_t key_bytes, text_bytes, epoch;
    SharedValue::Type type;
    char* bytes() { return reinterpret_cast<char*>(this + 1); }
    std::string_view key() { return {bytes(), key_bytes}; }
    std::string_view text() { return {bytes() + key_bytes, text_bytes}; }
  };
  // How many make room for one: a worker must not stand while thousands of small entries go for a large one.
  static constexpr int kEvictions = 1000;

  static std::uint64_t cost(std::size_t key_bytes, std::size_t text_bytes);
  struct Buckets {
    std::size_t count = 0;
    std::unique_ptr<Entry*[], void (*)(void*)> first{nullptr, std::free};
    Entry*& of(std::uint64_t hash) { return first[hash & (count - 1)]; }
  };
  static Buckets make_buckets(std::uint64_t limit_bytes);
  Entry*& bucket(std::uint64_t hash) {
    return fewer_.count != 0 && (hash & (fewer_.count - 1)) >= moved_ ? fewer_.of(hash) : buckets_.of(hash);
  }
  void move_some();                              // of `fewer_`
  bool alive(const Entry& e, std::uint64_t now_us) const {
    return e.epoch == epoch_ && (e.expires_us == 0 || e.expires_us > now_us);
  }
  Entry* find(std::string_view key, std::uint64_t hash, std::uint64_t now_us);   // drops one that is dead
  bool make_room(std::uint64_t bytes, const Entry* replaced);   // which is the newest, and stays when there is no room
  Entry* insert(std::string_view key, std::uint64_t hash, std::size_t text_bytes);
  static void assign(Entry& e, const SharedValue& value);
  void drop(Entry* e);
  void link(Entry* e);
  void unlink(Entry* e);
  void touch(Entry* e);

  std::mutex mutex_;                 // held for one entry's worth of work; all below is guarded by it
  const std::uint64_t seed_;         // so that nobody can choose keys that meet in one bucket
  Buckets buckets_;
  Buckets fewer_;                    // those of before, of which the first `moved_` have been moved: all at once would hold the lock for long
  std::size_t moved_ = 0;
  Entry* newest_ = nullptr;
  Entry* oldest_ = nullptr;
  std::uint64_t limit_bytes_, bytes_ = 0, entries_ = 0, hits_ = 0, misses_ = 0, evicted_ = 0;
  std::uint32_t epoch_ = 0;          // clear() makes all of an earlier one dead
};

}  // namespace sluice::lua
