// Runs proven code: no check of types, registers, jumps or indices, only of values and fuel.
#include "vm/machine.h"

#include <cmath>
#include <cstring>

#include "vm/base/check.h"
#include "vm/builtin.h"
#include "vm/builtin_run.h"
#include "vm/machine_impl.h"
#include "vm/slot.h"

namespace sluice::vm {
namespace {
// Compared by bytes, which is by code points.
int compare(std::string_view a, std::string_view b) { return a.compare(b); }
}  // namespace

Fault Machine::Impl::concat(const Value* parts, unsigned count, Value& to) {
  std::size_t size = 0;
  for (unsigned i = 0; i < count; ++i) size += parts[i].size;
  if (!charge_bytes(size)) return Fault::limit;
  if (count == 1) {
    to = parts[0];
    return Fault::none;
  }
  char* const text = arena.take(size, reserved());
  if (text == nullptr) return Fault::limit;
  char* put = text;
  for (unsigned i = 0; i < count; ++i) {
    if (parts[i].size != 0) std::memcpy(put, parts[i].data, parts[i].size);
    put += parts[i].size;
  }
  to = Value::span({text, size});
  return Fault::none;
}

Fault Machine::Impl::call_builtin(std::uint8_t number, const Value* arguments, Value& to) {
  const Builtin& one = builtin(number);
  if (one.fuel_shift != 255) {
    std::uint64_t bytes = 0;
    for (int i = 0; i < one.arity; ++i)
      if (one.arguments[i] == Type::text || one.arguments[i] == Type::bytes) bytes += arguments[i].size;
    if (!charge(bytes >> one.fuel_shift)) return Fault::limit;
  }
  BuiltinContext context{arena, *host, chance_calls, reserved()};
  return run_builtin(number, arguments, to, context);
}

Fault Machine::Impl::set_state(std::uint16_t state, Value value) {
  if (const Fault fault = narrow(module->states[state].slot, value); fault != Fault::none) return fault;
  if (const Fault fault = count_write(); fault != Fault::none) return fault;
  host->set_state(state, value);
  return Fault::none;
}

void Machine::Impl::begin(const Module& m, const Event& e, Host& h) {
  if (out.capacity() > kKeptReply) std::string().swap(out);
  module = &m;
  event = &e;
  host = &h;
  input = nullptr;
  if (m.tables.empty()) return;
  tables = h.tables();
  SLUICE_CHECK(tables != nullptr && h.records() != nullptr && &tables->module() == &m);
  use.emplace(TableUse{*h.records(), arena, h.orders()});
  rows.clear();
}

void Machine::Impl::run(std::uint32_t function, std::uint64_t budget) {
  const std::uint64_t bound = module->facts[function].fuel;
  budget = std::min<std::uint64_t>(budget, INT64_MAX / 2);
  Fault fault;
  if (bound <= budget) {
    fuel = static_cast<std::int64_t>(budget - bound);
    fault = execute<false>();
  } else {
    fuel = static_cast<std::int64_t>(budget);
    fault = execute<true>();
  }
  outcome.fault = fault;
  outcome.fuel_used = static_cast<std::uint64_t>(static_cast<std::int64_t>(budget) - fuel);
  outcome.wrote = writes != 0;
  if (fault != Fault::none) {
    outcome.reply = Reply();
    outcome.line = line_of(frames[depth]);
  }
}

template <bool Metered>
Fault Machine::Impl::execute() {
  Frame* frame = &frames[0];
  const Word* code = frame->code;
  Value* r = frame->registers;
  std::uint32_t pc = 0;
  Fault fault = Fault::none;

  // After an instruction that may be absent: on the way with a value the ABSENT word is stepped over.
  const auto present = [&] {
    if (op_of(code[pc]) == Op::absent) {
      if (Metered) fuel -= 1;
      ++pc;
    }
  };
  const auto absent = [&] {
    if (op_of(code[pc]) != Op::absent) return false;
    if (Metered) fuel -= 1;
    pc = x_of(code[pc]);
    return true;
  };
  const auto stop = [&](Fault f) {
    frame->pc = pc;
    return f;
  };

  while (true) {
    const Word w = code[pc++];
    const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
    if (Metered && !charge(fuel_of(*module, *frame->function, w))) return stop(Fault::limit);
    switch (op_of(w)) {
      case Op::nop: break;
      case Op::jmp: pc = x; break;
      case Op::jt: if (r[a].boolean) pc = x; break;
      case Op::jf: if (!r[a].boolean) pc = x; break;
      case Op::loop: pc = x; break;

      case Op::call: {
        const Function& callee = module->functions[c];
        frame->pc = pc;
        Value* const into = r + frame->function->registers.size();
        for (std::size_t i = 0; i < callee.parameters.size(); ++i) into[i] = r[b + i];
        frame = &frames[++depth];
        *frame = {&callee, callee.code.data(), 0, into, static_cast<std::uint8_t>(a), cursors};
        code = frame->code;
        r = into;
        pc = 0;
        break;
      }
      case Op::ret: case Op::done: {
        if (depth == 0) {
          if (frame->function->kind == FunctionKind::handler) return stop(finish());
          result = r[a];
          return stop(Fault::none);
        }
        const Value value = frame->function->result == Type::none ? Value() : r[a];
        const std::uint8_t to = frame->result;
        cursors = frame->cursors;
        frame = &frames[--depth];
        code = frame->code;
        r = frame->registers;
        pc = frame->pc;
        if (to != kNoRegister) r[to] = value;
        present();
        break;
      }
      case Op::retabs: {
        if (depth == 0) return stop(Fault::not_found);
        cursors = frame->cursors;
        frame = &frames[--depth];
        code = frame->code;
        r = frame->registers;
        pc = frame->pc;
        if (!absent()) return stop(Fault::not_found);
        break;
      }
      case Op::fail:
        if (a != kNoRegister) outcome.text = keep(r[a].text());
        return stop(static_cast<Fault>(b));

      case Op::move: r[a] = r[b]; break;
      case Op::numk: r[a] = Value::number(module->numbers[x]); break;
      case Op::textk: r[a] = Value::span(module->texts[x]); break;
      case Op::integer: r[a] = Value::number(static_cast<std::int16_t>(x)); break;
      case Op::boolean: r[a] = Value::truth(b != 0); break;

      case Op::add: fault = finish_number(r[b].num + r[c].num, r[a]); break;
      case Op::sub: fault = finish_number(r[b].num - r[c].num, r[a]); break;
      case Op::mul: fault = finish_number(r[b].num * r[c].num, r[a]); break;
      case Op::div: fault = r[c].num == 0 ? Fault::divide : finish_number(r[b].num / r[c].num, r[a]); break;
      case Op::mod: fault = r[c].num == 0 ? Fault::divide : finish_number(floor_mod(r[b].num, r[c].num), r[a]); break;
      case Op::neg: r[a] = Value::number(0 - r[b].num); break;
      case Op::eqn: r[a] = Value::truth(r[b].num == r[c].num); break;
      case Op::ltn: r[a] = Value::truth(r[b].num < r[c].num); break;
      case Op::len: r[a] = Value::truth(r[b].num <= r[c].num); break;
      case Op::eqt: case Op::ltt: case Op::let: {
        const std::string_view left = r[b].text(), right = r[c].text();
        if (!charge_bytes(std::min(left.size(), right.size()))) return stop(Fault::limit);
        const Op op = op_of(w);
        r[a] = Value::truth(op == Op::eqt   ? left == right
                            : op == Op::ltt ? compare(left, right) < 0
                                            : compare(left, right) <= 0);
        break;
      }
      case Op::eqb: r[a] = Value::truth(r[b].boolean == r[c].boolean); break;
      case Op::logical_not: r[a] = Value::truth(!r[b].boolean); break;

      case Op::concat: fault = concat(r + b, c, r[a]); break;
      case Op::builtin: {
        if (Metered && !charge(builtin(static_cast<std::uint8_t>(c)).fuel)) return stop(Fault::limit);
        Value value;
        fault = call_builtin(static_cast<std::uint8_t>(c), r + b, value);
        if (fault != Fault::none) break;
        if (value.type != Type::none) {
          r[a] = value;
          present();
        } else if (!absent()) {
          return stop(Fault::not_found);
        }
        break;
      }

      case Op::field: r[a] = event->fields[x]; break;
      case Op::now: r[a] = Value::number(event->now_ms); break;
      case Op::seq: r[a] = Value::number(event->seq); break;
      case Op::dockey: r[a] = Value::span(host->doc_key()); break;
      case Op::docrev: r[a] = Value::number(host->doc_revision()); break;

      case Op::gets:
        if (host->state(static_cast<std::uint16_t>(x), r[a])) {
          present();
        } else if (!absent()) {
          return stop(Fault::not_found);
        }
        break;
      case Op::sets: fault = set_state(static_cast<std::uint16_t>(x), r[a]); break;
      case Op::clrs:
        fault = count_write();
        if (fault == Fault::none) host->clear_state(static_cast<std::uint16_t>(x));
        break;

      // The two registers are the loop's own; beside their numbers they keep, in `size`, which is no part of a number,
      // how many turns are left and whether the first is still to come.
      case Op::forp: {
        const double turns = r[a + 1].num < r[a].num ? 0 : std::floor(r[a + 1].num - r[a].num) + 1;
        if (!(turns <= x)) return stop(Fault::limit);
        r[a].size = 1;
        r[a + 1].size = static_cast<std::uint32_t>(turns);
        break;
      }
      case Op::forl:
        if (r[a + 1].size == 0) {
          absent();
          break;
        }
        --r[a + 1].size;
        if (r[a].size == 0) r[a].num += 1;
        r[a].size = 0;
        present();
        break;

      case Op::doc: {
        bool there = false;
        fault = read_document(b == 1, r[a], there);
        if (fault != Fault::none) break;
        if (there) {
          present();
        } else if (!absent()) {
          return stop(Fault::not_found);
        }
        break;
      }
      case Op::docset: case Op::docdel: case Op::docapp: case Op::docspl: fault = write_document(op_of(w), r + a); break;

      case Op::jbeg:
        out.assign(1, '{');
        record = true;
        if (!arena.has_room(1)) return stop(Fault::limit);
        break;
      case Op::jfld: fault = add_field(module->texts[x], &r[a]); break;
      case Op::jnul: fault = add_field(module->texts[x], nullptr); break;
      case Op::replyj:
        if (!charge_bytes(out.size())) return stop(Fault::limit);
        out.push_back('}');
        outcome.reply = {ReplyKind::owned, ContentType::json, 0, out};
        return stop(finish());
      case Op::replyv:
        reply_value(r[a]);
        return stop(finish());
      case Op::replyf: {
        const bool octets = input->kind == InputKind::message && input->fields[a].slot.base == Base::bytes;
        outcome.reply = {ReplyKind::field, octets ? ContentType::octets : ContentType::text, static_cast<std::uint8_t>(a), {}};
        return stop(finish());
      }
      case Op::replyd: {
        if (!host->has_doc()) return stop(Fault::not_found);
        constexpr ContentType types[] = {ContentType::octets, ContentType::text, ContentType::octets, ContentType::json};
        outcome.reply = {ReplyKind::document, types[static_cast<int>(module->documents.kind)], 0, {}};
        return stop(finish());
      }

      case Op::row: case Op::col: case Op::setcol: case Op::clrcol: case Op::insert: case Op::update: case Op::erase:
      case Op::count: case Op::gcount: case Op::total: case Op::rank: case Op::open: case Op::next: {
        bool there = true;
        fault = table_step(w, *frame, r, pc, there);
        if (fault != Fault::none) break;
        if (there) {
          present();
        } else if (!absent()) {
          return stop(Fault::not_found);
        }
        break;
      }
      case Op::replyr:
        fault = reply_row(frame->function->registers[a].table, r[a]);
        if (fault == Fault::none && !charge_bytes(out.size())) fault = Fault::limit;
        return stop(fault != Fault::none ? fault : finish());

      // Not in what the loader lets through: it stands only behind what steps over it.
      case Op::absent: SLUICE_CHECK(!"an instruction that was not proven"); break;
    }
    if (fault != Fault::none) return stop(fault);
    if (Metered && fuel < 0) return stop(Fault::limit);
  }
}

Machine::Machine() : impl_(std::make_unique<Impl>()) {}
Machine::~Machine() = default;

Outcome Machine::handle(const Module& module, const Handler& handler, const Event& event, Host& host) {
  SLUICE_CHECK(module.facts.size() == module.functions.size());  // it came from load()
  Impl& run = *impl_;
  run.begin(module, event, host);
  run.begin_run(handler.function);
  if (handler.event != 0) {
    run.input = &module.inputs[(handler.event - 1) / 2];
    const std::size_t fields = run.input->kind == InputKind::text ? 1 : run.input->fields.size();
    SLUICE_CHECK(event.fields.size() >= fields);
  }
  run.run(handler.function, event.fuel);
  return run.outcome;
}

Outcome Machine::view(const Module& module, const View& view, const Event& event, Host& host) {
  SLUICE_CHECK(module.facts.size() == module.functions.size());
  SLUICE_CHECK(event.fields.size() >= view.parameters.size());
  Impl& run = *impl_;
  run.begin(module, event, host);
  run.begin_run(view.function);
  for (std::size_t i = 0; i < view.parameters.size(); ++i) run.registers[i] = event.fields[i];
  run.run(view.function, event.fuel);
  if (run.outcome.fault == Fault::none) run.reply_value(run.result);
  return run.outcome;
}

}  // namespace sluice::vm
