#include "tools/memory_store.h"

#include <cstring>

#include "vm/base/hash.h"
#include "vm/image.h"

namespace sluice::tools {
namespace {

constexpr char kDocument = '\xff';
constexpr std::size_t kDocumentHead = sizeof(std::uint64_t) + 1;

}  // namespace

MemoryStore::MemoryStore(const vm::Module& module)
    : module_(module), tables_(module, vm::first_layout(module)) {
  for (std::size_t i = 0; i < module.states.size(); ++i)
    if (module.states[i].first) MemoryStore::set_state(static_cast<std::uint16_t>(i), *module.states[i].first);
  records_.keep_event();
}

std::string MemoryStore::state_key(std::uint16_t number) const {
  return vm::state_key(tables_.layout().states[number]);
}

void MemoryStore::begin_event(std::string_view key) {
  ++events_;
  seed_.clear();
  orders_.begin_event();
  has_document_ = !key.empty();
  if (!has_document_) return;
  key_.assign(key);
  stored_ = {};
  std::string_view record;
  if (records_.get(kDocument + key_, record)) {
    std::memcpy(&stored_.revision, record.data(), sizeof stored_.revision);
    stored_.deleted = record[kDocumentHead - 1] == 0;
    stored_.bytes = record.size() - kDocumentHead;
    if (stored_.bytes > 0) stored_.pieces.push_back(record.substr(kDocumentHead));
  }
  document_.open(stored_, key_);
}

// The edit's pieces point into the old record and the request, so it is written before the event is over.
void MemoryStore::stage_document() {
  if (!has_document_ || !document_.changed()) return;
  std::string record(kDocumentHead, document_.exists() ? '\1' : '\0');
  const std::uint64_t revision = stored_.revision + 1;
  std::memcpy(record.data(), &revision, sizeof revision);
  document_.append_to(record);
  records_.put(kDocument + key_, record);
}

bool MemoryStore::keep_event() {
  stage_document();
  const bool changed = records_.wrote();
  records_.keep_event();
  orders_.keep_event();
  return changed;
}

void MemoryStore::undo_event() {
  records_.undo_event();
  orders_.undo_event();
}

bool MemoryStore::state(std::uint16_t number, vm::Value& out) {
  std::string_view bytes;
  if (!records_.get(state_key(number), bytes)) return false;
  const std::optional<vm::Value> value = vm::decode_state(module_.states[number].slot, bytes);
  SLUICE_CHECK(value.has_value());
  out = *value;
  return true;
}

void MemoryStore::set_state(std::uint16_t number, const vm::Value& value) {
  std::string bytes;
  vm::encode_state(bytes, module_.states[number].slot, value);
  records_.put(state_key(number), bytes);
}

void MemoryStore::clear_state(std::uint16_t number) { records_.erase(state_key(number)); }

bool MemoryStore::doc(vm::Value& out) {
  if (!document_.exists()) return false;
  const bool bytes = module_.documents.kind == vm::DocumentKind::bytes;
  out = vm::Value::span(document_.whole(), bytes ? vm::Type::bytes : vm::Type::text);
  return true;
}

std::string_view MemoryStore::seed() {
  for (std::uint64_t part = 0; seed_.size() < 32; ++part) {
    const std::uint64_t from[2] = {events_, part};
    const std::uint64_t bits = xxh64({reinterpret_cast<const char*>(from), sizeof from});
    seed_.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  return seed_;
}

}  // namespace sluice::tools
