// A store in memory for tests of modules: states, one document, tables, and undo by copying.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/check.h"
#include "vm/machine.h"
#include "vm/memory_records.h"
#include "vm/orders.h"
#include "vm/tables.h"

namespace sluice::vm {

class MemoryHost : public Host {
 public:
  // First values of the module's states.
  explicit MemoryHost(const Module& module)
      : tables_(module.tables.empty() ? nullptr : std::make_unique<Tables>(module, first_layout(module))) {
    for (std::size_t i = 0; i < module.states.size(); ++i)
      if (module.states[i].first) MemoryHost::set_state(static_cast<std::uint16_t>(i), *module.states[i].first);
  }

  bool state(std::uint16_t number, Value& out) override {
    const auto found = kept_.states.find(number);
    if (found == kept_.states.end()) return false;
    out = found->second.value;
    if (is_span(out)) out = Value::span(lend(found->second.text), out.type);
    return true;
  }
  void set_state(std::uint16_t number, const Value& value) override {
    Text text = is_span(value) ? std::make_shared<const std::string>(value.text()) : nullptr;
    kept_.states[number] = {value, std::move(text)};
  }
  void clear_state(std::uint16_t number) override { kept_.states.erase(number); }

  bool doc(Value& out) override {
    ++documents_read;
    if (!kept_.document) return false;
    out = Value::span(lend(std::make_shared<const std::string>(*kept_.document)));
    return true;
  }
  bool has_doc() override { return kept_.document.has_value(); }
  std::uint64_t doc_bytes() override { return kept_.document ? kept_.document->size() : 0; }
  double doc_revision() override { return static_cast<double>(revision); }
  std::string_view doc_key() override { return key; }
  void doc_set(std::string_view content) override { kept_.document = std::string(content); }
  void doc_delete() override {
    SLUICE_CHECK(kept_.document.has_value());
    kept_.document.reset();
  }
  void doc_append(std::string_view content) override {
    SLUICE_CHECK(kept_.document.has_value());
    kept_.document->append(content);
  }
  void doc_splice(std::uint64_t at, std::uint64_t remove, std::string_view insert) override {
    SLUICE_CHECK(kept_.document && at <= kept_.document->size() && remove <= kept_.document->size() - at);
    kept_.document->replace(static_cast<std::size_t>(at), static_cast<std::size_t>(remove), insert);
  }
  std::string_view seed() override { return seed_bytes; }
  const Tables* tables() override { return tables_.get(); }
  Records* records() override { return &records_; }
  Orders* orders() override { return has_orders ? &orders_ : nullptr; }

  // An event with undo: what it wrote stays only when it did not fail.
  template <class Run>
  Outcome event(Run run) {
    lent_.clear();
    Contents before = kept_;
    orders_.begin_event();
    const Outcome outcome = run();
    if (outcome.fault != Fault::none) {
      kept_ = std::move(before);
      records_.undo_event();
      orders_.undo_event();
    } else {
      records_.keep_event();
      orders_.keep_event();
    }
    return outcome;
  }

  std::string text_of(std::uint16_t number) {
    Value value;
    return state(number, value) ? std::string(value.text()) : std::string("(absent)");
  }
  double number_of(std::uint16_t number) {
    Value value;
    return state(number, value) ? value.num : -1;
  }
  const std::optional<std::string>& document() const { return kept_.document; }
  void put_document(std::string content) { kept_.document = std::move(content); }

  std::string key = "a-key";
  std::uint64_t revision = 0;
  std::string seed_bytes = std::string(32, '\x07');
  int documents_read = 0;
  bool has_orders = true;
  const MemoryRecords& stored() const { return records_; }

 private:
  using Text = std::shared_ptr<const std::string>;
  struct Kept {
    Value value;
    Text text;
  };
  struct Contents {
    std::map<std::uint16_t, Kept> states;
    std::optional<std::string> document;
  };
  static bool is_span(const Value& value) { return value.type == Type::text || value.type == Type::bytes; }
  std::string_view lend(const Text& text) {
    lent_.push_back(text);
    return *text;
  }

  std::unique_ptr<const Tables> tables_;
  MemoryRecords records_;
  Orders orders_;
  Contents kept_;
  std::vector<Text> lent_;   // what a register may hold until the event ends, whatever is written meanwhile
};

}  // namespace sluice::vm
