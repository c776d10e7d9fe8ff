// Plays events to a module written as text, the whole way: compiled, encoded, proven, run against a store in
// memory.
#pragma once
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "t/vm/memory_host.h"
#include "vm/base/number_text.h"
#include "vm/compiler.h"
#include "vm/format.h"
#include "vm/slot.h"

namespace sluice::vm {

using Query = std::map<std::string, std::string, std::less<>>;

// Answers as a transcript shows them: "200 text", "422 limit text" without the number: "ok ..." or the
// fault's name and what the module said.
class ModulePlayer {
 public:
  explicit ModulePlayer(std::string_view source) : source_(source) {
    const Compiled compiled = compile(source_);
    std::string said;
    for (const Diagnostic& d : compiled.diagnostics) said += render("m.aup", source_, d);
    INFO(said);
    REQUIRE(compiled.module != nullptr);
    Result<std::string, std::string> file = encode(*compiled.module);
    REQUIRE(file);
    file_ = *file;
    Result<std::unique_ptr<const Module>, std::string> loaded = load(file_);
    REQUIRE_MESSAGE(loaded.has_value(), (loaded ? std::string() : loaded.error()));
    module_ = std::move(*loaded);
    REQUIRE(*encode(*module_) == file_);
    host_ = std::make_unique<MemoryHost>(*module_);
    if (const Handler* start = module_->find_handler(0)) CHECK(run(*start, {}) == "ok");
  }

  std::string press(std::string_view key) {
    std::string out;
    for (const bool up : {false, true})
      if (const Handler* h = module_->find_handler(event_of(number(key), up))) {
        const std::string said = run(*h, {});
        if (out.empty() || said != "ok") out = said;
      }
    return out.empty() ? "no handler" : out;
  }

  // Fields by name; the body is the last field when that is a text or bytes.
  std::string post(std::string_view name, const Query& query = {}, std::string_view body = {}) {
    const Input& input = module_->inputs[number(name)];
    std::vector<Value> fields;
    if (input.kind == InputKind::text) fields.push_back(Value::span(body));
    for (const Field& f : input.fields) {
      Value v;
      if (f.slot.base == Base::text || f.slot.base == Base::bytes) {
        v = Value::span(body, type_of(f.slot.base));
      } else {
        const auto given = query.find(f.name);
        if (given == query.end()) return "missing_field";
        const std::optional<Value> read = read_slot(f.slot, given->second);
        if (!read) return "query";
        v = *read;
      }
      const Fault fault = narrow(f.slot, v);
      if (fault != Fault::none) return std::string(vm::name(fault));
      fields.push_back(v);
    }
    const Handler* h = module_->find_handler(event_of(number(name)));
    REQUIRE(h != nullptr);
    return run(*h, fields);
  }

  std::string view(std::string_view name, const Query& query = {}) {
    const View* v = module_->find_view(name);
    REQUIRE(v != nullptr);
    return look(*v, query, [&](const Event& event) {
      const Outcome o = machine_.view(*module_, *v, event, *host_);
      return o.elsewhere ? "elsewhere" : o.fault == Fault::none ? std::string(o.reply.text) : "no_value";
    });
  }
  // A page of a table view; the fault of its rows.
  std::string page(std::string_view name, const Query& query = {}, std::uint64_t from = 0, std::uint64_t count = 1000) {
    const View* v = module_->find_view(name);
    REQUIRE(v != nullptr);
    return look(*v, query, [&](const Event& event) {
      last_ = machine_.page(*module_, *v, event, *host_, from, count);
      if (last_.elsewhere) return std::string("elsewhere");
      if (last_.fault != Fault::none) return std::string(vm::name(last_.fault));
      CHECK(last_.reply.type == ContentType::json);
      return std::string(last_.reply.text);
    });
  }
  // A timer's turn.
  std::string tick(std::string_view name) { return run(*module_->find_handler(event_of(number(name))), {}); }

  const Module& module() const { return *module_; }
  MemoryHost& host() { return *host_; }
  const Outcome& last() const { return last_; }

  double now = 0;
  double seq = 1;
  std::uint64_t fuel = kFuel;

 private:
  template <class Look>
  std::string look(const View& v, const Query& query, Look see) {
    std::vector<Value> parameters;
    for (const Parameter& p : v.parameters) {
      const auto given = query.find(p.name);
      if (given == query.end()) return "missing_field";
      const std::optional<Value> read = read_slot(p.slot, given->second);
      if (!read) return "query";
      parameters.push_back(*read);
    }
    Event event;
    event.fields = parameters;
    event.now_ms = now;
    event.seq = seq;
    event.fuel = fuel;
    return see(event);
  }

  std::uint32_t number(std::string_view name) const {
    const Input* input = module_->find_input(name);
    REQUIRE(input != nullptr);
    return static_cast<std::uint32_t>(input - module_->inputs.data());
  }

  std::string run(const Handler& handler, const std::vector<Value>& fields) {
    Event event;
    event.fields = fields;
    event.now_ms = now;
    event.seq = seq;
    event.fuel = fuel;
    last_ = host_->event([&] { return machine_.handle(*module_, handler, event, *host_); });
    // Bytes are charged beside the bound, so only what is far below the budget can be compared with it.
    const std::uint64_t bound = module_->facts[handler.function].fuel;
    CHECK(last_.fuel_used <= bound + 10'000 + bound / 100);
    if (last_.fault != Fault::none) {
      std::string out(vm::name(last_.fault));
      if (!last_.text.empty()) out += ' ' + std::string(last_.text);
      return out;
    }
    switch (last_.reply.kind) {
      case ReplyKind::none:
        return "ok";
      case ReplyKind::owned:
        return "ok " + std::string(last_.reply.text);
      case ReplyKind::field:
        return "ok " + std::string(fields[last_.reply.field].text());
      case ReplyKind::document:
        return "ok " + host_->document().value_or("(no document)");
    }
    return {};
  }

  std::string source_, file_;
  std::unique_ptr<const Module> module_;
  std::unique_ptr<MemoryHost> host_;
  Machine machine_;
  Outcome last_;
};

}  // namespace sluice::vm
