#include "proxy/engine/worker_engine.h"

#include <algorithm>
#include <utility>

#include "proxy/engine/answers.h"
#include "proxy/engine/fields.h"
#include "proxy/engine/lend.h"
#include "proxy/engine/resolve.h"
#include "vm/base/hash.h"

namespace sluice::proxy {
namespace {

const LocalStore& local(const StorePtr& store) { return static_cast<const LocalStore&>(*store); }

bool has_key(Verb verb) { return verb != Verb::view && verb != Verb::input; }

}  // namespace

// Modules that it has looked at may go.
WorkerEngine::~WorkerEngine() { slot_.turns.store(WorkerSlot::kEnded, std::memory_order_release); }

WorkerEngine::Near& WorkerEngine::near(const LocalStore& store) {
  const std::uint32_t id = store.id();
  if (id >= near_.size()) near_.resize(id + std::size_t{1});
  if (!near_[id]) near_[id] = std::make_unique<Near>(store.home());
  Near& found = *near_[id];
  if (!found.to_flush) {
    found.to_flush = true;
    touched_.push_back(&found);
  }
  return found;
}

bool WorkerEngine::prepare(Event& event, const Call& call) {
  const LocalStore& store = local(call.store);
  event.store = call.store;
  event.answer.reset();
  event.worker = index_;
  const Served* served = store.served();
  if (!resolve(event, call, *served)) return false;
  const HomePtr& home = store.home();
  if (!home || home->environment.failed()) {
    answer_store_error(event.answer, Errc::stopped);
    return false;
  }
  Near& here = near(store);
  if (here.seen != served) {
    // The count of the module itself is touched once per worker and module; the events count this one.
    here.module = store.lend_module(served);
    here.seen = served;
  }
  event.module = here.module;
  event.shard = store.shards() == 1 ? 0
                : has_key(event.verb) ? jump_hash(xxh3_64(event.key), store.shards())
                                      : index_ % store.shards();
  return true;
}

bool WorkerEngine::evaluate(Event& event) {
  const Served& served = *static_cast<const Served*>(event.module.get());
  const bool view = event.verb == Verb::view;
  if (view ? !served.views[event.number].here || event.from > kFromHere : event.verb != Verb::show || !served.show_here) return false;
  // Before the snapshot is taken; that of `retired` comes after.
  if (!served.settled.load(std::memory_order_acquire)) return false;
  Near& store = near(local(event.store));
  if (!(view ? evaluate_view(event, store, served) : evaluate_show(event, store, served))) return false;
  add(slot_.evaluated, 1);
  return true;
}

bool WorkerEngine::evaluate_view(Event& event, Near& store, const Served& served) {
  const Served::View& view = served.views[event.number];
  decode_fields(view.asked, event.fields, fields_.data());
  vm::Event asked;
  asked.fields = {fields_.data(), view.asked.size()};
  asked.now_ms = view.reads_now ? static_cast<double>(store.home->environment.clock_seen(core_->wall_ms())) : 0;
  asked.fuel = std::min(served.fuel, kFuelHereMost);
  do {
    Result<void> begun = store.host.begin(event.module);
    if (served.retired.load(std::memory_order_acquire)) return false;
    if (begun && view.reads_seq) {
      Result<std::uint64_t> seq = store.host.seq();
      if (store.host.stale()) continue;
      if (seq) asked.seq = static_cast<double>(*seq + 1);
      else begun = seq.error();
    }
    if (!begun) {
      answer_store_error(event.answer, begun.error().code);
      return true;
    }
    const vm::Outcome outcome =
        view.paged() ? machine_.page(*served.module, *view.declared, asked, store.host, event.from, event.count)
                     : machine_.view(*served.module, *view.declared, asked, store.host);
    if (store.host.stale()) continue;
    if (store.host.error().code != Errc::none) {
      answer_store_error(event.answer, store.host.error().code);
      return true;
    }
    if (outcome.elsewhere) return false;
    // A long text can cost more than the static bound says, and a page of many cells is ended by its fuel: both go to
    // the owner, who has more.
    if (asked.fuel < served.fuel && (outcome.fault == vm::Fault::limit || outcome.fuel_used >= asked.fuel)) return false;
    if (outcome.fault != vm::Fault::none) {
      answer_no_value(event.answer, view.declared->name);
      return true;
    }
    event.answer.type = content_type(outcome.reply.type);
    event.answer.body.text.assign(outcome.reply.text);
    return true;
  } while (true);
}

bool WorkerEngine::evaluate_show(Event& event, Near& store, const Served& served) {
  const Served::Input& in = served.inputs[*served.show];
  Answer& answer = event.answer;
  SnapshotHost& host = store.host;
  Result<void> begun = host.begin(event.module);
  if (begun) begun = host.open_document(event.key);
  if (served.retired.load(std::memory_order_acquire)) {
    host.edit().close();
    return false;
  }
  vm::Event asked;
  if (begun && served.show_reads_seq) {
    const Result<std::uint64_t> seq = host.seq();
    if (seq) asked.seq = static_cast<double>(*seq + 1);
    else begun = seq.error();
  }
  if (!begun) {
    answer_store_error(answer, begun.error().code);
    return true;
  }
  DocumentEdit& document = host.edit();
  if (in.down == nullptr) {
    answer.revision = document.present_revision();
    document.close();
    return true;
  }
  asked.now_ms = served.show_reads_now ? static_cast<double>(store.home->environment.clock_seen(core_->wall_ms())) : 0;
  asked.fuel = std::min(served.fuel, kFuelHereMost);
  const vm::Outcome outcome = machine_.handle(*served.module, *in.down, asked, host);
  const std::uint64_t present = document.present_revision();
  bool answered = true;
  if (host.error().code != Errc::none) {
    answer_store_error(answer, host.error().code);
  } else if (outcome.elsewhere || (outcome.fault == vm::Fault::limit && asked.fuel < served.fuel)) {
    answered = false;
  } else if (outcome.fault != vm::Fault::none) {
    answer_fault(answer, outcome.fault, outcome.text, true, present);
  } else {
    answer.revision = present;
    answer.type = content_type(outcome.reply.type);
    if (outcome.reply.kind == vm::ReplyKind::owned) answer.body.text.assign(outcome.reply.text);
    if (outcome.reply.kind == vm::ReplyKind::document)
      give_document(answer.body, host.document(), host.snapshot(), store.home->environment);
  }
  document.close();
  return answered;
}

void WorkerEngine::enqueue(EventPtr event) {
  Near& store = near(local(event->store));
  store.outgoing[event->shard].push_back(std::move(event));
}

void WorkerEngine::flush(const std::function<void(EventPtr)>& refused) {
  for (Near* store : touched_) {
    store->to_flush = false;
    store->host.rest();
    for (std::size_t shard = 0; shard < store->outgoing.size(); ++shard) {
      std::vector<EventPtr>& events = store->outgoing[shard];
      if (events.empty()) continue;
      store->home->owners[shard]->inbox().push_all(events);
      if (events.empty()) continue;
      refused_.swap(events);
      for (EventPtr& event : refused_) {
        event->answer.reset();
        answer_store_error(event->answer, Errc::store_busy);
        refused(std::move(event));
      }
      refused_.clear();
    }
  }
  touched_.clear();
  add(slot_.turns, 1);
  if ((slot_.turns.load(std::memory_order_relaxed) & 0xff) == 0) forget_closed();
}

void WorkerEngine::forget_closed() {
  for (std::unique_ptr<Near>& store : near_)
    if (store && store->home->released.load() && !store->to_flush) store.reset();
}

}  // namespace sluice::proxy
