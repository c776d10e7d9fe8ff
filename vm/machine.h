// The register machine: runs one handler or view of a proven module.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "vm/module.h"

namespace sluice::vm {

class Orders;
class Records;
class Tables;

// What a module reads and writes while it runs; the engine implements it over a store.
// Thread: the machine's. Life: spans given out stay good until the event ends.
class Host {
 public:
  virtual ~Host() = default;

  // False: the state has no value now (a `?` state).
  virtual bool state(std::uint16_t number, Value& out) = 0;
  // `value` has passed narrow(). Records the old value for undo.
  virtual void set_state(std::uint16_t number, const Value& value) = 0;
  virtual void clear_state(std::uint16_t number) = 0;

  // The document of a keyed message. `doc` gives its whole content as one span; false: there is none.
  virtual bool doc(Value& out) = 0;
  virtual bool has_doc() = 0;
  virtual std::uint64_t doc_bytes() = 0;      // 0 when there is none
  virtual double doc_revision() = 0;          // 0 for a key never written
  virtual std::string_view doc_key() = 0;
  // Sizes have been checked against the module's `max`; `at` and `remove` lie inside the document.
  virtual void doc_set(std::string_view content) = 0;
  virtual void doc_delete() = 0;              // there is one
  virtual void doc_append(std::string_view content) = 0;
  virtual void doc_splice(std::uint64_t at, std::uint64_t remove, std::string_view insert) = 0;

  // 32 secret bytes of the event; asked only by functions that use chance.
  virtual std::string_view seed() = 0;

  // Tables; asked only of hosts of modules that have some.
  virtual const Tables* tables() { return nullptr; }
  virtual Records* records() { return nullptr; }
  // Null: positions are known elsewhere (Outcome::elsewhere).
  virtual Orders* orders() { return nullptr; }
};

struct Event {
  std::span<const Value> fields;              // in declared order, each already narrowed
  double now_ms = 0;
  double seq = 0;
  std::uint64_t fuel = kFuel;
};

enum class ContentType : std::uint8_t { octets = 0, text = 1, json = 2 };

enum class ReplyKind : std::uint8_t {
  none,      // no reply, or `reply` alone: an empty body
  owned,     // Reply::text, in the machine's buffer
  field,     // the request's field `field`, borrowed
  document,  // the document as it is after the event, lent
};
struct Reply {
  ReplyKind kind = ReplyKind::none;
  ContentType type = ContentType::octets;
  std::uint8_t field = 0;
  std::string_view text;                      // Life: until the machine runs again
};

// Fault::none: `reply` holds. Otherwise the event must be undone, and `text` is what the module said, if anything.
struct Outcome {
  Fault fault = Fault::none;
  std::string_view text;                      // Life: until the machine runs again
  Reply reply;
  bool wrote = false;                         // a state or the document was written (even to the same value)
  bool elsewhere = false;                     // it needs orders, which this host has not: nothing else of this holds
  std::uint64_t fuel_used = 0;
  std::uint32_t line = 0;                     // of the fault, when the module carries lines; for the log
};

// Thread: the one that made it. Holds the arena (1 MiB) and the frames; nothing of a module or an event is kept
// between calls, so one machine serves every module of its thread.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Outcome handle(const Module& module, const Handler& handler, const Event& event, Host& host);

  // The value of a view as text in Outcome::reply (kind owned, type text). Absent: Fault::not_found.
  // A view that faults for another reason has no value either (404 `no_value`); the fault goes to the log.
  Outcome view(const Module& module, const View& view, const Event& event, Host& host);

  // A page of a table view: {"rows":N,"from":F,"items":[{...},...]}, json. `from` is brought down to the number of rows,
  // `count` to 1,000. Each cell is its own run with its own fuel; a page ends early, after a whole row, once its cells
  // together used the event's fuel or its text passed 1 MiB. A fault of the rows themselves, or of `where`, is the
  // outcome's.
  Outcome page(const Module& module, const View& view, const Event& event, Host& host, std::uint64_t from,
               std::uint64_t count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::vm
