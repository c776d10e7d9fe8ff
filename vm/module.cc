#include "vm/module.h"

#include <algorithm>

#include "vm/base/number_text.h"

namespace sluice::vm {

Type type_of(Base base) {
  switch (base) {
    case Base::num: case Base::integer: case Base::u32: return Type::num;
    case Base::boolean: return Type::boolean;
    case Base::text: case Base::slug: return Type::text;
    case Base::bytes: return Type::bytes;
  }
  return Type::none;
}

std::string with_article(std::string_view words) {
  const bool vowel = !words.empty() && std::string_view("aeio").find(words.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(words);
}

std::string describe(const Slot& slot) {
  constexpr std::string_view names[] = {"num", "int", "u32", "bool", "text", "slug", "bytes"};
  std::string out(names[static_cast<int>(slot.base)]);
  if (slot.optional) out += '?';
  if (slot.range != Range::none) {
    out += slot.range == Range::in ? " in " : " clamp ";
    append_number(out, slot.low);
    out += "..";
    append_number(out, slot.high);
  }
  if (slot.base == Base::text || slot.base == Base::bytes) {
    out += " max ";
    append_number(out, slot.max);
  }
  return out;
}

std::size_t order_size(const Table& table, unsigned order) {
  return order == 0 ? table.key.size() : table.indexes[order - 1].parts.size();
}

KeyPart order_part(const Table& table, unsigned order, std::size_t i) {
  return order == 0 ? KeyPart{table.key[i], false} : table.indexes[order - 1].parts[i];
}

namespace {
// The kind's byte and a number of the store, of which 16 bits make three bytes at most.
constexpr std::uint32_t kKindBytes = 1, kNumberBytes = 3;

std::uint32_t key_bytes(const Slot& slot) {
  switch (slot.base) {
    case Base::num: case Base::integer: return 8;
    case Base::u32: return 4;
    case Base::boolean: return 1;
    case Base::slug: return kSlugMax + 1;
    default: return slot.max + 1;
  }
}
std::uint32_t parts_bytes(const Table& table, unsigned order) {
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < order_size(table, order); ++i) bytes += key_bytes(table.columns[order_part(table, order, i).column].slot);
  return bytes;
}
}  // namespace

std::uint32_t order_bytes(const Table& table, unsigned order) {
  const std::uint32_t bytes = kKindBytes + kNumberBytes + parts_bytes(table, order);
  if (order == 0) return bytes;
  return bytes + kNumberBytes + (table.indexes[order - 1].unique ? 0 : parts_bytes(table, 0));
}

std::uint32_t total_bytes(const Table& table, const Total& total) {
  std::uint32_t bytes = kKindBytes + 2 * kNumberBytes;
  for (const std::uint8_t column : total.by) bytes += key_bytes(table.columns[column].slot);
  return bytes;
}

namespace {
template <class T>
const T* by_name(const std::vector<T>& list, std::string_view name) {
  for (const T& one : list)
    if (one.name == name) return &one;
  return nullptr;
}
}  // namespace

const Input* Module::find_input(std::string_view n) const { return by_name(inputs, n); }
const View* Module::find_view(std::string_view n) const { return by_name(views, n); }
const State* Module::find_state(std::string_view n) const { return by_name(states, n); }

const Table* Module::find_table(std::string_view n) const { return by_name(tables, n); }

Module::TotalAt Module::total_at(std::uint32_t number) const {
  std::size_t table = 0;
  while (number >= tables[table].totals.size()) number -= static_cast<std::uint32_t>(tables[table++].totals.size());
  return {static_cast<std::uint8_t>(table), static_cast<std::uint8_t>(number)};
}

std::uint32_t Module::total_number(std::uint32_t table, std::uint32_t total) const {
  for (std::uint32_t t = 0; t < table; ++t) total += static_cast<std::uint32_t>(tables[t].totals.size());
  return total;
}

const Handler* Module::find_handler(std::uint32_t event) const {
  const auto at = std::lower_bound(handlers.begin(), handlers.end(), event,
                                   [](const Handler& h, std::uint32_t e) { return h.event < e; });
  return at != handlers.end() && at->event == event ? &*at : nullptr;
}

const Input* Module::show() const {
  const Input* input = find_input("show");
  return input != nullptr && input->keyed && input->fields.empty() ? input : nullptr;
}

const Input* Module::edit() const {
  const Input* input = find_input("edit");
  return input != nullptr && input->keyed && input->fields.size() == 1 && input->takes_body() ? input : nullptr;
}

const Input* Module::remove() const {
  const Input* input = find_input("remove");
  return input != nullptr && input->keyed && input->fields.empty() ? input : nullptr;
}

std::string Module::why_not_sharded() const {
  if (!states.empty()) return "it has the state `" + states.front().name + "`";
  if (!tables.empty()) return "it has the table `" + tables.front().name + "`";
  for (const Input& input : inputs)
    if (input.kind == InputKind::timer) return "it has the timer `" + input.name + "`";
  if (find_handler(0) != nullptr) return "it has `on start`";
  for (std::size_t i = 0; i < facts.size() && i < functions.size(); ++i)
    if (facts[i].reads_seq) return "`" + functions[i].name + "` reads `seq`";
  return {};
}

}  // namespace sluice::vm
