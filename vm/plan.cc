#include "vm/plan.h"

#include <algorithm>
#include <limits>

#include "vm/base/number_text.h"
#include "vm/plan_base.h"

namespace sluice::vm {
namespace {

using Kind = Step::Kind;

std::string documents_text(const Documents& documents) {
  switch (documents.kind) {
    case DocumentKind::none: return "no documents";
    case DocumentKind::text: return "documents text";
    case DocumentKind::bytes: return "documents bytes";
    case DocumentKind::json: return "documents json";
  }
  return {};
}

// Every json is a text, and every text is bytes.
int width(DocumentKind kind) {
  return kind == DocumentKind::none ? 0 : kind == DocumentKind::json ? 1 : kind == DocumentKind::text ? 2 : 3;
}

struct Span {
  double low, high;
};
Span span_of(const Slot& slot) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Span span{-infinity, infinity};
  if (slot.base == Base::integer) span = {-9007199254740992.0, 9007199254740992.0};
  if (slot.base == Base::u32) span = {0, 4294967295.0};
  if (slot.range != Range::none) span = {std::max(span.low, slot.low), std::min(span.high, slot.high)};
  return span;
}

bool takes_all_of(const Slot& after, const Slot& before) {
  if (before.optional && !after.optional) return false;
  switch (type_of(before.base)) {
    case Type::num: {
      const Span was = span_of(before), is = span_of(after);
      return (after.base == Base::num || before.base != Base::num) && is.low <= was.low && was.high <= is.high;
    }
    case Type::text:
      if (after.base == Base::slug && before.base != Base::slug) return false;
      return (before.base == Base::slug ? kSlugMax : before.max) <= (after.base == Base::slug ? kSlugMax : after.max);
    case Type::bytes: return before.max <= after.max;
    default: return true;
  }
}

}  // namespace

std::string_view name(Kind kind) {
  constexpr std::string_view names[] = {"free", "build", "check", "destroy", "refuse"};
  return names[static_cast<int>(kind)];
}

std::string_view base_name(Base base) {
  constexpr std::string_view names[] = {"num", "int", "u32", "bool", "text", "slug", "bytes"};
  return names[static_cast<int>(base)];
}

std::string written(const Value& value) {
  constexpr std::size_t kShown = 40;           // bytes
  std::string out;
  switch (value.type) {
    case Type::num: append_number(out, value.num); break;
    case Type::boolean: out = value.boolean ? "true" : "false"; break;
    case Type::text: {
      std::string_view text = value.text();
      if (text.size() > kShown) {
        std::size_t end = kShown;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
        text = text.substr(0, end);
      }
      out = '"';
      for (const char c : text) {
        constexpr char hex[] = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') (out += '\\') += c;
        else if (c == '\n') out += "\\n";
        else if (byte < 0x20) ((out += "\\u{") += hex[byte >> 4]) += std::string(1, hex[byte & 15]) + "}";
        else out += c;
      }
      out += text.size() < value.text().size() ? "...\"" : "\"";
      break;
    }
    default: out = "none"; break;
  }
  return out;
}

std::uint8_t key_bytes(Base base) {
  switch (base) {
    case Base::num: case Base::integer: return 8;
    case Base::u32: return 4;
    case Base::boolean: return 1;
    case Base::text: case Base::slug: case Base::bytes: return 0;
  }
  return 0;
}

SlotChange change_of(const Slot& before, const Slot& after) {
  if (type_of(before.base) != type_of(after.base)) return SlotChange::other;
  if (!takes_all_of(after, before)) return SlotChange::narrower;
  return before.base == after.base && takes_all_of(before, after) ? SlotChange::same : SlotChange::wider;
}

bool Plan::has(Kind kind) const {
  return std::any_of(steps.begin(), steps.end(), [kind](const Step& s) { return s.kind == kind; });
}

std::string Plan::why_not(bool allow_destroy) const {
  std::string why;
  for (const Step& s : steps)
    if (s.kind == Kind::refuse) why += (why.empty() ? "" : "; ") + s.text;
  if (!why.empty() || allow_destroy) return why;
  for (const Step& s : steps)
    if (s.kind == Kind::destroy) why += (why.empty() ? "" : "; ") + s.text;
  return why.empty() ? why : why + "; start with --allow-destroy to agree";
}

std::string Plan::text() const {
  std::string out;
  for (const Step& s : steps) {
    std::string line = "  " + std::string(name(s.kind));
    line.resize(11, ' ');
    out += line + s.text + '\n';
  }
  return out;
}

Plan plan_upgrade(const Catalog& now, const Module& module) { return Planner(now, module).run(); }

