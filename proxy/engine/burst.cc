#include "proxy/engine/burst.h"

#include <utility>

#include "proxy/engine/answers.h"
#include "proxy/engine/fields.h"
#include "proxy/engine/lend.h"
#include "proxy/engine/resolve.h"
#include "vm/image.h"

namespace sluice::proxy {
Burst::Burst(Environment& environment, ServedPtr served)
    : environment_(environment), served_(std::move(served)), stored_by_(served_), fields_(kMostFields + 1) {}

void Burst::swap(ServedPtr served, std::uint64_t now_ms) {
  catalog_changed_ = catalog_changed_ || served->catalog != served_->catalog;
  served_ = std::move(served);
  states_.swap(served_);
  // With the same states as before, those of the store are its too.
  if (since_.empty() && served_->settled.load(std::memory_order_relaxed)) stored_by_ = served_;
  else since_.push_back(served_);
  // What it brings is stored soon, also when no event changes anything: until then workers leave its views to the owner.
  if (!served_->settled.load(std::memory_order_relaxed)) timers_.store_soon();
  timers_.swap(*served_->module, now_ms);
  orders_.clear();
}

Result<void> Burst::load(const store::Snapshot& snapshot, std::uint64_t seq, std::uint64_t now_ms) {
  batch_.clear();
  orders_.clear();
  lend_after_.clear();
  seq_ = seq;
  const auto catalog = snapshot.get(vm::kCatalogKey);
  if (!catalog) return catalog.error();
  catalog_changed_ = !*catalog || **catalog != served_->catalog;
  if (Result<void> timers = timers_.load(*served_->module, snapshot, now_ms); !timers) return timers;
  // The store holds what the module means that was committed last.
  if (Result<void> states = states_.load(stored_by_, snapshot); !states) return states;
  for (const ServedPtr& next : since_) states_.swap(next);
  if (!served_->settled.load(std::memory_order_relaxed)) timers_.store_soon();
  return {};
}

void Burst::load_first(std::uint64_t now_ms) {
  states_.load_first(served_);
  timers_.load_first(*served_->module, now_ms);
}

void Burst::begin(const store::Snapshot& snapshot, std::uint64_t now_ms) {
  snapshot_ = &snapshot;
  records_.begin(&snapshot);
  now_ms_ = now_ms;
  changed_ = fuel_ = faults_ = 0;
  events_ = 0;
  unread_ = false;
}

bool Burst::takes(const Event& event) const {
  if (events_ == 0) return true;
  if (unread_ || events_ >= kBurstEvents || fuel_ >= kBurstFuel || batch_.bytes() >= kBurstBytes ||
      batch_.records() + states_.changed() >= kBurstRecords || records_.stepped_over() >= kBurstSteppedOver)
    return false;
  return event.verb == Verb::view || event.verb == Verb::input || !batch_.writes_document(event.key);
}

void Burst::apply(Event& event) {
  ++events_;
  event.answer.reset();
  if (event.module.get() != served_.get()) {
    const ServedPtr from = std::static_pointer_cast<const Served>(event.module);
    event.module = served_;
    if (!resolve_again(event, *from, *served_)) return;
  }
  switch (event.verb) {
    case Verb::view: return apply_view(event);
    case Verb::input: return apply_input(event);
    default: return apply_object(event);
  }
}

vm::Event Burst::asked(std::size_t fields) const {
  vm::Event event;
  event.fields = {fields_.data(), fields};
  event.now_ms = static_cast<double>(now_ms_);
  event.seq = static_cast<double>(seq_ + 1);
  event.fuel = served_->fuel;
  return event;
}

void Burst::begin_event() {
  seed_.next_event();
  batch_.begin_event();
  orders_.begin_event();
  records_.forget();
}

void Burst::keep_event() {
  if (event_wrote()) {
    ++changed_;
    ++seq_;
  }
  states_.keep_event();
  batch_.keep_event();
  orders_.keep_event();
}

void Burst::undo_event() {
  states_.undo_event();
  batch_.undo_event();
  orders_.undo_event();
}

Errc Burst::look() {
  const Errc error = records_.error().code;
  if (error == Errc::none) return error;
  unread_ = true;
  // Fences that were built over what could not be read count wrong.
  orders_.clear();
  return error;
}

std::string Burst::failure() const {
  std::string why(failure_.error != Errc::none ? name(failure_.error) : vm::name(failure_.fault));
  if (failure_.line != 0) why.append(" at line ").append(std::to_string(failure_.line));
  if (!failure_.text.empty()) why.append(", ").append(failure_.text);
  return why;
}

std::string Burst::start() {
  const vm::Handler* handler = served_->module->find_handler(0);
  if (handler == nullptr) return {};
  begin_event();
  const vm::Outcome outcome = machine_.handle(*served_->module, *handler, asked(0), *this);
  const Errc unread = look();
  if (outcome.fault == vm::Fault::none && unread == Errc::none) {
    keep_event();
    return {};
  }
  failure_ = {outcome.fault, unread, outcome.text, outcome.line};
  undo_event();
  return failure();
}

// Half of a burst is for its requests. The first one always fits.
bool Burst::takes_timer() const {
  return !unread_ && fuel_ < kBurstFuel / 2 && batch_.bytes() < kBurstBytes / 2 &&
         batch_.records() + states_.changed() < kBurstRecords / 2 && records_.stepped_over() < kBurstSteppedOver / 2;
}

std::string Burst::run_timer(std::size_t i) {
  timers_[i].last_ms = now_ms_;
  const Served::Input& in = served_->inputs[timers_[i].input];
  second_.reset();
  const Ran ran = run(in, in.down, second_, false);
  return ran == Ran::fault ? failure() : std::string();
}

void Burst::apply_view(Event& event) {
  const Served::View& view = served_->views[event.number];
  decode_fields(view.asked, event.fields, fields_.data());
  const vm::Event given = asked(view.asked.size());
  records_.forget();
  const vm::Outcome outcome =
      view.paged() ? machine_.page(*served_->module, *view.declared, given, *this, event.from, event.count)
                   : machine_.view(*served_->module, *view.declared, given, *this);
  fuel_ += outcome.fuel_used;
  if (const Errc error = look(); error != Errc::none) return answer_store_error(event.answer, error);
  if (outcome.fault != vm::Fault::none) return answer_no_value(event.answer, view.declared->name);
  event.answer.type = content_type(outcome.reply.type);
  event.answer.body.text.assign(outcome.reply.text);
}

std::size_t Burst::fields_of(const Served::Input& in, const Event& event) {
  decode_fields(in.asked, event.fields, fields_.data());
  if (!in.takes_body) return in.asked.size();
  fields_[in.asked.size()] = vm::Value::span(event.body.view(), vm::type_of(in.body.base));
  return in.asked.size() + 1;
}

void Burst::apply_input(Event& event) {
  const Served::Input& in = served_->inputs[event.number];
  const Ran down = run(in, in.down, event, false);
  if (in.declared->kind != vm::InputKind::key) return;
  // Both edges are delivered whatever the first one says; the answer is the first fault, else the first reply.
  if (down == Ran::silent) {
    run(in, in.up, event, false);
    return;
  }
  second_.reset();
  if (run(in, in.up, second_, false) == Ran::fault && down != Ran::fault) std::swap(event.answer, second_.answer);
}

bool Burst::document_of(Event& event) {
  Result<store::Document> stored = snapshot_->document(event.key, std::move(stored_));
  if (!stored) {
    answer_store_error(event.answer, stored.error().code);
    return false;
  }
  stored_ = std::move(*stored);
  document_.open(stored_, event.key);
  return true;
}

void Burst::apply_object(Event& event) {
  if (!document_of(event)) return;
  const std::uint64_t present = document_.present_revision();
  const bool holds = event.verb == Verb::show ||
                     (event.condition == Condition::absent ? present == 0 : present != 0 && event.matches(present));
  if (!holds) {
    answer_conflict(event.answer, present);
    return document_.close();
  }
  const Served::Input& in = served_->inputs[event.number];
  const Ran ran = run(in, in.down, event, true);
  if (ran != Ran::fault) event.answer.revision = document_.revision_after();
  if (ran == Ran::silent && event.verb == Verb::remove) event.answer.status = 204;
  document_.close();
}

Burst::Ran Burst::run(const Served::Input& in, const vm::Handler* handler, Event& event, bool object) {
  if (handler == nullptr) return Ran::silent;
  begin_event();
  const vm::Event given = asked(fields_of(in, event));
  const vm::Outcome outcome = machine_.handle(*served_->module, *handler, given, *this);
  fuel_ += outcome.fuel_used;
  const Errc unread = look();
  if (outcome.fault != vm::Fault::none || unread != Errc::none) {
    ++faults_;
    failure_ = {outcome.fault, unread, outcome.text, outcome.line};
    undo_event();
    if (unread != Errc::none) answer_store_error(event.answer, unread);
    else answer_fault(event.answer, outcome.fault, outcome.text, object, object ? document_.present_revision() : 0);
    return Ran::fault;
  }
  if (object && document_.changed())
    document_.write_to(batch_, static_cast<std::uint8_t>(served_->module->documents.kind), event.body.view());
  answer_reply(outcome.reply, in, event);
  keep_event();
  return outcome.reply.kind == vm::ReplyKind::none ? Ran::silent : Ran::replied;
}

void Burst::answer_reply(const vm::Reply& reply, const Served::Input& in, Event& event) {
  Answer& answer = event.answer;
  answer.type = content_type(reply.type);
  switch (reply.kind) {
    case vm::ReplyKind::none:
      answer.type = ContentType::octets;
      break;
    case vm::ReplyKind::owned:
      answer.body.text.assign(reply.text);
      break;
    case vm::ReplyKind::field:
      if (in.takes_body && reply.field == in.asked.size()) {
        if (event.body) {
          answer.body.buffer = event.body;
          answer.body.buffer_size = event.body.size();
        }
      } else {
        answer.body.text.assign(fields_[reply.field].text());
      }
      break;
    case vm::ReplyKind::document:
      answer_document(event);
      break;
  }
}

void Burst::answer_document(Event& event) {
  Body& body = event.answer.body;
  if (document_.bytes() <= kCopyMax) {
    document_.append_to(body.text);
  } else if (!document_.changed()) {
    body.loan = std::make_shared<Lent>(environment_.shared(), snapshot_->loan());
    body.pieces = stored_.pieces;
  } else {
    // Its bytes are lent from the commit that is still to come.
    lend_after_.push_back(&event);
  }
}

bool Burst::doc(vm::Value& out) {
  if (!document_.exists()) return false;
  const bool bytes = served_->module->documents.kind == vm::DocumentKind::bytes;
  out = vm::Value::span(document_.whole(), bytes ? vm::Type::bytes : vm::Type::text);
  return true;
}

store::Batch& Burst::stage() {
  states_.stage(batch_);
  timers_.stage(batch_);
  if (catalog_changed_) batch_.put(vm::kCatalogKey, served_->catalog);
  return batch_;
}

void Burst::lend(const store::Snapshot& newest) {
  for (Event* event : lend_after_) {
    Result<store::Document> document = newest.document(event->key);
    if (document) give_document(event->answer.body, *document, newest, environment_);
    else answer_unreadable(event->answer, document.error().code);
  }
}

void Burst::lend_nothing(Errc error) {
  for (Event* event : lend_after_) answer_unreadable(event->answer, error);
}

void Burst::committed() {
  if (since_.empty()) return;
  stored_by_ = served_;
  since_.clear();
  served_->settled.store(true, std::memory_order_release);
}

void Burst::end() {
  if (changed()) {
    states_.committed();
    timers_.committed();
    catalog_changed_ = false;
  }
  let_go();
}

void Burst::fail() {
  timers_.failed();
  let_go();
}

void Burst::let_go() {
  // Also when nothing is left of what was written: the overlay's tree is as large as the events that failed made it.
  batch_.clear();
  lend_after_.clear();
  snapshot_ = nullptr;
}

}  // namespace sluice::proxy
