#include "vm/compiler.h"

#include <algorithm>

#include "vm/check.h"
#include "vm/codegen.h"
#include "vm/explain.h"
#include "vm/format.h"
#include "vm/parser.h"
#include "vm/places.h"

namespace sluice::vm {
namespace {

// `each`: what every one of the `times` runs costs besides.
void over_budget(const Module& module, std::uint32_t function, std::uint64_t times, std::uint64_t each, Span at,
                 std::string_view who, std::vector<Complaint>& out) {
  if (function >= module.facts.size()) return;
  std::uint64_t fuel = 0;
  if (__builtin_add_overflow(module.facts[function].fuel, each, &fuel) || __builtin_mul_overflow(fuel, times, &fuel))
    fuel = UINT64_MAX;
  if (fuel <= kFuel) return;
  out.push_back({at,
                 "`" + module.functions[function].name + "` may need " + grouped(fuel) + " fuel, and " +
                     std::string(who) + " has " + grouped(kFuel),
                 "lower the limits of its loops"});
}

// What is allowed but probably not meant.
std::vector<Complaint> warnings(const Syntax& syntax, const Module& module) {
  std::vector<Complaint> out;
  for (const InputSyntax& i : syntax.inputs) {
    const std::string& n = i.name.text;
    const bool handled = std::any_of(syntax.handlers.begin(), syntax.handlers.end(),
                                     [&](const OnSyntax& o) { return !o.start && o.name.text == n; });
    if (handled) continue;
    const std::string head = i.kind == InputKind::key    ? n + " down"
                             : i.kind == InputKind::text ? n + " (line)"
                                                         : n;
    out.push_back({i.name.span, "the input `" + n + "` has no handler", "write `on " + head + " { ... }`"});
  }
  for (const OnSyntax& o : syntax.handlers) {
    const Handler* h = module.find_handler(o.event);
    if (h) over_budget(module, h->function, 1, 0, o.name.span, "an event", out);
  }
  for (std::size_t i = 0; i < syntax.views.size() && i < module.views.size(); ++i) {
    const ViewSyntax& v = syntax.views[i];
    const View& view = module.views[i];
    over_budget(module, view.function, 1, 0, v.name.span, "a view", out);
    if (view.where) over_budget(module, *view.where, v.query->rows, flat_fuel(Op::next), v.query->where_at, "a view", out);
    for (std::size_t n = 0; n < view.cells.size(); ++n)
      over_budget(module, view.cells[n].function, 1, 0, v.cells[n].name.span, "a cell", out);
  }
  if (!syntax.documents.empty() && !module.serves_objects())
    out.push_back({syntax.documents[0].at, "nobody can reach these documents over `/objects`",
                   "declare `message show keyed { }` and `message edit keyed { body: text }`"});
  return out;
}

}  // namespace

Compiled compile(std::string_view source) {
  Compiled out;
  const Places places(source);
  std::vector<Complaint> complaints;
  if (std::optional<Complaint> bad = unreadable(source)) {
    out.diagnostics.push_back(places.at(*bad, Diagnostic::Kind::error));
    return out;
  }
  Syntax syntax = parse(source, complaints);
  std::unique_ptr<Module> module;
  // What a broken declaration would have declared is missing, so nothing is said about meanings before it is
  // mended.
  if (complaints.empty()) module = check(source, syntax, complaints);
  if (complaints.empty()) generate(source, syntax, *module, complaints);
  if (complaints.empty()) {
    // Proven like any other file: the bounds come from the same proof.
    const Result<std::string, std::string> file = encode(*module);
    if (!file) {
      complaints.push_back({syntax.name.span, "the module does not fit its file: " + file.error(),
                            "split it into several modules"});
    } else {
      const Result<std::unique_ptr<const Module>, std::string> proven = load(*file);
      if (!proven) {
        complaints.push_back({syntax.name.span,
                              "the compiler made a module that is not accepted: " + proven.error(),
                              "this is a defect of the compiler"});
      } else {
        module->facts = (*proven)->facts;
        module->code_hash = (*proven)->code_hash;
      }
    }
  }
  for (const Complaint& c : complaints) out.diagnostics.push_back(places.at(c, Diagnostic::Kind::error));
  if (complaints.empty()) {
    for (const Complaint& c : warnings(syntax, *module))
      out.diagnostics.push_back(places.at(c, Diagnostic::Kind::warning));
    out.module = std::move(module);
  }
  std::stable_sort(out.diagnostics.begin(), out.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     return a.line != b.line ? a.line < b.line : a.column < b.column;
                   });
  return out;
}

}  // namespace sluice::vm
