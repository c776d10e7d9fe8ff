#include "t/fuzz/module_play.h"

#include <cstdio>
#include <string>
#include <vector>

#include "t/vm/memory_host.h"
#include "vm/audit.h"
#include "vm/base/check.h"
#include "vm/base/json.h"
#include "vm/base/utf8.h"
#include "vm/catalog.h"
#include "vm/image.h"
#include "vm/slot.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {
// Deterministic choices from the file itself.
struct Dice {
  std::uint64_t state;
  std::uint64_t roll() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  }
};

Value any_value(const Slot& slot, Dice& dice) {
  constexpr double numbers[] = {0, 1, -1, 2, 7.5, 100, 9007199254740992.0, -9007199254740992.0, 1e308, -1e-308, 4294967295.0, 60};
  constexpr std::string_view texts[] = {"", "a", "abc", "h\xc3\xa9llo", "{\"title\":\"x\",\"n\":1}", "-12.5", "  a b ", "\n", "log-1",
                                        "[1,2,[3]]", "\xf0\x9f\x98\x80\xf0\x9f\x98\x80"};
  constexpr std::string_view slugs[] = {"a", "ann", "A-Z_9", "log-x"};
  for (int tries = 0; tries < 8; ++tries) {
    Value value;
    switch (slot.base) {
      case Base::num: case Base::integer: case Base::u32: value = Value::number(numbers[dice.roll() % std::size(numbers)]); break;
      case Base::boolean: value = Value::truth(dice.roll() % 2 == 1); break;
      case Base::slug: value = Value::span(slugs[dice.roll() % std::size(slugs)]); break;
      case Base::text: value = Value::span(texts[dice.roll() % std::size(texts)]); break;
      case Base::bytes: value = Value::span(dice.roll() % 2 == 1 ? "\xff\x00" : "abc", Type::bytes); break;
    }
    if (narrow(slot, value) == Fault::none) return value;
  }
  switch (type_of(slot.base)) {
    case Type::num: return Value::number(slot.range == Range::none ? 0 : slot.low);
    case Type::text: return Value::span("a");
    default: return Value::span("", Type::bytes);
  }
}

void check_outcome(const Outcome& o, const Module& module, const std::vector<Value>& fields) {
  SLUICE_CHECK(static_cast<int>(o.fault) < kFaults);
  SLUICE_CHECK(valid_utf8(o.text));
  if (o.fault != Fault::none) return;
  switch (o.reply.kind) {
    case ReplyKind::owned: SLUICE_CHECK(o.reply.type == ContentType::octets || valid_utf8(o.reply.text)); break;
    case ReplyKind::field: SLUICE_CHECK(o.reply.field < fields.size()); break;
    case ReplyKind::document: SLUICE_CHECK(module.documents.kind != DocumentKind::none); break;
    case ReplyKind::none: break;
  }
}

// States must be what their slots store, and survive being stored.
void check_states(const Module& module, MemoryHost& host) {
  for (std::size_t i = 0; i < module.states.size(); ++i) {
    const State& state = module.states[i];
    Value value;
    if (!host.state(static_cast<std::uint16_t>(i), value)) {
      SLUICE_CHECK(state.slot.optional);
      continue;
    }
    SLUICE_CHECK(value.type == type_of(state.slot.base));
    if (value.type == Type::num) SLUICE_CHECK(is_number(value.num));
    if (value.type == Type::text) SLUICE_CHECK(valid_utf8(value.text()));
    Value same = value;
    SLUICE_CHECK(narrow(state.slot, same) == Fault::none);
    std::string bytes;
    encode_state(bytes, state.slot, value);
    SLUICE_CHECK(decode_state(state.slot, bytes).has_value());
  }
  if (host.document()) {
    SLUICE_CHECK(host.document()->size() <= module.documents.max);
    if (module.documents.kind != DocumentKind::bytes) SLUICE_CHECK(valid_utf8(*host.document()));
  }
}

constexpr std::uint64_t kRunFuel = 200'000;   // so that no input takes long
constexpr double kNow = 1700000000000;

// One module and what it has stored so far.
class Player {
 public:
  explicit Player(const Module& module) : module_(module), host_(module), dice_{module.code_hash} {}