Plan Planner::run() {
  plan_.next.name = module_.name;
  plan_.next.version = std::max(now_.version, module_.version);
  plan_.next.code = module_.code_hash;
  plan_.next.documents = module_.documents;
  plan_.next.next_state = now_.next_state;
  plan_.next.next_table = now_.next_table;
  if (now_.name != module_.name) {
    step(Kind::refuse, "the store is of the module `" + now_.name + "`, not `" + module_.name + "`");
    return std::move(plan_);
  }
  plan_documents();
  plan_states();
  plan_tables();
  if (used_up_) step(Kind::refuse, "the store has given away all of its 65,535 numbers of one kind; copy its rows into a new store");
  plan_version();
  plan_.next.erases = now_.erases;
  for (Erase& erase : erases_between(now_, plan_.next)) plan_.next.erases.push_back(std::move(erase));
  return std::move(plan_);
}

std::uint16_t Planner::number(std::uint16_t& next) {
  if (next == std::numeric_limits<std::uint16_t>::max()) {
    used_up_ = true;
    return next;
  }
  return next++;
}

void Planner::plan_version() {
  if (plan_.steps.empty() || module_.version > now_.version) return;
  const std::string version = std::to_string(now_.version);
  if (module_.version == now_.version)
    step(Kind::refuse, "the data changes shape, so the version must rise above " + version);
  else
    step(Kind::refuse, "the store has version " + version + " of `" + module_.name + "`, and this is version " +
                           std::to_string(module_.version) + "; going back works only where the data keeps its shape");
}

Planner::Match Planner::match(const std::vector<std::string_view>& old_names, const std::vector<Name>& names,
                              const std::vector<std::string>& drops, const Words& words) {
  const auto find = [&](std::string_view name) -> std::optional<std::size_t> {
    const auto at = std::find(old_names.begin(), old_names.end(), name);
    if (at == old_names.end()) return std::nullopt;
    return static_cast<std::size_t>(at - old_names.begin());
  };
  // `was` and `drop` of an earlier upgrade may still be written there: a restart must not do them once more. Where they
  // could be meant either way, a higher version has to say it plainly.
  const bool higher = module_.version > now_.version;
  Match out(names.size());
  std::vector<bool> taken(old_names.size(), false);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& [name, was] = names[i];
    if (was.empty() || was == name) continue;
    const auto from = find(was);
    if (!from) continue;
    if (find(name)) {
      if (higher)
        step(Kind::refuse, words.prefix + std::string(name) + " was `" + std::string(was) +
                               "`, but the store has both; take out the `was`, or rename in one version and take over in the next");
      continue;
    }
    if (taken[*from]) {
      step(Kind::refuse, words.prefix + std::string(was) + " cannot become two; write `was " + std::string(was) + "` once");
      continue;
    }
    taken[*from] = true;
    out[i] = from;
    step(Kind::free, words.prefix + std::string(name) + ": was " + std::string(was));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (out[i]) continue;
    const auto same = find(names[i].name);
    if (same && !taken[*same]) {
      taken[*same] = true;
      out[i] = same;
    }
    if (same && higher && std::find(drops.begin(), drops.end(), names[i].name) != drops.end())
      step(Kind::refuse, words.prefix + std::string(names[i].name) +
                             " is declared and dropped; take out the `drop`, or drop it in one version and declare it in the next");
  }
  return out;
}

void Planner::gone(const std::vector<std::string_view>& old_names, const Match& match,
                   const std::vector<std::string>& drops, const Words& words) {
  for (std::size_t i = 0; i < old_names.size(); ++i) {
    if (std::any_of(match.begin(), match.end(), [i](const auto& m) { return m == i; })) continue;
    const std::string name(old_names[i]);
    if (std::find(drops.begin(), drops.end(), name) != drops.end()) {
      const bool one = words.lost == "value";
      step(Kind::destroy, words.prefix + name + ": its " + std::string(words.lost) + (one ? " is lost" : " are lost"));
    } else {
      step(Kind::refuse, words.prefix + name + " is gone; write `" + std::string(words.drop) + name + "`" +
                             std::string(words.in) + " to lose its " + std::string(words.lost) + ", or `was " + name +
                             "` on the " + std::string(words.kind) + " that takes it over");
    }
  }
}

void Planner::plan_documents() {
  const Documents &before = now_.documents, &after = module_.documents;
  if (before.kind == DocumentKind::none) {
    if (after.kind != DocumentKind::none) step(Kind::free, documents_text(after) + ": new");
    return;
  }
  if (width(after.kind) < width(before.kind)) {
    step(Kind::refuse, "the store has " + documents_text(before) + ", the module " + documents_text(after));
    return;
  }
  if (after.kind != before.kind) step(Kind::free, documents_text(before) + " to " + documents_text(after));
  if (after.max < before.max)
    step(Kind::refuse, "the store's documents have up to " + std::to_string(before.max) + " bytes, the module's " +
                           std::to_string(after.max));
  if (after.max > before.max)
    step(Kind::free, "documents max: " + std::to_string(before.max) + " to " + std::to_string(after.max));
}

