// Applies events to one shard, one after the other, up to the commit that makes them durable together.
//
// Each event runs on the machine over three layers: the decoded states, what the burst has staged (records of tables,
// documents), the snapshot that the burst began with. A document's key is in a burst at most once after it was written, so documents are always read
// from the snapshot.
// Source: design module.md 3.8, 4.5; http.md, "An answer is durable".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine/burst_records.h"
#include "proxy/engine/document_edit.h"
#include "proxy/engine/environment.h"
#include "proxy/engine/seed.h"
#include "proxy/engine/served.h"
#include "proxy/engine/state_cache.h"
#include "proxy/engine/timers.h"
#include "proxy/event.h"
#include "store/batch.h"
#include "vm/machine.h"
#include "vm/orders.h"

namespace sluice::proxy {

// Where a burst ends at the latest. An event is never split, so the last one may go beyond.
inline constexpr std::size_t kBurstRecords = 10'000;
inline constexpr std::size_t kBurstBytes = std::size_t{16} << 20;
inline constexpr std::size_t kBurstEvents = 8'192;
inline constexpr std::uint64_t kBurstFuel = 5'000'000;   // about 50 ms: those before are not kept waiting longer

inline constexpr std::uint64_t kBurstSteppedOver = 200'000;   // keys that it removed: about 20 ms

// Thread: owner.
class Burst final : private vm::Host {
 public:
  Burst(Environment& environment, ServedPtr served);

  const ServedPtr& served() const { return served_; }
  // Between two bursts. The next commit records the module in the store's catalog.
  void swap(ServedPtr served, std::uint64_t now_ms);

  // Reads the states and the catalog from the snapshot, and forgets what was staged: at the start, and after a failed
  // commit. A catalog that is not the module's is replaced by the next commit.
  Result<void> load(const store::Snapshot& snapshot, std::uint64_t seq, std::uint64_t now_ms);
  // The same for a store that is being created: first values.
  void load_first(std::uint64_t now_ms);

  // Life: `snapshot` until end() or fail().
  void begin(const store::Snapshot& snapshot, std::uint64_t now_ms);
  // False: the burst must end before this event.
  bool takes(const Event& event) const;
  // Answers it. The answer may leave only after the commit.
  void apply(Event& event);
  // Event 0, once in a store's life. Returns why it failed; empty when it did not.
  std::string start();
  // False: timers that are due wait for the next burst, so that this one has room for requests.
  bool takes_timer() const;
  // Runs timer i of timers(). Returns why it failed; empty when it did not. Either way it has run.
  std::string run_timer(std::size_t i);
  Timers& timers() { return timers_; }
  const Timers& timers() const { return timers_; }

  // There is something to commit.
  bool changed() const { return changed_ > 0 || timers_.must_store(now_ms_); }
  std::uint64_t events_changed() const { return changed_; }
  std::uint64_t now_ms() const { return now_ms_; }
  std::uint64_t faults() const { return faults_; }
  // Something could not be read: the snapshot is of no more use, and the burst ends there.
  bool unread() const { return unread_; }
  // The batch to commit.
  store::Batch& stage();
  // It is durable.
  void committed();
  // Documents that are lent from the newest commit.
  bool lends_after() const { return !lend_after_.empty(); }
  void lend(const store::Snapshot& newest);
  void lend_nothing(Errc error);            // the newest commit cannot be read
  // After a commit, or without one when nothing changed.
  void end();
  // The commit failed: nothing of the burst holds, and load() comes before the next.
  void fail();

 private:
  void let_go();
  enum class Ran : std::uint8_t { fault, silent, replied };
  // Of the last run that failed. Life: `text` until the machine runs again.
  struct Failure {
    vm::Fault fault = vm::Fault::none;
    Errc error = Errc::none;               // the store could not be read
    std::string_view text;
    std::uint32_t line = 0;
  };

  void apply_view(Event& event);
  void apply_input(Event& event);
  void apply_object(Event& event);
  // Runs one handler, keeps or undoes what it did, and answers.
  Ran run(const Served::Input& in, const vm::Handler* handler, Event& event, bool object);
  vm::Event asked(std::size_t fields) const;
  void begin_event();
  // Whether the event under way could read all it asked for, as a code.
  Errc look();
  bool event_wrote() const { return states_.event_changed() || batch_.event_wrote(); }
  void keep_event();
  void undo_event();
  std::string failure() const;
  void answer_reply(const vm::Reply& reply, const Served::Input& in, Event& event);
  void answer_document(Event& event);
  std::size_t fields_of(const Served::Input& in, const Event& event);
  bool document_of(Event& event);

  // vm::Host
  bool state(std::uint16_t number, vm::Value& out) override { return states_.get(number, out); }
  void set_state(std::uint16_t number, const vm::Value& value) override { states_.set(number, value); }
  void clear_state(std::uint16_t number) override { states_.clear(number); }
  bool doc(vm::Value& out) override;
  bool has_doc() override { return document_.exists(); }
  std::uint64_t doc_bytes() override { return document_.bytes(); }
  double doc_revision() override { return static_cast<double>(document_.stored_revision()); }
  std::string_view doc_key() override { return document_.key(); }
  void doc_set(std::string_view content) override { document_.set(content); }
  void doc_delete() override { document_.erase(); }
  void doc_append(std::string_view content) override { document_.append(content); }
  void doc_splice(std::uint64_t at, std::uint64_t remove, std::string_view insert) override {
    document_.splice(at, remove, insert);
  }
  std::string_view seed() override { return seed_.bytes(); }
  const vm::Tables* tables() override { return served_->tables.get(); }
  vm::Records* records() override { return &records_; }
  vm::Orders* orders() override { return &orders_; }

  Environment& environment_;
  ServedPtr served_;
  ServedPtr stored_by_;                  // whose states the newest commit holds
  std::vector<ServedPtr> since_;         // the modules after it, up to the present one
  bool catalog_changed_ = false;
  bool unread_ = false;
  vm::Machine machine_;
  StateCache states_;
  store::Batch batch_;
  BurstRecords records_{batch_};
  vm::Orders orders_;
  Timers timers_;
  Failure failure_;
  Seed seed_;
  std::vector<vm::Value> fields_;
  Event second_;                         // takes what a key's up edge answers when the down edge's answer stands
  store::Document stored_;               // of the event under way
  DocumentEdit document_;
  const store::Snapshot* snapshot_ = nullptr;
  std::uint64_t seq_ = 0;                // events that have changed the store, the burst's included
  std::uint64_t now_ms_ = 0, changed_ = 0, fuel_ = 0, faults_ = 0;
  std::size_t events_ = 0;
  std::vector<Event*> lend_after_;       // their answers are the document as it is after the commit
};

}  // namespace sluice::proxy
