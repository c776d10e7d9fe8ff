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
    if (!h || h->function >= module.facts.size()) continue;
    const std::uint64_t fuel = module.facts[h->function].fuel;
    if (fuel <= kFuel) continue;
    out.push_back({o.name.span,
                   "`" + module.functions[h->function].name + "` may need " + grouped(fuel) +
                       " fuel, and an event has " + grouped(kFuel),
                   "lower the limits of its loops"});
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
