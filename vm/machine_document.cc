// What a module does to the document of a keyed message.
#include <cmath>

#include "vm/base/json.h"
#include "vm/machine_impl.h"

namespace sluice::vm {
namespace {
bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}
}  // namespace

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

// What a handler has to answer for at its end: a json document is JSON, however it came to be.
Fault Machine::Impl::finish() {
  if (module->documents.kind != DocumentKind::json || json == Json::unchanged) return Fault::none;
  if (json == Json::whole) return json_valid(json_whole) ? Fault::none : Fault::encoding;
  Value content;
  if (!charge_bytes(host->doc_bytes())) return Fault::limit;
  if (!host->doc(content)) return Fault::none;
  return json_valid(content.text()) ? Fault::none : Fault::encoding;
}

}  // namespace sluice::vm
