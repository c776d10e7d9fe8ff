// What a module declares: names, documents, inputs, functions, one handler per event.
#include <algorithm>
#include <cmath>

#include "vm/check.h"
#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {
namespace {

std::string_view word_for(Meaning meaning) {
  switch (meaning) {
    case Meaning::constant:
      return "const";
    case Meaning::state:
      return "state";
    case Meaning::function:
      return "function";
    default:
      return "table";
  }
}

}  // namespace

std::uint32_t Checker::line_of(Span span) const {
  return 1 + static_cast<std::uint32_t>(std::count(source_.begin(), source_.begin() + span.offset, '\n'));
}

std::unique_ptr<Module> check(std::string_view source, Syntax& syntax, std::vector<Complaint>& complaints) {
  return Checker(source, syntax, complaints).run();
}

std::unique_ptr<Module> Checker::run() {
  header();
  collect();
  limits();
  const_visits_.resize(syntax_.consts.size(), Visit::no);
  for (std::uint32_t i = 0; i < syntax_.consts.size(); ++i) {
    failed_ = false;
    constant(i);
  }
  for (StateSyntax& s : syntax_.states) {
    failed_ = false;
    state(s);
  }
  table_known_.assign(syntax_.tables.size(), false);
  for (std::uint32_t i = 0; i < syntax_.tables.size(); ++i) {
    failed_ = false;
    table(i);
    table_known_[i] = !failed_;
  }
  failed_ = false;
  drops();
  failed_ = false;
  documents();
  for (InputSyntax& i : syntax_.inputs) {
    failed_ = false;
    input(i);
  }
  for (std::uint32_t i = 0; i < syntax_.functions.size(); ++i) {
    failed_ = false;
    function(i);
  }
  for (OnSyntax& o : syntax_.handlers) {
    failed_ = false;
    handler(o);
  }
  for (ViewSyntax& v : syntax_.views) {
    failed_ = false;
    view(v);
  }
  return std::move(module_);
}

void Checker::header() {
  module_->name = syntax_.name.text;
  const double v = syntax_.version;
  if (v != std::floor(v) || v < 1 || v > 4294967295.0)
    complain(syntax_.version_at, "a version is a whole number from 1",
             "write `module " + syntax_.name.text + " 1`");
  else
    module_->version = static_cast<std::uint32_t>(v);
}

void Checker::declare(const Name& name, Meaning meaning, std::uint32_t index) {
  failed_ = false;
  const auto [found, fresh] = globals_.try_emplace(name.text, Global{meaning, index, name.span});
  if (fresh) return;
  complain(
      name.span,
      "there is already a " + std::string(word_for(found->second.meaning)) + " called `" + name.text + "`",
      "it is declared on line " + std::to_string(line_of(found->second.span)));
}

void Checker::collect() {
  // In the order of the file, so that it is the second one that is wrong.
  struct Entry {
    const Name* name;
    Meaning meaning;
    std::uint32_t index;
  };
  std::vector<Entry> all;
  for (std::uint32_t i = 0; i < syntax_.consts.size(); ++i)
    all.push_back({&syntax_.consts[i].name, Meaning::constant, i});
  for (std::uint32_t i = 0; i < syntax_.states.size(); ++i)
    all.push_back({&syntax_.states[i].name, Meaning::state, i});
  for (std::uint32_t i = 0; i < syntax_.functions.size(); ++i)
    all.push_back({&syntax_.functions[i].name, Meaning::function, i});
  for (std::uint32_t i = 0; i < syntax_.tables.size(); ++i)
    all.push_back({&syntax_.tables[i].name, Meaning::table, i});
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.name->span.offset < b.name->span.offset; });
  for (const Entry& e : all) declare(*e.name, e.meaning, e.index);

  auto unique = [this](const auto& list, std::string_view what) {
    std::map<std::string, Span, std::less<>> seen;
    for (const auto& item : list) {
      failed_ = false;
      const auto [found, fresh] = seen.try_emplace(item.name.text, item.name.span);
      if (!fresh)
        complain(item.name.span, "there is already " + std::string(what) + " called `" + item.name.text + "`",
                 "it is declared on line " + std::to_string(line_of(found->second)));
    }
  };
  unique(syntax_.inputs, "an input");
  unique(syntax_.views, "a view");
}

void Checker::limits() {
  auto at_most = [this](const auto& list, std::size_t most, std::string_view what) {
    failed_ = false;
    if (list.size() > most)
      complain(list[most].name.span, "a module has at most " + std::to_string(most) + " " + std::string(what),
               "split the module");
  };
  at_most(syntax_.states, kStatesMax, "states");
  at_most(syntax_.tables, kTablesMax, "tables");
  at_most(syntax_.inputs, kInputsMax, "inputs");
  at_most(syntax_.views, kViewsMax, "views");
  at_most(syntax_.functions, kCalledMax, "functions");

  failed_ = false;
  std::size_t shown = 0, code = syntax_.functions.size() + syntax_.handlers.size();
  for (const ViewSyntax& v : syntax_.views) {
    const std::size_t cells = v.of_rows ? v.cells.size() : 0;
    shown += 1 + cells;
    code += 1 + cells + (v.of_rows && v.query && v.query->where ? 1 : 0);
    if (shown > kViewsMax && syntax_.views.size() <= kViewsMax)
      complain(v.name.span, "a module has at most " + std::to_string(kViewsMax) + " views and cells together",
               "split the module");
    else if (code > kFunctionsMax && syntax_.views.size() <= kViewsMax)
      complain(v.name.span,
               "a module has at most " + std::to_string(kFunctionsMax) +
                   " functions, handlers, views and cells together",
               "split the module");
  }
  failed_ = false;
}

