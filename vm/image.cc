#include "vm/image.h"

#include <cmath>

#include "vm/base/hash.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {
constexpr std::uint16_t kCatalogFormat = 1;
constexpr double kWholeMax = 9007199254740992.0;

void put_varint(std::string& out, std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) out.push_back(static_cast<char>(n | 0x80));
  out.push_back(static_cast<char>(n));
}
// Absent when it is longer than needed, or is not all of `bytes`.
std::optional<std::uint64_t> whole_varint(std::string_view bytes) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == 9 && byte > 1) return std::nullopt;
    n |= std::uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return i + 1 == bytes.size() && (byte != 0 || i == 0) ? std::optional(n) : std::nullopt;
  }
  return std::nullopt;
}
std::uint64_t zigzag64(std::int64_t n) { return (static_cast<std::uint64_t>(n) << 1) ^ static_cast<std::uint64_t>(n >> 63); }
std::int64_t unzigzag64(std::uint64_t n) { return static_cast<std::int64_t>(n >> 1) ^ -static_cast<std::int64_t>(n & 1); }

// One declaration of what is stored, as a person reads it: the catalog keeps these words.
std::string describe_documents(const Documents& documents) {
  constexpr std::string_view kinds[] = {"", "text", "bytes", "json"};
  return std::string(kinds[static_cast<int>(documents.kind)]);
}

// What the catalog says of a module, decoded.
struct Catalog {
  std::uint32_t version = 0;
  std::uint64_t shape = 0, code = 0;
  std::string_view name;
  std::string_view documents;
  std::uint32_t documents_max = 0;
  std::vector<std::pair<std::string_view, std::string_view>> states;  // name, slot
};

std::string encode_declarations(const Module& module) {
  std::string out;
  Writer w(out);
  w.text(describe_documents(module.documents));
  w.number(module.documents.kind == DocumentKind::none ? 0 : module.documents.max);
  w.count(module.states.size());
  for (const State& state : module.states) {
    w.text(state.name);
    w.text(describe(state.slot));
  }
  return out;
}

std::optional<Catalog> decode_catalog(std::string_view bytes) {
  Reader in(bytes);
  if (in.u16() != kCatalogFormat) return std::nullopt;
  Catalog catalog;
  catalog.version = in.u32();
  catalog.shape = in.u64();
  catalog.code = in.u64();
  catalog.name = in.text();
  catalog.documents = in.text();
  catalog.documents_max = in.number();
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    const std::string_view name = in.text();
    catalog.states.emplace_back(name, in.text());
  }
  if (!in.used_up()) return std::nullopt;
  return catalog;
}
}  // namespace

std::string state_key(std::uint16_t state) {
  std::string key("\x02", 1);
  put_varint(key, state);
  return key;
}

void encode_state(std::string& out, const Slot& slot, const Value& value) {
  switch (slot.base) {
    case Base::num: Writer(out).f64(value.num); break;
    case Base::integer: case Base::u32: put_varint(out, zigzag64(static_cast<std::int64_t>(value.num))); break;
    case Base::boolean: out.push_back(value.boolean ? '\1' : '\0'); break;
    case Base::text: case Base::slug: case Base::bytes: out.append(value.text()); break;
  }
}

std::optional<Value> decode_state(const Slot& slot, std::string_view bytes) {
  switch (slot.base) {
    case Base::num: {
      if (bytes.size() != 8) return std::nullopt;
      const double n = Reader(bytes).f64();
      return is_number(n) ? std::optional(Value::number(n)) : std::nullopt;
    }
    case Base::integer: case Base::u32: {
      const auto n = whole_varint(bytes);
      if (!n) return std::nullopt;
      const auto whole = static_cast<double>(unzigzag64(*n));
      if (std::fabs(whole) > kWholeMax) return std::nullopt;
      if (slot.base == Base::u32 && (whole < 0 || whole > 4294967295.0)) return std::nullopt;
      return Value::number(whole);
    }
    case Base::boolean:
      if (bytes.size() != 1 || static_cast<unsigned char>(bytes[0]) > 1) return std::nullopt;
      return Value::truth(bytes[0] != 0);
    case Base::text: case Base::slug: return Value::span(bytes);
    case Base::bytes: return Value::span(bytes, Type::bytes);
  }
  return std::nullopt;
}

std::string encode_clock(const Clock& clock) {
  std::string out;
  Writer(out).u64(clock.seq);
  Writer(out).u64(clock.now_ms);
  return out;
}

std::optional<Clock> decode_clock(std::string_view bytes) {
  Reader in(bytes);
  Clock clock;
  clock.seq = in.u64();
  clock.now_ms = in.u64();
  if (!in.used_up()) return std::nullopt;
  return clock;
}

std::string encode_catalog(const Module& module) {
  const std::string declarations = encode_declarations(module);
  std::string out;
  Writer w(out);
  w.u16(kCatalogFormat);
  w.u32(module.version);
  w.u64(xxh64(declarations));
  w.u64(module.code_hash);
  w.text(module.name);
  return out + declarations;
}

std::string why_not_served(std::string_view bytes, const Module& module) {
  const auto catalog = decode_catalog(bytes);
  if (!catalog) return "the store's catalog is not one that this version reads";
  const auto quoted = [](std::string_view s) { return "`" + std::string(s) + "`"; };
  if (catalog->name != module.name)
    return "the store is of the module " + quoted(catalog->name) + ", not " + quoted(module.name);
  if (module.version < catalog->version)
    return "the store has version " + std::to_string(catalog->version) + " of " + quoted(module.name) + ", and this is version " +
           std::to_string(module.version);
  const std::string documents = describe_documents(module.documents);
  if (catalog->documents != documents) {
    const auto say = [](std::string_view kind) { return kind.empty() ? std::string("no documents") : "documents " + std::string(kind); };
    return "the store has " + say(catalog->documents) + ", the module " + say(documents);
  }
  if (module.documents.kind != DocumentKind::none && module.documents.max < catalog->documents_max)
    return "the store's documents have up to " + std::to_string(catalog->documents_max) + " bytes, the module's " +
           std::to_string(module.documents.max);
  // States are kept by number, so their order counts too.
  for (std::size_t i = 0; i < catalog->states.size(); ++i) {
    const auto& [name, slot] = catalog->states[i];
    if (i >= module.states.size()) return "the state " + quoted(name) + " is gone";
    const State& state = module.states[i];
    if (state.name != name) return "state " + std::to_string(i) + " was " + quoted(name) + " and is " + quoted(state.name);
    if (const std::string now = describe(state.slot); now != slot)
      return "the state " + quoted(name) + " was " + std::string(slot) + " and is " + now;
  }
  if (module.states.size() > catalog->states.size())
    return "the state " + quoted(module.states[catalog->states.size()].name) + " is new";
  return {};
}

}  // namespace sluice::vm