void Planner::plan_states() {
  const Words words{"state ", "drop state ", "", "value", "state"};
  std::vector<std::string_view> old_names;
  std::vector<Name> names;
  for (const KeptState& s : now_.states) old_names.push_back(s.name);
  for (const State& s : module_.states) names.push_back({s.name, s.was});
  const Match matched = match(old_names, names, module_.dropped_states, words);
  for (std::uint32_t i = 0; i < module_.states.size(); ++i) {
    const State& state = module_.states[i];
    StateWork work;
    work.state = i;
    if (!matched[i]) {
      plan_.next.states.push_back({number(plan_.next.next_state), state.name, state.slot});
      step(Kind::free, "state " + state.name + ": new, " +
                           (state.first ? "it begins as " + written(*state.first) : "it begins without a value"));
      work.fresh = true;
      plan_.states.push_back(std::move(work));
      continue;
    }
    const KeptState& before = now_.states[*matched[i]];
    plan_.next.states.push_back({before.number, state.name, state.slot});
    const std::string change = "state " + state.name + ": " + describe(before.slot) + " to " + describe(state.slot);
    work.before = before.slot;
    work.rewrite = form_of(before.slot.base) != form_of(state.slot.base);
    switch (change_of(before.slot, state.slot)) {
      case SlotChange::same: break;
      case SlotChange::wider: step(Kind::free, change); break;
      case SlotChange::narrower:
        step(Kind::check, change + ", its value must fit");
        work.fits = true;
        break;
      case SlotChange::other:
        step(Kind::refuse, "state " + state.name + ": " + with_article(base_name(before.slot.base)) + " does not become " +
                               with_article(base_name(state.slot.base)) + "; add a state and fill it");
        break;
    }
    if (work.fits || work.rewrite) plan_.states.push_back(std::move(work));
  }
  gone(old_names, matched, module_.dropped_states, words);
}

void Planner::plan_tables() {
  const Words words{"table ", "drop table ", "", "rows", "table"};
  std::vector<std::string_view> old_names;
  std::vector<Name> names;
  for (const KeptTable& t : now_.tables) old_names.push_back(t.name);
  for (const Table& t : module_.tables) names.push_back({t.name, t.was});
  const Match matched = match(old_names, names, module_.dropped_tables, words);
  for (std::uint32_t i = 0; i < module_.tables.size(); ++i) {
    if (matched[i]) {
      plan_table(i, now_.tables[*matched[i]]);
      continue;
    }
    plan_.next.tables.push_back(first_table(module_.tables[i], number(plan_.next.next_table)));
    step(Kind::free, "table " + module_.tables[i].name + ": new");
  }
  gone(old_names, matched, module_.dropped_tables, words);
}

std::string record_prefix(std::uint8_t kind, std::uint16_t number) {
  std::string out(1, static_cast<char>(kind));
  std::uint32_t n = number;
  for (; n >= 0x80; n >>= 7) out.push_back(static_cast<char>(n | 0x80));
  out.push_back(static_cast<char>(n));
  return out;
}

std::string record_prefix(std::uint8_t kind, std::uint16_t number, std::uint16_t part) {
  // The part is a number of the same form.
  return record_prefix(kind, number) + record_prefix(0, part).substr(1);
}

std::vector<Erase> erases_between(const Catalog& from, const Catalog& to) {
  std::vector<Erase> out;
  const auto has = [](const auto& list, std::uint16_t number) {
    return std::any_of(list.begin(), list.end(), [number](const auto& one) { return one.number == number; });
  };
  for (const KeptState& state : from.states)
    if (!has(to.states, state.number)) out.push_back({record_prefix(0x02, state.number), {}});
  for (const KeptTable& table : from.tables) {
    const auto after = std::find_if(to.tables.begin(), to.tables.end(), [&](const KeptTable& t) { return t.number == table.number; });
    if (after == to.tables.end()) {
      for (const std::uint8_t kind : {0x10, 0x11, 0x12, 0x13, 0x14}) out.push_back({record_prefix(kind, table.number), {}});
      continue;
    }
    for (const KeptIndex& index : table.indexes)
      if (!has(after->indexes, index.number)) out.push_back({record_prefix(0x11, table.number, index.number), {}});
    for (const KeptTotal& total : table.totals)
      if (!has(after->totals, total.number)) out.push_back({record_prefix(0x12, table.number, total.number), {}});
    if (table.per != 0 && table.per != after->per) {
      Erase groups{record_prefix(0x13, table.number), {}};
      for (std::uint8_t i = 0; i < table.per; ++i)
        groups.parts.push_back(static_cast<char>(key_bytes(table.find_column(table.key[i])->slot.base)));
      out.push_back(std::move(groups));
    }
  }
  return out;
}

}  // namespace sluice::vm
