// One function's proof while it is made: what is known at the present word, and what each kind of instruction asks.
//
// Registers have one type for the whole function, so nothing is joined but a set of registers that surely have a value:
// at a forward jump it is intersected into the target's. Costs go along the same paths and take the larger one where
// they meet. A loop's body is proven with what the first round finds; what a round may lose again (a result that was
// absent) must not have been read from the round before, which `Path::fresh` shows without a second pass.
// Source: design module.md 3.5.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "vm/verify.h"

namespace sluice::vm {

inline constexpr std::size_t kNesting = 4;
inline constexpr unsigned kFrames = 8;       // functions that are running at once, the handler included
inline constexpr unsigned kRecord = 255;     // the bit of a record that is being built

// A set of registers, and the record's bit.
struct RegisterSet {
  std::array<std::uint64_t, 4> bits{};
  void add(unsigned i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }
  void remove(unsigned i) { bits[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  bool has(unsigned i) const { return (bits[i / 64] >> (i % 64) & 1) != 0; }
  void meet(const RegisterSet& other) {
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] &= other.bits[i];
  }
};

// Sums that stay at the top instead of wrapping: four nested loops of calls pass any integer.
struct Cost {
  std::uint64_t fuel = 0, read = 0, written = 0;
  void take(const Cost& other) {
    fuel = add(fuel, other.fuel);
    read = add(read, other.read);
    written = add(written, other.written);
  }
  void most(const Cost& other) {
    fuel = std::max(fuel, other.fuel);
    read = std::max(read, other.read);
    written = std::max(written, other.written);
  }
  Cost by(std::uint64_t n) const { return {times(fuel, n), times(read, n), times(written, n)}; }

 private:
  static std::uint64_t add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
  }
  static std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
  }
};

// What surely holds on every way to a word.
struct Path {
  RegisterSet set;                              // registers with a value
  std::array<RegisterSet, kNesting> fresh;      // per open loop: given in this round
  void add(unsigned i) {
    set.add(i);
    for (RegisterSet& one : fresh) one.add(i);
  }
  void remove(unsigned i) {
    set.remove(i);
    for (RegisterSet& one : fresh) one.remove(i);
  }
  void meet(const Path& other) {
    set.meet(other.set);
    for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i].meet(other.fresh[i]);
  }
};

// What a function is to the module, as far as its code must know.
struct Role {
  const Input* input = nullptr;                 // of a handler; null for `on start`
  bool filtered = false;                        // the rows of a view with `where`, which must be few
};

class CodeCheck {
 public:
  // `frames`: per function already proven, how many run at once below and with it; this one's is set.
  CodeCheck(const Module& module, std::uint32_t index, const Role& role, std::vector<unsigned>& frames)
      : m_(module), f_(module.functions[index]), code_(f_.code), index_(index), role_(role), frames_(frames) {}

  // Empty, or what is wrong.
  std::string run(Facts& facts);

 private:
  struct Jump {
    Path path;
    Cost cost;
  };
  struct Loop {
    std::uint32_t head = 0, exit = 0;           // FORL or NEXT, and the word behind LOOP
    std::uint32_t limit = 0;
    unsigned own = 0, owned = 0;                // registers that the body may not write: the first, and how many
    bool streams = false;                       // the body may not write tables either
    Path before;
    Cost spent, turn, body;                     // up to the loop; its head, once; the dearest way through its body
    RegisterSet carried;                        // read in the body before being given there
  };

  std::string at(const std::string& why, std::uint32_t word) const;
  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }
  void meet_jumps();

  // Operands. Each says in why_ what is wrong.
  bool has_register(unsigned r);
  bool typed(unsigned r, RegisterType type);
  bool has_value(unsigned r);
  bool need(unsigned r, RegisterType type) { return typed(r, type) && has_value(r); }
  bool is_free(unsigned r);
  bool give(unsigned r, RegisterType type);
  bool zero(unsigned operand) { return operand == 0 || refuse("an operand that is not used is not 0"); }
  template <class List>
  bool inside(std::uint32_t i, const List& list, const char* what) {
    return i < list.size() || refuse(std::string("there is no ") + what + " " + std::to_string(i));
  }
  bool numbers(Word w, Type operand, Type result);
  bool field(std::uint32_t i, Base& base);

  // Ways on from the word.
  bool jump(std::uint32_t target, const Path& path);
  bool done(bool may_be_absent = false, unsigned r = kNoRegister);
  bool finish();
  void spend(Cost cost) { cost_.take(cost); }

  // What the function may do.
  bool is_handler();
  bool is_keyed();
  bool writes();

  bool step();
  bool step_call(Word w);
  bool step_return(Word w);
  bool step_builtin(Word w);
  bool step_document(Word w);
  bool step_reply(Word w);

  // verify_loop.cc
  bool step_loop(Word w);
  bool enter_loop(Loop loop, unsigned given);
  bool close_loop(Word w);

  // verify_table.cc
  bool step_table(Word w);
  bool step_row(Word w);
  bool step_write(Word w);
  bool step_open(Word w);
  bool row(unsigned r, std::uint8_t& table);
  bool column(std::uint8_t table, unsigned i);
  bool changeable(std::uint8_t table, unsigned i);
  bool values(const Table& table, unsigned first, const std::vector<std::uint8_t>& columns, std::size_t count);
  bool window(const RowShape& shape, unsigned first);
  bool may_write_tables();
  bool writes_table(std::uint8_t table, std::uint64_t rows);
  void reads_table(std::uint8_t table, std::uint64_t rows);
  bool is_counted(const Scan& scan) const;

  const Module& m_;
  const Function& f_;
  const std::vector<Word>& code_;
  const std::uint32_t index_;
  const Role role_;
  std::vector<unsigned>& frames_;

  std::uint32_t pc_ = 0;
  bool live_ = true;
  Path now_;
  Cost cost_, worst_;
  std::map<std::uint32_t, Jump> jumps_;
  std::vector<Loop> loops_;
  unsigned depth_ = 1;
  Facts facts_;
  std::string why_;
};

// "N", "R item": a register's type in a sentence.
std::string type_text(const Module& module, RegisterType type);

}  // namespace sluice::vm
