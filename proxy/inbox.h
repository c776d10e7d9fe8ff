// A bounded queue into one thread: the only way anything crosses threads.
//
// Its name says who reads it and what travels ("owner.carts.events", "worker.3.results"), and is its line in the stats
// and the word to search for in a log.
#pragma once
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "proxy/wake.h"
#include "vm/base/result.h"
#include "vm/base/thread_check.h"

namespace sluice::proxy {

// Thread: push() and push_all() from any thread; the rest only from its reader, the thread that drains it.
// Life:   outlives its writers: they are joined first.
template <class Message>
class Inbox {
 public:
  // Units: capacity counts messages; storage is reserved here and never grows.
  Inbox(std::string name, std::size_t capacity) : name_(std::move(name)), capacity_(capacity) {
    inbox_.reserve(capacity);
    batch_.reserve(capacity);
  }

  // Errors: Errc::full, with `m` left untouched. The writer then answers its own client (503); it never waits,
  //         because a worker that waits stalls every connection it has.
  Result<void> push(Message&& m) {
    bool ring = false;
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      if (inbox_.size() >= capacity_) return fail(Errc::full, "inbox full");
      ring = inbox_.empty();
      inbox_.push_back(std::move(m));
    }
    if (ring) wake_.ring();
    return {};
  }

  // Moves as many as fit, oldest first, with one lock and at most one wake-up; `from` keeps the rest.
  // Returns how many went.
  std::size_t push_all(std::vector<Message>& from) {
    std::size_t n = 0;
    bool ring = false;
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      ring = inbox_.empty();
      while (n < from.size() && inbox_.size() < capacity_) inbox_.push_back(std::move(from[n++]));
    }
    if (n == from.size()) from.clear();
    else from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(n));
    if (ring && n > 0) wake_.ring();
    return n;
  }

  // Hands each waiting message to `f`, oldest first; what arrives meanwhile waits for the next call.
  // Returns how many, in messages.
  template <class F>
  std::size_t drain(F&& f) {
    reader_.check();
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      batch_.swap(inbox_);
    }
    for (Message& m : batch_) f(std::move(m));
    const std::size_t n = batch_.size();
    batch_.clear();
    return n;
  }

  // For the reader's loop: readable when there is something to drain.
  const Wake& wake() const { return wake_; }
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
  const std::size_t capacity_;
  Wake wake_;                   // rung when the inbox was empty: once per batch, not per message
  ThreadCheck reader_;
  std::mutex mutex_;            // held for a push_back or a swap; never while a message is handled
  std::vector<Message> inbox_;  // guarded by mutex_
  std::vector<Message> batch_;  // the reader's, so that draining does not hold the lock
};

}  // namespace sluice::proxy
