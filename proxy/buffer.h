// Payload bytes that several holders share and nobody copies: a request's body on its way to an owner.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "proxy/budget.h"
#include "vm/base/check.h"

namespace sluice::proxy {

// Frozen once it is shared. Copies count; the last one gives its bytes back to the budget.
// Thread: any, once frozen; until then its maker's.
class Buffer {
 public:
  Buffer() = default;
  // An empty Buffer (operator bool false) when the budget has no room. `budget` may be null (tests, literals) and
  // must outlive the buffer.
  static Buffer make(std::size_t capacity_bytes, Budget* budget) {
    if (budget && !budget->take(capacity_bytes)) return {};
    Buffer b;
    b.held_ = std::make_shared<Held>(capacity_bytes, budget);
    return b;
  }
  static Buffer copy(std::string_view bytes, Budget* budget) {
    Buffer b = make(bytes.size(), budget);
    if (b) b.append(bytes);
    return b;
  }

  explicit operator bool() const { return held_ != nullptr; }
  std::string_view view() const { return held_ ? std::string_view(held_->bytes.get(), held_->size) : std::string_view(); }
  std::size_t size() const { return held_ ? held_->size : 0; }
  std::size_t capacity() const { return held_ ? held_->capacity : 0; }
  // Before it is shared only. The bytes must fit the capacity.
  void append(std::string_view bytes) {
    SLUICE_ASSERT(held_ && bytes.size() <= held_->capacity - held_->size);
    if (!bytes.empty()) __builtin_memcpy(held_->bytes.get() + held_->size, bytes.data(), bytes.size());
    held_->size += bytes.size();
  }
  void reset() { held_.reset(); }

 private:
  struct Held {
    Held(std::size_t n, Budget* b) : bytes(new char[n ? n : 1]), capacity(n), budget(b) {}
    ~Held() { if (budget) budget->give_back(capacity); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0, capacity;
    Budget* budget;
  };
  std::shared_ptr<Held> held_;
};

}  // namespace sluice::proxy
