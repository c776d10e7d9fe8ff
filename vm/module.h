// A module as it is after decoding: declarations, descriptors and code, in the order of the file.
//
// The compiler makes one, `encode` writes it, `load` reads it back and proves it. Plain data: whoever holds a
// `Module` that `load` returned may run it without further checks.
// Source: design module.md 1.4, 3.1, 3.3.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/opcode.h"
#include "vm/value.h"

namespace sluice::vm {

enum class Base : std::uint8_t { num = 0, integer = 1, u32 = 2, boolean = 3, text = 4, slug = 5, bytes = 6 };
enum class Range : std::uint8_t { none = 0, in = 1, clamp = 2 };

inline constexpr std::uint32_t kDefaultTextMax = 4096;          // bytes
inline constexpr std::uint32_t kBytesMax = 16 * 1024 * 1024;    // bytes: `bytes` fields and documents
inline constexpr std::uint32_t kSlugMax = 64;                   // bytes
inline constexpr std::uint64_t kFuel = 1'000'000;               // per event or view cell, unless the host says otherwise
inline constexpr std::uint32_t kArenaBytes = 1024 * 1024;       // per event

// What a state, a column or a field stores.
struct Slot {
  Base base = Base::num;
  bool optional = false;            // `?`
  Range range = Range::none;        // numbers only
  double low = 0, high = 0;         // inclusive, when range != none
  std::uint32_t max = 0;            // bytes; text, slug and bytes only
  bool operator==(const Slot&) const = default;
};
Type type_of(Base base);
// As it is written in a module: "int in 0..100", "text? max 40".
std::string describe(const Slot& slot);

struct State {
  std::string name;
  Slot slot;
  std::optional<Value> first;       // none: without a value, `?` only; a span points into Module::text_pool
};

// The place of section 4. A file of this version has none; the loader refuses one that has.
struct Table { std::string name; };

enum class DocumentKind : std::uint8_t { none = 0, text = 1, bytes = 2, json = 3 };
struct Documents {
  DocumentKind kind = DocumentKind::none;
  std::uint32_t max = kBytesMax;    // bytes
};

enum class InputKind : std::uint8_t { text = 0, key = 1, message = 2, timer = 3 };
struct Field {
  std::string name;
  Slot slot;
};
// Shape: at most 16 fields; a text or bytes field is the last one and is the request's body.
struct Input {
  std::string name;
  InputKind kind = InputKind::key;
  bool keyed = false;               // messages of modules with documents
  std::uint32_t max = 0;            // bytes; text inputs
  double every_ms = 0;              // timers
  std::vector<Field> fields;
  bool takes_body() const {
    return kind == InputKind::text ||
           (!fields.empty() && (fields.back().slot.base == Base::text || fields.back().slot.base == Base::bytes));
  }
};

// Section 7: scans and row shapes. A file of this version has neither.

enum class FunctionKind : std::uint8_t { function = 0, handler = 1, view = 2 };
struct Function {
  std::string name;                 // for errors: "on take", "view left", "fn cost"
  FunctionKind kind = FunctionKind::function;
  std::vector<Type> parameters;     // the first registers
  Type result = Type::none;
  bool partial = false;             // `?`: may return absent
  bool writes = false;
  std::vector<Type> registers;      // at most 200, parameters first
  std::vector<Word> code;           // at most 65,535
};

// Event numbers: 0 start; 1 + 2 * input; + 1 for a key's up edge.
struct Handler {
  std::uint32_t event = 0;
  std::uint32_t function = 0;
};

struct Parameter {
  std::string name;
  Slot slot;                        // num, int, u32, bool, text or slug; never optional
};
struct View {
  std::string name;
  Type type = Type::num;            // num, text or boolean (a table view comes with tables)
  std::vector<Parameter> parameters;
  std::uint32_t function = 0;
};

// What the verifier found out about a function; not in the file.
struct Facts {
  std::uint64_t fuel = 0;           // worst case, bytes aside
  std::uint32_t rows_read = 0;
  std::uint32_t rows_written = 0;   // states and documents count as one each
  bool reads_now = false;
  bool reads_seq = false;
  bool chance = false;
  bool writes = false;
};

struct Module {
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;      // first values point into text_pool

  std::string name;
  std::uint32_t version = 1;
  std::uint32_t cost_model = 1;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  std::deque<std::string> text_pool;   // what State::first points into; a deque, so that growing moves nothing
  std::vector<State> states;
  std::vector<Table> tables;
  Documents documents;
  std::vector<Input> inputs;
  std::vector<Function> functions;
  std::vector<Handler> handlers;    // rising by event
  std::vector<View> views;
  // Section 12: line of each word, per function; empty when the file has none.
  std::vector<std::vector<std::uint32_t>> lines;

  std::vector<Facts> facts;         // per function; filled by load()
  std::uint64_t code_hash = 0;      // XXH64 of the file: the identity of the code; filled by load()

  const Input* find_input(std::string_view n) const;
  const View* find_view(std::string_view n) const;
  const State* find_state(std::string_view n) const;
  // The function of an event, or nullptr when the module has no handler for it.
  const Handler* find_handler(std::uint32_t event) const;

  // `show` keyed without fields, `edit` keyed with one body field: then the module serves /objects.
  const Input* show() const;
  const Input* edit() const;
  const Input* remove() const;
  bool serves_objects() const { return show() != nullptr && edit() != nullptr; }

  // May run on several shards: no states, tables, timers, `on start`, and nothing reads `seq`. Empty when it may, else
  // the reason as the end of a sentence ("it has the state `hits`").
  std::string why_not_sharded() const;
};

inline std::uint32_t event_of(std::uint32_t input, bool up = false) { return 1 + 2 * input + (up ? 1 : 0); }

}  // namespace sluice::vm
