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

// The type of a register, a parameter or a result: of a row or a cursor also whose.
struct RegisterType {
  Type type = Type::none;
  std::uint8_t table = 0;           // row and cursor only, else 0
  RegisterType() = default;
  RegisterType(Type t, unsigned of_table = 0) : type(t), table(static_cast<std::uint8_t>(of_table)) {}
  bool operator==(const RegisterType&) const = default;
};

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
// With the article that the first word has when it is spoken: "an int in 0..100", "a u32".
std::string with_article(std::string_view words);

struct State {
  std::string name;
  Slot slot;
  std::optional<Value> first;       // none: without a value, `?` only; a span points into Module::text_pool
  std::string was{};                  // its name in the version before; empty: the same
};

inline constexpr std::size_t kTablesMax = 64, kColumnsMax = 32, kKeyColumnsMax = 4, kIndexesMax = 8, kTotalsMax = 8;
inline constexpr std::size_t kOrderColumnsMax = 8;            // of an index; of a total's groups
inline constexpr std::size_t kAllTotalsMax = 256;             // of a module: TOTAL names one with a byte
inline constexpr std::size_t kScansMax = 256, kShapesMax = 256;   // the same for OPEN, and for INSERT and UPDATE
inline constexpr std::uint32_t kKeyTextMax = 200;             // bytes of a text in a key or index
inline constexpr std::uint32_t kColumnTextMax = 64 * 1024;    // bytes of a text in any other column
inline constexpr std::size_t kEncodedKeyMax = 500;            // bytes of LMDB's 511
inline constexpr std::uint32_t kLoopMax = 10'000;             // rows of a query, rounds of a loop
inline constexpr std::uint32_t kPageMax = 1'000;              // rows of a page of a table view
inline constexpr double kEveryMax = 366.0 * 24 * 3600 * 1000; // ms between two runs of a timer: 1 to this, whole

struct Column {
  std::string name;
  Slot slot;                        // never bytes
  bool automatic = false;           // `auto`: an int, numbered 1, 2, 3...; never given
  std::optional<Value> first{};     // its default; none: must be given, or `?` and absent. A span points into text_pool
  std::string was{};
};
// Columns in the order of a key, an index or a group, by their number in the table.
struct KeyPart {
  std::uint8_t column = 0;
  bool descending = false;          // indexes only
  bool operator==(const KeyPart&) const = default;
};
// A row whose `?` column is absent is not in indexes over it.
struct Index {
  std::string name;
  std::vector<KeyPart> parts{};       // 1..8
  bool unique = false;
  bool ranked = false;
};
struct Total {
  std::string name;
  bool sum = false;                 // else a count of rows
  std::uint8_t column = 0;          // of a sum: num, int or u32; an absent one adds nothing
  std::vector<std::uint8_t> by{};     // 0..8 columns that are never absent
};
enum class Size : std::uint8_t { none = 0, max = 1, keep = 2 };
struct Table {
  std::string name;
  Size size = Size::none;           // of the whole table
  std::uint32_t rows = 0;           // at most
  Size group_size = Size::none;     // `per`: of each group of rows
  std::uint32_t group_rows = 0;
  std::uint8_t per = 0;             // leading key columns that make a group; 0: no groups
  std::vector<Column> columns{};
  std::vector<std::uint8_t> key{};    // 1..4 columns, never `?`
  std::vector<Index> indexes{};
  std::vector<Total> totals{};
  std::string was{};
  std::vector<std::string> drops{};   // columns whose values may be lost
};

// Section 7. How a query goes over rows. OPEN's window: the values of `prefix` columns, the low bound, the high bound.
enum class Bound : std::uint8_t { none = 0, including = 1, excluding = 2 };
struct Scan {
  std::uint8_t table = 0;
  std::uint8_t order = 0;           // 0: the key; 1 + i: index i
  std::uint8_t prefix = 0;          // leading columns of the order that are given
  Bound low = Bound::none, high = Bound::none;   // on the next column, in its own sense also when it is `desc`
  bool descending = false;          // against the order
  bool streams = false;             // the loop's body writes no table, so no keys are taken beforehand
  std::uint32_t limit = 0;          // rows at most, 1..10,000; 0: a paged view's
  bool operator==(const Scan&) const = default;
};

// The columns of an order: of the key (0) or of index `order - 1`. Shape: the order is there, and i < order_size.
std::size_t order_size(const Table& table, unsigned order);
KeyPart order_part(const Table& table, unsigned order, std::size_t i);
// Bytes at most of a whole key in a store, its kind and the numbers of table and index included: of a row or an entry of
// an index, and of a total's group. 500 at most.
std::uint32_t order_bytes(const Table& table, unsigned order);
std::uint32_t total_bytes(const Table& table, const Total& total);

enum class Writing : std::uint8_t { insert = 0, put = 1, update = 2 };
// The columns of an INSERT or UPDATE in the order of its window. A `?` column takes two registers: a bool, whether it
// has a value, then the value (of its type, whatever it is when there is none).
struct RowShape {
  std::uint8_t table = 0;
  Writing writing = Writing::insert;
  std::vector<std::uint8_t> columns{};
  bool operator==(const RowShape&) const = default;
};

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
  double every_ms = 0;              // timers: 1..kEveryMax, whole
  std::vector<Field> fields;
  bool takes_body() const {
    return kind == InputKind::text ||
           (!fields.empty() && (fields.back().slot.base == Base::text || fields.back().slot.base == Base::bytes));
  }
};

enum class FunctionKind : std::uint8_t { function = 0, handler = 1, view = 2 };
struct Function {
  std::string name;                 // for errors: "on take", "view left", "fn cost"
  FunctionKind kind = FunctionKind::function;
  std::vector<RegisterType> parameters;   // the first registers
  RegisterType result;
  bool partial = false;             // `?`: may return absent
  bool writes = false;
  std::vector<RegisterType> registers;    // at most 200, parameters first
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
struct ViewCell {
  std::string name;
  std::uint32_t function = 0;       // (parameters, row, position: num) -> num, text or bool; absent or faulting: null
};
struct View {
  std::string name;
  Type type = Type::num;            // num, text, boolean; cursor: a table view
  std::vector<Parameter> parameters;
  std::uint32_t function = 0;       // (parameters) -> the value, or the cursor of a table view
  // Table views only.
  std::optional<std::uint32_t> where{};   // (parameters, row) -> bool; then the scan has a limit
  std::vector<ViewCell> cells{};          // at least one
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
  bool ranks = false;               // needs the fences of an owner
  std::uint64_t tables_read = 0, tables_written = 0;   // a bit per table
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
  std::vector<Scan> scans;
  std::vector<RowShape> shapes;
  std::vector<std::string> dropped_states, dropped_tables;   // `drop state NAME`, `drop table NAME`
  // Section 12: line of each word, per function; empty when the file has none.
  std::vector<std::vector<std::uint32_t>> lines;

  std::vector<Facts> facts;         // per function; filled by load()
  std::uint64_t code_hash = 0;      // XXH64 of the file: the identity of the code; filled by load()

  const Input* find_input(std::string_view n) const;
  const View* find_view(std::string_view n) const;
  const State* find_state(std::string_view n) const;
  const Table* find_table(std::string_view n) const;
  // Totals are numbered through the module: those of table 0, of table 1, ... Shape: number < how many there are.
  struct TotalAt { std::uint8_t table = 0, total = 0; };
  TotalAt total_at(std::uint32_t number) const;
  std::uint32_t total_number(std::uint32_t table, std::uint32_t total) const;
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
