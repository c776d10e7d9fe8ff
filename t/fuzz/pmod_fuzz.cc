// Any bytes as a module file: refused, or every handler and view of it behaves.
//
// With clang and the option `fuzz` this is a libFuzzer driver; else corpus_main.cc runs it on every file of a folder.
#include <cstdint>
#include <string>
#include <vector>

#include "t/vm/memory_host.h"
#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/base/utf8.h"
#include "vm/disasm.h"
#include "vm/explain.h"
#include "vm/format.h"
#include "vm/image.h"
#include "vm/plan.h"
#include "vm/slot.h"
#include "vm/wire.h"

using namespace sluice;
using namespace sluice::vm;

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

void run_module(const Module& module) {
  MemoryHost host(module);
  Machine machine;
  Dice dice{module.code_hash};
  for (int round = 0; round < 4; ++round) {
    if (round == 2 && module.documents.kind != DocumentKind::none && module.documents.max >= 7) host.put_document("{\"a\":1}");
    for (const Handler& handler : module.handlers) {
      std::vector<Value> fields;
      if (handler.event != 0) {
        const Input& input = module.inputs[(handler.event - 1) / 2];
        Slot line;
        line.base = Base::text;
        line.max = input.max;
        if (input.kind == InputKind::text) fields.push_back(any_value(line, dice));
        for (const Field& field : input.fields) fields.push_back(any_value(field.slot, dice));
      }
      const Facts& facts = module.facts[handler.function];
      const auto run = [&](std::uint64_t fuel) {
        return machine.handle(module, handler, {fields, 1700000000000, 3, fuel}, host);
      };
      // First thrown away, with so little fuel that every instruction is charged: what was used is under the bound, to
      // which the second run adds exactly its bytes.
      if (facts.fuel > 0 && facts.fuel <= kRunFuel) {
        std::uint64_t charged = 0;
        Fault fault = Fault::none;
        host.event([&] {
          Outcome o = run(facts.fuel - 1);
          charged = o.fuel_used;
          fault = o.fault;
          o.fault = Fault::denied;
          return o;
        });
        const Outcome o = host.event([&] { return run(kRunFuel); });
        SLUICE_CHECK(o.fuel_used >= facts.fuel);
        SLUICE_CHECK(charged <= o.fuel_used);
        if (fault != Fault::limit) SLUICE_CHECK(fault == o.fault);
        SLUICE_CHECK(!o.wrote || facts.writes);
        check_outcome(o, module, fields);
      } else {
        const Outcome o = host.event([&] { return run(kRunFuel); });
        check_outcome(o, module, fields);
      }
      check_states(module, host);
    }
    for (const View& view : module.views) {
      std::vector<Value> fields;
      for (const Parameter& parameter : view.parameters) fields.push_back(any_value(parameter.slot, dice));
      const Outcome o = host.event([&] { return machine.view(module, view, {fields, 1700000000000, 3, kRunFuel}, host); });
      SLUICE_CHECK(!o.wrote);
      SLUICE_CHECK(o.fault != Fault::none || (o.reply.kind == ReplyKind::owned && o.reply.type == ContentType::text));
      check_outcome(o, module, fields);
    }
  }
}

void check_file(std::string_view file) {
  const auto loaded = load(file);
  if (!loaded) {
    SLUICE_CHECK(loaded.error().starts_with("module: "));
    return;
  }
  const Module& module = **loaded;
  const auto again = encode(module);
  SLUICE_CHECK(again.has_value() && *again == file);
  SLUICE_CHECK(!disassemble(module).empty());
  explain("f", module);
  SLUICE_CHECK(plan_upgrade(*decode_catalog(encode(first_catalog(module))), module).steps.empty());
  run_module(module);
}

// The same bytes with a size and checksum that fit, or no change would ever get past the header.
std::string sealed(std::string_view bytes) {
  std::string file(bytes);
  const auto put = [&](std::size_t at, std::uint32_t n) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(n >> (8 * i));
  };
  if (file.size() < kHeaderBytes) return file;
  put(8, static_cast<std::uint32_t>(file.size()));
  put(16, crc32c(std::string_view(file).substr(kHeaderBytes)));
  return file;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_file(bytes);
  check_file(sealed(bytes));
  return 0;
}