void Checker::documents() {
  if (syntax_.documents.empty()) return;
  if (syntax_.documents.size() > 1)
    complain(syntax_.documents[1].at, "the documents are declared already",
             "on line " + std::to_string(line_of(syntax_.documents[0].at)));
  DocumentsSyntax& d = syntax_.documents[0];
  module_->documents.kind = d.kind;
  if (!d.max) return;
  failed_ = false;
  if (const auto max = known_whole(d.max, 1, kBytesMax, "the size of a document"))
    module_->documents.max = *max;
}

// A field, a parameter or a local must not hide what the module declares.
bool Checker::hides(const Name& name) {
  const auto found = globals_.find(name.text);
  if (found == globals_.end()) return false;
  complain(name.span,
           "`" + name.text + "` hides the " + std::string(word_for(found->second.meaning)) + " of that name",
           "choose another name");
  return true;
}

void Checker::input(InputSyntax& i) {
  Input out;
  out.name = i.name.text;
  out.kind = i.kind;
  out.keyed = i.keyed_at.length != 0;
  if (i.name.text == "start")
    complain(i.name.span, "an input cannot be called `start`",
             "`on start` runs when the store is created; choose another name");
  if (i.kind == InputKind::text) {
    out.max = kDefaultTextMax;
    if (i.max)
      if (const auto max = known_whole(i.max, 1, kBytesMax, "the size of a text")) out.max = *max;
  }
  if (out.keyed && syntax_.documents.empty())
    complain(i.keyed_at, "only a module with documents has keyed messages", "declare `documents text`");
  if (i.kind == InputKind::timer) timer(i, out);
  if (i.fields.size() > kFieldsMax)
    complain(i.fields[kFieldsMax].name.span, "a message has at most 16 fields", "put the rest into its body");
  std::map<std::string, Span, std::less<>> seen;
  for (std::size_t n = 0; n < i.fields.size() && !failed_; ++n) {
    if (!seen.try_emplace(i.fields[n].name.text, i.fields[n].name.span).second)
      complain(i.fields[n].name.span, "there is already a field called `" + i.fields[n].name.text + "`",
               "choose another name");
    else
      field(i, n, out);
  }
  module_->inputs.push_back(std::move(out));
}

void Checker::field(InputSyntax& i, std::size_t n, Input& out) {
  FieldSyntax& f = i.fields[n];
  if (hides(f.name)) return;
  if (f.slot.optional) return complain(f.slot.optional_at, "a field is always given", "leave out the `?`");
  if (f.slot.base == Base::boolean)
    return complain(f.slot.base_at, "a field cannot be a bool", "use `u32 in 0..1`");
  const bool body = f.slot.base == Base::text || f.slot.base == Base::bytes;
  if (body && n + 1 != i.fields.size())
    return complain(
        f.name.span,
        "a " + std::string(f.slot.base == Base::text ? "text" : "bytes") + " field must be the last one",
        "it is the request's body; use slug for a short name in the query");
  const std::optional<Slot> checked = slot(f.slot, "a field", kBytesMax);
  if (checked) out.fields.push_back({f.name.text, *checked});
}

void Checker::timer(InputSyntax& i, Input& out) {
  const std::optional<double> every = known_number(i.every);
  if (!every) return;
  if (*every != std::floor(*every) || *every < 1 || *every > kEveryMax)
    return complain(i.every->span, "a timer runs every 1ms to 366d, in whole milliseconds",
                    "write `input timer " + i.name.text + " every 10s`");
  out.every_ms = *every;
}

void Checker::was(const Name& name, const Name& old) {
  if (name.text == old.text)
    complain(old.span, "that is its name already", "`was` tells the name it had in the version before");
}

void Checker::still_there(const Name& name, std::string_view what) {
  complain(name.span, "the " + std::string(what) + " `" + name.text + "` is still there",
           "`was` and `drop` speak of what this version no longer has");
}

void Checker::drops() {
  std::vector<Name> states, tables;
  for (const DropSyntax& d : syntax_.drops) {
    (d.table ? tables : states).push_back(d.name);
    (d.table ? module_->dropped_tables : module_->dropped_states).push_back(d.name.text);
  }
  renamed(syntax_.states, states, "state");
  failed_ = false;
  renamed(syntax_.tables, tables, "table");
}

}  // namespace sluice::vm
