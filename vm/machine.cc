// Runs proven code: no check of types, registers, jumps or indices, only of values and fuel.
#include "vm/machine.h"

#include <cmath>
#include <cstring>

#include "vm/arena.h"
#include "vm/base/json.h"
#include "vm/base/number_text.h"
#include "vm/builtin.h"
#include "vm/builtin_run.h"
#include "vm/slot.h"

namespace sluice::vm {
namespace {
constexpr std::size_t kFrames = 8, kRegisters = 200;
constexpr std::uint32_t kWrites = 10'000;             // states and document edits of one event
constexpr std::size_t kKeptReply = 2 * kArenaBytes;   // capacity of the reply buffer that is worth keeping

// Compared by bytes, which is by code points.
int compare(std::string_view a, std::string_view b) { return a.compare(b); }

bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}
}  // namespace

// Thread: its machine's.
struct Machine::Impl {
  struct Frame {
    const Function* function;
    const Word* code;
    std::uint32_t pc;
    Value* registers;
    std::uint8_t result;       // the caller's register; 255: none
  };
  // What is known of a json document that this event has changed; it is checked once, at the end.
  enum class Json : std::uint8_t { unchanged, whole, edited };

  Arena arena;
  std::string out;             // the reply, or the fault's text
  Value registers[kFrames * kRegisters];
  Frame frames[kFrames];

  const Module* module = nullptr;
  const Event* event = nullptr;
  Host* host = nullptr;
  const Input* input = nullptr;
  std::int64_t fuel = 0;       // left; below 0: the fault limit
  std::uint64_t chance_calls = 0;
  std::uint32_t writes = 0;
  bool record = false;         // `out` is a record that is being built, and is part of the event's memory
  Json json = Json::unchanged;
  std::string_view json_whole;
  std::size_t depth = 0;       // of the running frame
  Value result;                // of a view
  Outcome outcome;

  void begin(const Module& m, std::uint32_t function, const Event& e, Host& h) {
    arena.reset();
    if (out.capacity() > kKeptReply) std::string().swap(out);
    out.clear();
    module = &m;
    event = &e;
    host = &h;
    input = nullptr;
    chance_calls = 0;
    writes = 0;
    record = false;
    json = Json::unchanged;
    depth = 0;
    outcome = Outcome();
    const Function& f = m.functions[function];
    frames[0] = {&f, f.code.data(), 0, registers, 255};
  }

  Outcome run(std::uint32_t function) {
    const std::uint64_t bound = module->facts[function].fuel;
    const std::uint64_t budget = std::min<std::uint64_t>(event->fuel, INT64_MAX / 2);
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
    return outcome;
  }

  // `pc` is behind the instruction.
  std::uint32_t line_of(const Frame& frame) const {
    const auto index = static_cast<std::size_t>(frame.function - module->functions.data());
    if (index >= module->lines.size() || module->lines[index].empty()) return 0;
    return module->lines[index][frame.pc == 0 ? 0 : frame.pc - 1];
  }

  bool charge(std::uint64_t n) {
    fuel -= static_cast<std::int64_t>(n);
    return fuel >= 0;
  }
  bool charge_bytes(std::uint64_t bytes) { return charge(bytes / 32); }
  // Memory of the event that is not in the arena.
  std::size_t reserved() const { return record ? out.size() : 0; }

  Fault concat(const Value* parts, unsigned count, Value& to);
  Fault call_builtin(std::uint8_t number, const Value* arguments, Value& to);
  Fault set_state(std::uint16_t state, Value value);
  Fault count_write() { return ++writes > kWrites ? Fault::limit : Fault::none; }
  Fault read_document(bool only_presence, Value& to, bool& there);
  Fault write_document(Op op, const Value* at);
  Fault splice(double at, double remove, std::string_view insert);
  Fault add_field(const std::string& name, const Value* value);
  void reply_text(std::string_view text, ContentType type);
  void reply_value(const Value& value);
  Fault finish();
  std::string_view keep(std::string_view text);
  template <bool Metered>
  Fault execute();
};

// Where a text may stay until the machine runs again: the arena; anything else goes into the buffer.
std::string_view Machine::Impl::keep(std::string_view text) {
  if (text.empty()) return {};
  if (arena.holds(text.data())) return text;
  out.assign(text);
  return out;
}

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

Fault Machine::Impl::read_document(bool only_presence, Value& to, bool& there) {
  const Type type = module->documents.kind == DocumentKind::bytes ? Type::bytes : Type::text;
  there = host->has_doc();
  if (!there) return Fault::none;
  Value content = Value::span({}, type);
  if (!only_presence) {
    if (!charge_bytes(host->doc_bytes())) return Fault::limit;
    there = host->doc(content);
    content.type = type;
  }
  if (there) to = content;
  return Fault::none;
}

Fault Machine::Impl::write_document(Op op, const Value* at) {
  if (const Fault fault = count_write(); fault != Fault::none) return fault;
  if (op == Op::docset) {
    const std::string_view content = at->text();
    if (!charge_bytes(content.size()) || content.size() > module->documents.max) return Fault::limit;
    host->doc_set(content);
    json = Json::whole;
    json_whole = content;
    return Fault::none;
  }
  if (!host->has_doc()) return Fault::not_found;
  switch (op) {
    case Op::docdel:
      host->doc_delete();
      json = Json::unchanged;
      return Fault::none;
    case Op::docapp: {
      const std::string_view content = at->text();
      if (!charge_bytes(content.size())) return Fault::limit;
      if (host->doc_bytes() + content.size() > module->documents.max) return Fault::limit;
      host->doc_append(content);
      json = Json::edited;
      return Fault::none;
    }
    default: return splice(at[0].num, at[1].num, at[2].text());
  }
}

