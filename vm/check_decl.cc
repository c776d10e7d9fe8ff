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

std::string with_article(Type type) {
  switch (type) {
    case Type::num:
      return "a num";
    case Type::text:
      return "a text";
    case Type::boolean:
      return "a bool";
    case Type::bytes:
      return "bytes";
    default:
      return "nothing";
  }
}

std::uint32_t Checker::line_of(Span span) const {
  return 1 + static_cast<std::uint32_t>(std::count(source_.begin(), source_.begin() + span.offset, '\n'));
}

std::unique_ptr<Module> check(std::string_view source, Syntax& syntax, std::vector<Complaint>& complaints) {
  return Checker(source, syntax, complaints).run();
}

std::unique_ptr<Module> Checker::run() {
  header();
  unserved();
  collect();
  const_visits_.resize(syntax_.consts.size(), Visit::no);
  for (std::uint32_t i = 0; i < syntax_.consts.size(); ++i) {
    failed_ = false;
    constant(i);
  }
  for (StateSyntax& s : syntax_.states) {
    failed_ = false;
    state(s);
  }
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

// What the checks do not know yet, said once for each kind.
void Checker::unserved() {
  const auto say = [&](Span at, const char* message, const char* hint) {
    failed_ = false;
    complain(at, message, hint);
  };
  failed_ = false;
  if (!syntax_.tables.empty()) no_tables(syntax_.tables.front().at);
  for (const ViewSyntax& v : syntax_.views)
    if (v.of_rows && syntax_.tables.empty()) {
      failed_ = false;
      no_tables(v.query->span);
      break;
    }
  for (const InputSyntax& i : syntax_.inputs)
    if (i.kind == InputKind::timer) {
      say(i.name.span, "this version has no timers yet", "let a client or cron post a message instead");
      break;
    }
  for (const StateSyntax& s : syntax_.states)
    if (s.was) {
      say(s.was->span, "this version has no `was` yet", "a state keeps its name as long as its store");
      break;
    }
  if (!syntax_.drops.empty())
    say(syntax_.drops.front().name.span, "this version has no `drop` yet", "a state stays as long as its store");
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
    all.push_back({&syntax_.tables[i].name, Meaning::unknown, i});
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

  auto at_most = [this](const auto& list, std::size_t most, std::string_view what) {
    failed_ = false;
    if (list.size() > most)
      complain(list[most].name.span, "a module has at most " + std::to_string(most) + " " + std::string(what),
               "split the module");
  };
  at_most(syntax_.states, kStatesMax, "states");
  at_most(syntax_.inputs, kInputsMax, "inputs");
  at_most(syntax_.views, kViewsMax, "views");
  at_most(syntax_.functions, kCalledMax, "functions");
  failed_ = false;
}

void Checker::enter(Place place, Body& body) {
  place_ = place;
  body_ = &body;
  fn_ = nullptr;
  on_ = nullptr;
  input_ = nullptr;
  scope_.clear();
  loops_ = 0;
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
  if (i.fields.size() > kFieldsMax)
    complain(i.fields[kFieldsMax].name.span, "a message has at most 16 fields", "put the rest into its body");
  std::map<std::string, Span, std::less<>> seen;
  for (std::size_t n = 0; n < i.fields.size() && !failed_; ++n) {
    FieldSyntax& f = i.fields[n];
    if (hides(f.name)) break;
    if (!seen.try_emplace(f.name.text, f.name.span).second) {
      complain(f.name.span, "there is already a field called `" + f.name.text + "`", "choose another name");
      break;
    }
    if (f.slot.optional) {
      complain(f.slot.optional_at, "a field is always given", "leave out the `?`");
      break;
    }
    const bool body = f.slot.base == Base::text || f.slot.base == Base::bytes;
    if (f.slot.base == Base::boolean) {
      complain(f.slot.base_at, "a field cannot be a bool", "use `u32 in 0..1`");
      break;
    }
    if (body && n + 1 != i.fields.size()) {
      complain(
          f.name.span,
          "a " + std::string(f.slot.base == Base::text ? "text" : "bytes") + " field must be the last one",
          "it is the request's body; use slug for a short name in the query");
      break;
    }
    const std::optional<Slot> checked = slot(f.slot, "a field", kBytesMax);
    if (checked) out.fields.push_back({f.name.text, *checked});
  }
  module_->inputs.push_back(std::move(out));
}

Type Checker::signature_type(const Name& name) {
  const std::string& t = name.text;
  // Arithmetic is always plain num, and a slug is a text: slots are checked where a value is stored.
  if (t == "num" || t == "int" || t == "u32") return Type::num;
  if (t == "text" || t == "slug") return Type::text;
  if (t == "bool") return Type::boolean;
  const auto found = globals_.find(t);
  if (found != globals_.end() && found->second.meaning == Meaning::unknown) {
    // The table was complained about where it stands.
    failed_ = true;
    return Type::none;
  }
  complain(name.span, t == "bytes" ? "bytes are not passed on" : "there is no type called `" + t + "`",
           t == "bytes" ? "pass `text(...)` of them, or their size"
                        : "types are num, int, u32, bool, text and slug");
  return Type::none;
}

void Checker::parameters(std::vector<ParameterSyntax>& list, Body& body) {
  for (ParameterSyntax& p : list) {
    if (failed_ || hides(p.name)) return;
    if (list.size() > kFieldsMax) {
      complain(list[kFieldsMax].name.span, "there are at most 16 parameters");
      return;
    }
    if (find_local(p.name.text, nullptr)) {
      complain(p.name.span, "there is already a parameter called `" + p.name.text + "`",
               "choose another name");
      return;
    }
    const Type type = signature_type(p.type);
    if (failed_) return;
    scope_.push_back(static_cast<std::uint32_t>(body.locals.size()));
    body.locals.push_back({p.name.text, p.name.span, type, false});
  }
}

void Checker::function(std::uint32_t index) {
  FnSyntax& f = syntax_.functions[index];
  enter(Place::function, f.body);
  fn_ = &f;
  fn_index_ = index;
  parameters(f.parameters, f.body);
  if (!failed_ && f.result) f.type = signature_type(*f.result);
  for (const Local& l : f.body.locals) f.types.push_back(l.type);
  f.known = !failed_ && (f.result || f.is_block);
  if (failed_) return;
  if (!f.is_block) {
    expr(*f.body.value);
    const Expr& e = *f.body.value;
    if (failed_) return;
    if (!f.result) {
      if (e.never)
        return complain(e.span, "`none` is no value here", "declare what the function gives: `: num?`");
      f.type = e.type;
      f.known = e.type != Type::none;
      return;
    }
    if (e.never && !f.partial)
      return complain(e.span, "`" + f.name.text + "` always gives a value",
                      "write `" + f.result->text + "?` to let it give none");
    if (!e.never) wants(e, "`" + f.name.text + "` gives", f.type);
    return;
  }
  const bool open = block(f.body.block);
  if (open && f.result)
    complain(f.name.span, "`" + f.name.text + "` can end without a result", "end it with `return ...`");
}

void Checker::handler(OnSyntax& o) {
  enter(Place::handler, o.body);
  on_ = &o;
  if (o.start) {
    o.event = 0;
    if (o.edge != Edge::none)
      complain(o.edge_at, "`start` is not a key", "write `on start { ... }`");
    else if (o.line)
      complain(o.line->span, "`start` brings no text", "write `on start { ... }`");
  } else {
    const auto found = std::find_if(syntax_.inputs.begin(), syntax_.inputs.end(),
                                    [&](const InputSyntax& i) { return i.name.text == o.name.text; });
    if (found == syntax_.inputs.end()) {
      std::vector<std::string> known{"start"};
      for (const InputSyntax& i : syntax_.inputs) known.push_back(i.name.text);
      const std::string near = nearest(o.name.text, known);
      return complain(o.name.span, "there is no input called `" + o.name.text + "`",
                      near.empty() ? "declare it: `message " + o.name.text + " { }`, `input key " +
                                         o.name.text + "` or `input text " + o.name.text + "`"
                                   : "did you mean `" + near + "`?");
    }
    // Of two inputs of one name it is not known which is meant, and that was said.
    if (std::any_of(found + 1, syntax_.inputs.end(),
                    [&](const InputSyntax& i) { return i.name.text == o.name.text; }))
      return;
    input_ = &*found;
    o.input = static_cast<std::uint32_t>(found - syntax_.inputs.begin());
    o.event = event_of(o.input, o.edge == Edge::up);
    const std::string& n = o.name.text;
    if (found->kind == InputKind::key && o.edge == Edge::none)
      return complain(o.name.span, "say which edge of the key `" + n + "`",
                      "write `on " + n + " down { ... }` or `on " + n + " up { ... }`");
    if (found->kind != InputKind::key && o.edge != Edge::none)
      return complain(o.edge_at, "`" + n + "` is not a key",
                      "only a key has edges; write `on " + n + " { ... }`");
    if (found->kind != InputKind::text && o.line)
      return complain(o.line->span, "`" + n + "` is not a text input",
                      found->kind == InputKind::message ? "its fields have their names here"
                                                        : "only a text input brings a text");
    if (o.line && hides(*o.line)) return;
  }
  for (const OnSyntax& other : syntax_.handlers) {
    if (&other == &o) break;
    if (other.name.text == o.name.text && other.edge == o.edge)
      return complain(o.name.span, "this event has a handler already",
                      "it is on line " + std::to_string(line_of(other.name.span)));
  }
  if (!failed_) block(o.body.block);
}

void Checker::view(ViewSyntax& v) {
  enter(Place::view, v.body);
  View out;
  out.name = v.name.text;
  for (const ParameterSyntax& p : v.parameters)
    if (p.name.text == "from" || p.name.text == "count" || p.name.text == "after")
      complain(p.name.span, "a parameter of a view cannot be called `" + p.name.text + "`",
               "that name is kept for pages; choose another");
  parameters(v.parameters, v.body);
  if (failed_ || v.of_rows) return;
  v.result = signature_type(v.type);
  if (failed_) return;
  expr(*v.body.value);
  if (!v.body.value->never) wants(*v.body.value, "`" + v.name.text + "` gives", v.result);
  out.type = v.result;
  for (std::size_t n = 0; n < v.parameters.size() && n < v.body.locals.size(); ++n) {
    const std::string& t = v.parameters[n].type.text;
    Parameter p{v.parameters[n].name.text, {}};
    p.slot.base = t == "int"    ? Base::integer
                  : t == "u32"  ? Base::u32
                  : t == "bool" ? Base::boolean
                  : t == "text" ? Base::text
                  : t == "slug" ? Base::slug
                                : Base::num;
    if (p.slot.base == Base::text) p.slot.max = kDefaultTextMax;
    if (p.slot.base == Base::slug) p.slot.max = kSlugMax;
    out.parameters.push_back(std::move(p));
  }
  module_->views.push_back(std::move(out));
}

}  // namespace sluice::vm
