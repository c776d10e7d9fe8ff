#include "tools/player.h"

#include <algorithm>
#include <utility>

#include "proxy/engine/answers.h"
#include "proxy/engine/fields.h"
#include "proxy/engine/local_store.h"
#include "proxy/engine/resolve.h"
#include "vm/catalog.h"

namespace sluice::tools {
Player::Player(proxy::ServedPtr served, std::uint64_t clock_ms)
    : served_(std::move(served)), store_(*served_->module), fields_(proxy::kMostFields + 1), now_ms_(clock_ms) {
  proxy::StoreSpec spec;
  spec.name = served_->module->name;
  named_ = std::make_shared<proxy::LocalStore>(spec, std::string(), 0, served_, nullptr);
}

Result<std::unique_ptr<Player>, std::string> Player::make(std::unique_ptr<const vm::Module> module,
                                                          std::uint64_t clock_ms) {
  const vm::Catalog catalog = vm::first_catalog(*module);
  std::unique_ptr<Player> player(new Player(proxy::serve(std::move(module), vm::kFuel, catalog), clock_ms));
  if (std::string why = player->start(); !why.empty()) return "`on start` fails: " + why;
  return player;
}

std::string Player::start() {
  const vm::Handler* handler = module().find_handler(0);
  if (handler == nullptr) return {};
  store_.begin_event({});
  const vm::Outcome outcome = machine_.handle(module(), *handler, asked(0), store_);
  if (outcome.fault == vm::Fault::none) {
    if (store_.keep_event()) ++seq_;
    return {};
  }
  store_.undo_event();
  std::string why(vm::name(outcome.fault));
  if (!outcome.text.empty()) why.append(", ").append(outcome.text);
  return why;
}

vm::Event Player::asked(std::size_t fields) const {
  vm::Event out;
  out.fields = {fields_.data(), fields};
  out.now_ms = static_cast<double>(now_ms_);
  out.seq = static_cast<double>(seq_ + 1);
  out.fuel = served_->fuel;
  return out;
}

Answer Player::ask(std::string_view method, std::string_view target, const Headers& headers, std::string_view body) {
  own_words_ = false;
  fuel_used_ = fuel_bound_ = 0;
  return call_over_http(method, target, headers, body, named_, own_words_,
                        [this](const proxy::Call& call, proxy::Answer& answer) {
                          proxy::Event event;
                          if (proxy::resolve(event, call, *served_)) apply(event);
                          answer = std::move(event.answer);
                        });
}

Answer Player::fire(std::string_view timer, bool& found) {
  const std::optional<std::uint32_t> number = served_->find_input(timer);
  found = number && served_->inputs[*number].declared->kind == vm::InputKind::timer;
  if (!found) return {};
  proxy::Event event;
  own_words_ = false;
  fuel_used_ = fuel_bound_ = 0;
  const proxy::Served::Input& in = served_->inputs[*number];
  run(in, in.down, event, false);
  Answer out;
  // What a timer replies goes nowhere.
  if (event.answer.error == Errc::none) return out;
  out.status = event.answer.status;
  out.name = name(event.answer.error);
  out.body = event.answer.body.flat();
  out.own_words = own_words_;
  return out;
}

void Player::apply(proxy::Event& event) {
  switch (event.verb) {
    case proxy::Verb::view: return apply_view(event);
    case proxy::Verb::input: return apply_input(event);
    default: return apply_object(event);
  }
}

void Player::apply_view(proxy::Event& event) {
  const proxy::Served::View& view = served_->views[event.number];
  proxy::decode_fields(view.asked, event.fields, fields_.data());
  store_.begin_event({});
  const vm::Event event_asked = asked(view.asked.size());
  const vm::Outcome outcome =
      view.paged() ? machine_.page(module(), *view.declared, event_asked, store_, event.from, event.count)
                   : machine_.view(module(), *view.declared, event_asked, store_);
  if (!view.paged()) {
    fuel_used_ = outcome.fuel_used;
    fuel_bound_ = module().facts[view.declared->function].fuel;
  }
  if (outcome.fault == vm::Fault::none) {
    event.answer.type = proxy::content_type(outcome.reply.type);
    event.answer.body.text.assign(outcome.reply.text);
  } else {
    proxy::answer_no_value(event.answer, view.declared->name);
  }
  store_.undo_event();
}

std::size_t Player::fields_of(const proxy::Served::Input& in, const proxy::Event& event) {
  if (in.declared->kind == vm::InputKind::timer) return 0;
  proxy::decode_fields(in.asked, event.fields, fields_.data());
  if (!in.takes_body) return in.asked.size();
  fields_[in.asked.size()] = vm::Value::span(event.body.view(), vm::type_of(in.body.base));
  return in.asked.size() + 1;
}

void Player::apply_input(proxy::Event& event) {
  const proxy::Served::Input& in = served_->inputs[event.number];
  const Ran down = run(in, in.down, event, false);
  if (in.declared->kind != vm::InputKind::key) return;
  // Both edges are delivered whatever the first one says; the answer is the first fault, else the first reply.
  if (down == Ran::silent) {
    run(in, in.up, event, false);
    return;
  }
  proxy::Event second;
  const bool words = own_words_;
  if (run(in, in.up, second, false) == Ran::fault && down != Ran::fault) std::swap(event.answer, second.answer);
  else own_words_ = words;
}

void Player::apply_object(proxy::Event& event) {
  const proxy::Served::Input& in = served_->inputs[event.number];
  store_.begin_event(event.key);
  const std::uint64_t present = store_.document().present_revision();
  const bool holds = event.verb == proxy::Verb::show || (event.condition == proxy::Condition::absent
                                                             ? present == 0
                                                             : present != 0 && event.matches(present));
  store_.undo_event();
  if (!holds) return proxy::answer_conflict(event.answer, present);
  const Ran ran = run(in, in.down, event, true);
  if (ran != Ran::fault) event.answer.revision = store_.document().revision_after();
  if (ran == Ran::silent && event.verb == proxy::Verb::remove) event.answer.status = 204;
}

Player::Ran Player::run(const proxy::Served::Input& in, const vm::Handler* handler, proxy::Event& event, bool object) {
  store_.begin_event(object ? std::string_view(event.key) : std::string_view());
  if (handler == nullptr) {
    store_.undo_event();
    return Ran::silent;
  }
  const std::size_t count = fields_of(in, event);
  const vm::Outcome outcome = machine_.handle(module(), *handler, asked(count), store_);
  fuel_used_ = std::max(fuel_used_, outcome.fuel_used);
  fuel_bound_ = std::max(fuel_bound_, module().facts[handler->function].fuel);
  if (outcome.fault != vm::Fault::none) {
    own_words_ = !outcome.text.empty();
    const std::uint64_t present = object ? store_.document().present_revision() : 0;
    proxy::answer_fault(event.answer, outcome.fault, outcome.text, object, present);
    store_.undo_event();
    return Ran::fault;
  }
  answer_reply(outcome.reply, in, event);
  if (store_.keep_event()) ++seq_;
  return outcome.reply.kind == vm::ReplyKind::none ? Ran::silent : Ran::replied;
}

void Player::answer_reply(const vm::Reply& reply, const proxy::Served::Input& in, proxy::Event& event) {
  proxy::Answer& answer = event.answer;
  answer.type = proxy::content_type(reply.type);
  switch (reply.kind) {
    case vm::ReplyKind::none: answer.type = proxy::ContentType::octets; break;
    case vm::ReplyKind::owned: answer.body.text.assign(reply.text); break;
    case vm::ReplyKind::field: answer.body.text.assign(fields_[reply.field].text()); break;
    case vm::ReplyKind::document: store_.document().append_to(answer.body.text); break;
  }
}

}  // namespace sluice::tools
