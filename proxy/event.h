// What a worker asks a store, and what the store answers: one pooled object that makes the round trip.
//
// A worker fills the first half and gives it to an owner; the owner fills the second and sends the same object back to
// the worker's results inbox, where its ticket finds who waits, or nobody. Strings keep their capacity over the trip,
// so a warm request allocates nothing.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/body.h"
#include "vm/base/errc.h"

namespace sluice::proxy {

// Names what waits for an answer without pointing at it. Shape: a slot of its worker's ticket table and the
// generation it had; `tag` is the waiter's own (which of its events).
struct Ticket {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;   // 0: nobody waits
  std::uint32_t tag = 0;
};

enum class Verb : std::uint8_t { view, input, show, edit, remove };
enum class Condition : std::uint8_t { none, absent, match };   // If-None-Match: *; If-Match: "REV"
// The revisions that an If-Match lists beyond the first (`"3", "4"`). In place: such lists are short.
struct MoreRevisions {
  std::array<std::uint64_t, 7> at;              // the first `count` mean something
  std::uint8_t count = 0;
};
enum class ContentType : std::uint8_t { octets, text, json };

// How a store answered. `error == none` is success.
struct Answer {
  std::uint16_t status = 200;
  Errc error = Errc::none;
  ContentType type = ContentType::octets;
  std::uint64_t revision = 0;     // the ETag; 0: none
  Body body;                      // of a failure: the module's own words, or one line that ends in \n
  void reset() {
    status = 200;
    error = Errc::none;
    type = ContentType::octets;
    revision = 0;
    body.reset();
  }
};

class Store;                      // proxy/engine.h

// Owner: whoever holds the pointer. Thread: moves with it.
struct Event {
  // Asked. Set by Engine::prepare from a Call, except ticket, worker and journey, which are the worker's.
  Ticket ticket;
  std::uint16_t worker = 0;       // whose results inbox it goes back to
  Verb verb = Verb::view;
  bool writes = false;            // may change the store: reads of the same client wait behind it
  std::uint32_t number = 0;       // of the view or input in its module
  std::uint32_t shard = 0;
  Condition condition = Condition::none;
  std::uint64_t revision = 0;     // of Condition::match
  MoreRevisions more;             // the same, when several would do
  std::string key;                // of an object
  std::uint64_t from = 0, count = 0;   // of a table view: which rows, and how many at most
  std::string fields;             // the engine's encoding of a message's short fields or a view's parameters
  Buffer body;
  std::shared_ptr<const void> module;   // the module it was resolved against
  std::shared_ptr<Store> store;

  // Answered.
  Answer answer;

  // Does Condition::match hold for a document at this revision? What does not exist matches nothing.
  bool matches(std::uint64_t present) const {
    if (present == revision) return true;
    for (std::uint8_t i = 0; i < more.count; ++i)
      if (more.at[i] == present) return true;
    return false;
  }

  void reset() {
    ticket = {};
    verb = Verb::view;
    writes = false;
    number = shard = 0;
    condition = Condition::none;
    revision = 0;
    more.count = 0;
    from = count = 0;
    key.clear();
    fields.clear();
    body.reset();
    module.reset();
    store.reset();
    answer.reset();
  }
};
using EventPtr = std::unique_ptr<Event>;

}  // namespace sluice::proxy
