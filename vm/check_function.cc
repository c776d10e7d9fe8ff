// Functions, handlers and views: their heads, and what their bodies give.
#include <algorithm>

#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {

void Checker::enter(Place place, Body& body) {
  place_ = place;
  body_ = &body;
  fn_ = nullptr;
  on_ = nullptr;
  input_ = nullptr;
  scope_.clear();
  loops_ = 0;
  in_cells_ = false;
  effect_ = false;
}

RegisterType Checker::signature_type(const Name& name) {
  const std::string& t = name.text;
  // Arithmetic is always plain num, and a slug is a text: slots are checked where a value is stored.
  if (t == "num" || t == "int" || t == "u32") return Type::num;
  if (t == "text" || t == "slug") return Type::text;
  if (t == "bool") return Type::boolean;
  const auto found = globals_.find(t);
  if (found != globals_.end() && found->second.meaning == Meaning::table) {
    // A wrong table was complained about where it stands.
    if (!table_known_[found->second.index]) failed_ = true;
    return {Type::row, found->second.index};
  }
  std::vector<std::string> known{"num", "int", "u32", "bool", "text", "slug"};
  for (const TableSyntax& table : syntax_.tables) known.push_back(table.name.text);
  const std::string near = nearest(t, known);
  if (t == "bytes")
    complain(name.span, "bytes are not passed on", "pass `text(...)` of them, or their size");
  else
    complain(name.span, "there is no type called `" + t + "`",
             near.empty() ? syntax_.tables.empty() ? "types are num, int, u32, bool, text and slug"
                                                 : "types are num, int, u32, bool, text, slug and the name of a table"
                          : "did you mean `" + near + "`?");
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
    const RegisterType type = signature_type(p.type);
    if (failed_) return;
    if (type.type == Type::row && place_ == Place::view)
      return complain(p.type.span, "a request cannot bring a row", "take the key of the row instead");
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
  if (!failed_ && f.result) f.type = signature_type(*f.result).type;
  if (f.type == Type::row) no_row(f.result->span);
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
      if (e.type == Type::row) return no_row(e.span);
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

// A row is found where it is used: what a function hands back is a value.
void Checker::no_row(Span at) {
  complain(at, "a function does not give a row", "give its key, or a column of it");
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
  if (failed_) return;
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
  if (v.of_rows) {
    view_of_rows(v, out);
  } else {
    v.result = signature_type(v.type).type;
    if (v.result == Type::row)
      complain(v.type.span, "a view gives a num, a text or a bool",
               "for rows, write `view " + v.name.text + " = for r in " + v.type.text + " { ... }`");
    if (failed_) return;
    expr(*v.body.value);
    if (!v.body.value->never) wants(*v.body.value, "`" + v.name.text + "` gives", v.result);
  }
  out.type = v.result;
  module_->views.push_back(std::move(out));
}

// Three functions come of it: the rows and `where` of the parameters, and each cell of a row and its position.
void Checker::view_of_rows(ViewSyntax& v, View& out) {
  v.result = Type::cursor;
  if (!query(*v.query, v.query->where ? Reading::rows : Reading::page)) return;
  const auto row = new_local(v.row, {Type::row, v.query->table_index}, false);
  if (!row) return;
  if (v.query->where) condition(*v.query->where);
  v.query->streams = true;
  in_cells_ = true;
  if (v.cells.empty())
    complain(v.cells_at, "a view of rows shows at least one cell", "write `{ " + v.row.text + ".column }`");
  cells(v.cells, true);
  in_cells_ = false;
  for (const Cell& c : v.cells) out.cells.push_back({c.name.text, 0});
}

}  // namespace sluice::vm