  void play() {
    for (int round = 0; round < 4; ++round) {
      if (round == 2 && module_.documents.kind != DocumentKind::none && module_.documents.max >= 7) host_.put_document("{\"a\":1}");
      for (const Handler& handler : module_.handlers) handle(handler);
      host_.has_orders = round != 1;          // a reader has none
      for (const View& view : module_.views) look(view);
      host_.has_orders = true;
    }
    check_tables();
  }

 private:
  // A failed event changes no row, and one that reads changes none either.
  template <class Run>
  Outcome event(bool may_write, Run run) {
    const MemoryRecords::Map before = host_.stored().contents();
    const Outcome o = host_.event(run);
    if (o.fault != Fault::none || !may_write) SLUICE_CHECK(host_.stored().contents() == before);
    SLUICE_CHECK(!o.elsewhere || (o.fault != Fault::none && !host_.has_orders));
    return o;
  }

  void handle(const Handler& handler) {
    std::vector<Value> fields;
    if (handler.event != 0) {
      const Input& input = module_.inputs[(handler.event - 1) / 2];
      Slot line;
      line.base = Base::text;
      line.max = input.max;
      if (input.kind == InputKind::text) fields.push_back(any_value(line, dice_));
      for (const Field& field : input.fields) fields.push_back(any_value(field.slot, dice_));
    }
    const Facts& facts = module_.facts[handler.function];
    const auto run = [&](std::uint64_t fuel) { return machine_.handle(module_, handler, {fields, kNow, 3, fuel}, host_); };
    if (facts.fuel == 0 || facts.fuel > kRunFuel) {
      check_outcome(event(facts.writes, [&] { return run(kRunFuel); }), module_, fields);
      check_states(module_, host_);
      return;
    }
    // First thrown away, with so little fuel that every instruction is charged: what was used is under the bound, to
    // which the second run adds exactly its bytes.
    std::uint64_t charged = 0;
    Fault fault = Fault::none;
    event(facts.writes, [&] {
      Outcome o = run(facts.fuel - 1);
      charged = o.fuel_used;
      fault = o.fault;
      o.fault = Fault::denied;
      return o;
    });
    const Outcome o = event(facts.writes, [&] { return run(kRunFuel); });
    SLUICE_CHECK(o.fuel_used >= facts.fuel);
    SLUICE_CHECK(charged <= o.fuel_used);
    if (fault != Fault::limit) SLUICE_CHECK(fault == o.fault);
    SLUICE_CHECK(!o.wrote || facts.writes);
    check_outcome(o, module_, fields);
    check_states(module_, host_);
  }

  void look(const View& view) {
    std::vector<Value> fields;
    for (const Parameter& parameter : view.parameters) fields.push_back(any_value(parameter.slot, dice_));
    const Event asked{fields, kNow, 3, kRunFuel};
    if (view.type == Type::cursor) {
      constexpr std::uint64_t froms[] = {0, 0, 1, 3, 999, UINT64_MAX}, counts[] = {0, 1, 20, 1000, UINT64_MAX};
      const std::uint64_t from = froms[dice_.roll() % std::size(froms)], count = counts[dice_.roll() % std::size(counts)];
      const Outcome o = event(false, [&] { return machine_.page(module_, view, asked, host_, from, count); });
      SLUICE_CHECK(!o.wrote);
      check_outcome(o, module_, fields);
      if (o.fault == Fault::none) SLUICE_CHECK(o.reply.type == ContentType::json && json_valid(o.reply.text));
      return;
    }
    const Outcome o = event(false, [&] { return machine_.view(module_, view, asked, host_); });
    SLUICE_CHECK(!o.wrote);
    SLUICE_CHECK(o.fault != Fault::none || (o.reply.kind == ReplyKind::owned && o.reply.type == ContentType::text));
    check_outcome(o, module_, fields);
  }

  // All that is derived is what a rebuild would give.
  void check_tables() {
    if (module_.tables.empty()) return;
    Catalog catalog = first_catalog(module_);
    catalog.states.clear();                   // the host keeps them elsewhere
    const Audit found = audit(catalog, *host_.records());
    for (const std::string& difference : found.differences) std::fprintf(stderr, "%s\n", difference.c_str());
    SLUICE_CHECK(found.differences.empty());
  }

  const Module& module_;
  MemoryHost host_;
  Machine machine_;
  Dice dice_;
};
}  // namespace

void play_module(const Module& module) { Player(module).play(); }

}  // namespace sluice::vm