Fault Machine::Impl::splice(double at, double remove, std::string_view insert) {
  if (!charge_bytes(insert.size())) return Fault::limit;
  const std::uint64_t size = host->doc_bytes();
  const auto all = static_cast<double>(size);
  if (at != std::trunc(at) || at < 0 || at > all) return Fault::clamp;
  if (remove != std::trunc(remove) || remove < 0 || remove > all - at) return Fault::clamp;
  const auto from = static_cast<std::uint64_t>(at);
  const auto to = from + static_cast<std::uint64_t>(remove);
  if (size - (to - from) + insert.size() > module->documents.max) return Fault::limit;
  // A text stays a text: neither edge may be inside a character.
  const bool edges_matter = (from != 0 && from != size) || (to != 0 && to != size);
  if (module->documents.kind != DocumentKind::bytes && edges_matter) {
    Value content;
    if (!charge_bytes(size)) return Fault::limit;
    if (!host->doc(content)) return Fault::not_found;
    if (is_inside_character(content.text(), from) || is_inside_character(content.text(), to)) return Fault::encoding;
  }
  host->doc_splice(from, to - from, insert);
  json = Json::edited;
  return Fault::none;
}

Fault Machine::Impl::add_field(const std::string& name, const Value* value) {
  const std::size_t text_bytes = value != nullptr && value->type == Type::text ? value->size : 0;
  if (!charge_bytes(name.size() + text_bytes)) return Fault::limit;
  // Before anything is written, so that the buffer never outgrows the event's memory by more than escapes.
  if (!arena.has_room(out.size() + name.size() + text_bytes)) return Fault::limit;
  if (out.size() > 1) out.push_back(',');
  append_json_string(out, name);
  out.push_back(':');
  if (value == nullptr) {
    out.append("null");
  } else if (value->type == Type::num) {
    append_number(out, value->num);
  } else if (value->type == Type::boolean) {
    out.append(value->boolean ? "true" : "false");
  } else {
    append_json_string(out, value->text());
  }
  return arena.has_room(out.size()) ? Fault::none : Fault::limit;
}

void Machine::Impl::reply_text(std::string_view text, ContentType type) {
  outcome.reply.kind = ReplyKind::owned;
  outcome.reply.type = type;
  outcome.reply.text = keep(text);
}

void Machine::Impl::reply_value(const Value& value) {
  switch (value.type) {
    case Type::num: {
      char digits[32];
      out.assign(digits, write_number(digits, value.num));
      reply_text(out, ContentType::text);
      break;
    }
    case Type::boolean: reply_text(value.boolean ? "true" : "false", ContentType::text); break;
    case Type::bytes: reply_text(value.text(), ContentType::octets); break;
    default: reply_text(value.text(), ContentType::text); break;
  }
}

// What a handler has to answer for at its end: a json document is JSON, however it came to be.
Fault Machine::Impl::finish() {
  if (module->documents.kind != DocumentKind::json || json == Json::unchanged) return Fault::none;
  if (json == Json::whole) return json_valid(json_whole) ? Fault::none : Fault::encoding;
  Value content;
  if (!charge_bytes(host->doc_bytes())) return Fault::limit;
  if (!host->doc(content)) return Fault::none;
  return json_valid(content.text()) ? Fault::none : Fault::encoding;
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
    if (Metered && !charge(flat_fuel(op_of(w)))) return stop(Fault::limit);
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
        *frame = {&callee, callee.code.data(), 0, into, static_cast<std::uint8_t>(a)};
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

      // Not in what the loader lets through: ABSENT stands only behind what steps over it, tables are not served.
      case Op::absent: case Op::row: case Op::col: case Op::setcol: case Op::clrcol: case Op::insert: case Op::update:
      case Op::erase: case Op::count: case Op::gcount: case Op::total: case Op::rank: case Op::open: case Op::next:
      case Op::replyr:
        SLUICE_CHECK(!"an instruction that was not proven");
        break;
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
  run.begin(module, handler.function, event, host);
  if (handler.event != 0) {
    run.input = &module.inputs[(handler.event - 1) / 2];
    const std::size_t fields = run.input->kind == InputKind::text ? 1 : run.input->fields.size();
    SLUICE_CHECK(event.fields.size() >= fields);
  }
  return run.run(handler.function);
}

Outcome Machine::view(const Module& module, const View& view, const Event& event, Host& host) {
  SLUICE_CHECK(module.facts.size() == module.functions.size());
  SLUICE_CHECK(event.fields.size() >= view.parameters.size());
  Impl& run = *impl_;
  run.begin(module, view.function, event, host);
  for (std::size_t i = 0; i < view.parameters.size(); ++i) run.registers[i] = event.fields[i];
  run.run(view.function);
  if (run.outcome.fault == Fault::none) run.reply_value(run.result);
  return run.outcome;
}

}  // namespace sluice::vm
