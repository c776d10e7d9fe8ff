// The machine's inside, which its files share: one for each part of what instructions do.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/arena.h"
#include "vm/machine.h"
#include "vm/row_cache.h"
#include "vm/steps.h"
#include "vm/tables.h"

namespace sluice::vm {

// Thread: its machine's.
struct Machine::Impl {
  static constexpr std::size_t kFrames = 8, kRegisters = 200;
  static constexpr std::size_t kCursors = 4 * kFrames + 1;   // loops are 4 deep; and the rows of a view
  static constexpr std::uint32_t kWrites = 10'000;           // states, rows and document edits of one event
  static constexpr std::size_t kKeptReply = 2 * kArenaBytes; // capacity of the reply buffer that is worth keeping

  struct Frame {
    const Function* function;
    const Word* code;
    std::uint32_t pc;
    Value* registers;
    std::uint8_t result;       // the caller's register; 255: none
    std::uint32_t cursors;     // open in the frames below
  };
  // What is known of a json document that this event has changed; it is checked once, at the end.
  enum class Json : std::uint8_t { unchanged, whole, edited };

  // Keys of rows that were taken when a loop began, as many as were read at once.
  struct Keys {
    Keys* next = nullptr;
    std::size_t count = 0;
    const std::string_view* keys = nullptr;
  };
  struct Cursor {
    const Scan* scan = nullptr;
    std::uint32_t left = 0;                 // rows that may still be read
    // The loop's row is nowhere else than in its register, so its key's memory may take the next key.
    bool reuses = false;
    std::size_t before = 0, behind = 0;     // of the arena: what was in use when it was opened, and with what it took
    Steps steps;                            // streaming
    char* key = nullptr;                    // of the row it gave last, where it stands in the arena
    std::size_t key_room = 0;
    const Keys* taken = nullptr;            // else: what is left of them
    std::size_t at = 0;
  };

  Arena arena;
  std::string out;             // the reply, or the fault's text
  Value registers[kFrames * kRegisters];
  Frame frames[kFrames];

  const Module* module = nullptr;
  const Event* event = nullptr;
  Host* host = nullptr;
  const Input* input = nullptr;
  std::int64_t fuel = 0;       // left; below 0: the fault limit
  std::uint64_t chance_calls = 0;
  std::uint32_t writes = 0;
  bool record = false;         // `out` is a record that is being built, and is part of the event's memory
  Json json = Json::unchanged;
  std::string_view json_whole;
  std::size_t depth = 0;       // of the running frame
  Value result;                // of a view
  Outcome outcome;

  // Only of modules with tables.
  const Tables* tables = nullptr;
  std::optional<TableUse> use;
  RowCache rows;
  std::uint32_t cursors = 0;   // open
  Cursor cursor[kCursors];
  // The rows of a table view: OPEN in front of its RET says which they are, and nothing is read.
  bool paged = false;
  const Scan* page_scan = nullptr;
  const Value* page_window = nullptr;
  KeyRange page_range;
  std::string page_text;
  std::vector<Entry> page_entries;

  void begin(const Module& m, const Event& e, Host& h);
  // Of a run: of an event or a view, or of one cell of a page.
  void begin_run(std::uint32_t function) {
    arena.reset();
    out.clear();
    chance_calls = 0;
    writes = 0;
    record = false;
    json = Json::unchanged;
    depth = 0;
    cursors = 0;
    outcome = Outcome();
    const Function& f = module->functions[function];
    frames[0] = {&f, f.code.data(), 0, registers, 255, 0};
  }
  void run(std::uint32_t function, std::uint64_t budget);

  // `pc` is behind the instruction.
  std::uint32_t line_of(const Frame& frame) const {
    const auto index = static_cast<std::size_t>(frame.function - module->functions.data());
    if (index >= module->lines.size() || module->lines[index].empty()) return 0;
    return module->lines[index][frame.pc == 0 ? 0 : frame.pc - 1];
  }

  bool charge(std::uint64_t n) {
    fuel -= static_cast<std::int64_t>(n);
    return fuel >= 0;
  }
  bool charge_bytes(std::uint64_t bytes) { return charge(bytes / 32); }
  // Memory of the event that is not in the arena.
  std::size_t reserved() const { return record ? out.size() : 0; }

  Fault concat(const Value* parts, unsigned count, Value& to);
  Fault call_builtin(std::uint8_t number, const Value* arguments, Value& to);
  Fault set_state(std::uint16_t state, Value value);
  Fault count_write() { return ++writes > kWrites ? Fault::limit : Fault::none; }
  template <bool Metered>
  Fault execute();

  // machine_document.cc
  Fault read_document(bool only_presence, Value& to, bool& there);
  Fault write_document(Op op, const Value* at);
  Fault splice(double at, double remove, std::string_view insert);
  Fault finish();

  // machine_reply.cc
  Fault add_field(const std::string& name, const Value* value);
  Fault reply_row(std::uint32_t table, const Value& row);
  void reply_text(std::string_view text, ContentType type);
  void reply_value(const Value& value);
  std::string_view keep(std::string_view text);

  // machine_tables.cc. `there` is false where the value may be absent and is.
  Fault table_step(Word w, const Frame& frame, Value* r, std::uint32_t pc, bool& there);
  Fault find_row(std::uint32_t table, const Value* key, Value& to, bool& there);
  Fault column(std::uint32_t table, const Value& row, std::uint32_t column, Value& to, bool& there);
  const Row* row_of(std::uint32_t table, const Value& row);    // nullptr: it is gone
  const Row* load(std::uint32_t table, std::string_view key);
  Fault set_columns(std::uint32_t table, const Value& row, std::span<const std::uint8_t> columns, const Value* values);
  Fault insert(const RowShape& shape, const Value* window, Value* number);
  Fault rank(std::uint32_t table, const Value& row, std::uint32_t index, Value& to, bool& there);

  // machine_loops.cc
  Fault open(const Scan& scan, const Value* window, const Frame& frame, std::uint32_t pc, Value& to);
  Fault take_keys(Cursor& c, const KeyRange& range);
  Fault next(Cursor& c, Value& to, bool& there);
  Fault next_streaming(Cursor& c, Value& to, bool& there);
  bool is_loops(const char* key) const;
  void close(Cursor& c);

  // machine_page.cc
  struct Page;
  Fault page_rows(Page& page);
  Value enter_row(Page& page, const Entry& entry);
  void run_on_row(Page& page, std::uint32_t function, const Value& row, std::uint64_t position, std::uint64_t budget);
  Fault filter_rows(Page& page);
  Fault count_rows(Page& page);
  Fault find_rows(Page& page);
  Fault render(Page& page);
};

}  // namespace sluice::vm
