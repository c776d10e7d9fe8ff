// Answers: values as texts, records as JSON, field by field.
#include "vm/base/json.h"
#include "vm/base/number_text.h"
#include "vm/machine_impl.h"

namespace sluice::vm {

// Where a text may stay until the machine runs again: the arena; anything else goes into the buffer.
std::string_view Machine::Impl::keep(std::string_view text) {
  if (text.empty()) return {};
  if (arena.holds(text.data())) return text;
  out.assign(text);
  return out;
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

// All columns, in their declared order.
Fault Machine::Impl::reply_row(std::uint32_t table, const Value& row) {
  const Row* const columns = row_of(table, row);
  if (columns == nullptr) return Fault::not_found;
  out.assign(1, '{');
  record = true;
  const Table& of = module->tables[table];
  for (std::size_t c = 0; c < of.columns.size(); ++c) {
    const Value& value = columns->columns[c];
    const Fault fault = add_field(of.columns[c].name, value.type == Type::none ? nullptr : &value);
    if (fault != Fault::none) return fault;
  }
  out.push_back('}');
  outcome.reply = {ReplyKind::owned, ContentType::json, 0, out};
  return Fault::none;
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

}  // namespace sluice::vm
