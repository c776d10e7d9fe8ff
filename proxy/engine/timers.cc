#include "proxy/engine/timers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace sluice::proxy {
namespace {

constexpr std::string_view kPrefix{"\x01\x02", 2};
constexpr std::string_view kBehind{"\x01\x03", 2};
constexpr std::uint64_t kLookMs = 60'000;

std::string encode(std::uint64_t ms) {
  std::string bytes(sizeof ms, '\0');
  for (std::size_t i = 0; i < sizeof ms; ++i) bytes[i] = static_cast<char>(ms >> (8 * i));
  return bytes;
}

std::optional<std::uint64_t> decode(std::string_view bytes) {
  std::uint64_t ms = 0;
  if (bytes.size() != sizeof ms) return std::nullopt;
  for (std::size_t i = 0; i < sizeof ms; ++i) ms |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return ms;
}

}  // namespace

// Timers of `module`; those that were there keep what was known of them.
void Timers::take(const vm::Module& module, std::uint64_t now_ms) {
  std::vector<Timer> before = std::move(timers_);
  timers_.clear();
  for (std::uint32_t i = 0; i < module.inputs.size(); ++i) {
    const vm::Input& input = module.inputs[i];
    if (input.kind != vm::InputKind::timer) continue;
    Timer timer;
    timer.key = std::string(kPrefix) + input.name;
    const auto known = std::find_if(before.begin(), before.end(), [&](const Timer& t) { return t.key == timer.key; });
    if (known != before.end()) {
      timer = std::move(*known);
      before.erase(known);
    } else {
      timer.last_ms = now_ms;
      must_store_ = true;
    }
    timer.input = i;
    timer.every_ms = static_cast<std::uint64_t>(input.every_ms);
    timers_.push_back(std::move(timer));
  }
  for (Timer& timer : before) gone_.push_back(std::move(timer.key));
  must_store_ = must_store_ || !gone_.empty();
}

Result<void> Timers::load(const vm::Module& module, const store::Snapshot& snapshot, std::uint64_t now_ms) {
  // What the store does not have: how often they failed, and what was said of it.
  const std::vector<Timer> before = std::exchange(timers_, {});
  gone_.clear();
  must_store_ = false;
  std::array<store::Entry, 16> entries;
  std::string from(kPrefix);
  for (;;) {
    const Result<std::size_t> read = snapshot.scan({from, kBehind}, entries);
    if (!read) return read.error();
    for (std::size_t i = 0; i < *read; ++i) {
      Timer timer;
      timer.key = entries[i].key;
      timer.stored_ms = decode(entries[i].value);
      if (!timer.stored_ms) return fail(Errc::damaged, "the last run of a timer is not a time");
      timer.last_ms = *timer.stored_ms;
      timers_.push_back(std::move(timer));
    }
    if (*read < entries.size()) break;
    from = timers_.back().key + '\0';
  }
  take(module, now_ms);
  for (Timer& timer : timers_) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const Timer& t) { return t.key == timer.key; });
    if (known == before.end()) continue;
    timer.failures = known->failures;
    timer.said_ms = known->said_ms;
  }
  return {};
}

void Timers::load_first(const vm::Module& module, std::uint64_t now_ms) {
  timers_.clear();
  gone_.clear();
  must_store_ = false;
  take(module, now_ms);
}

void Timers::swap(const vm::Module& module, std::uint64_t now_ms) { take(module, now_ms); }

std::uint64_t Timers::due_ms(std::size_t i) const {
  return std::max(timers_[i].last_ms + timers_[i].every_ms, held_until_ms_);
}

std::optional<std::uint64_t> Timers::next_ms() const {
  if (must_store_) return held_until_ms_;
  if (timers_.empty() || !by_themselves_) return std::nullopt;
  std::uint64_t next = due_ms(0);
  for (std::size_t i = 1; i < timers_.size(); ++i) next = std::min(next, due_ms(i));
  return next;
}

bool Timers::wants(std::uint64_t now_ms) const {
  const std::optional<std::uint64_t> next = next_ms();
  return next && *next <= now_ms;
}

int Timers::wait_ms(std::uint64_t wall_ms) const {
  const std::optional<std::uint64_t> next = next_ms();
  if (!next) return -1;
  return *next <= wall_ms ? 0 : static_cast<int>(std::min(*next - wall_ms, kLookMs));
}

void Timers::stage(store::Batch& batch) const {
  for (const std::string& key : gone_) batch.erase(key);
  for (const Timer& timer : timers_)
    if (timer.stored_ms != timer.last_ms) batch.put(timer.key, encode(timer.last_ms));
}

void Timers::committed() {
  gone_.clear();
  must_store_ = false;
  for (Timer& timer : timers_) timer.stored_ms = timer.last_ms;
}

void Timers::failed() {
  for (Timer& timer : timers_) timer.last_ms = timer.stored_ms.value_or(timer.last_ms);
}

}  // namespace sluice::proxy
