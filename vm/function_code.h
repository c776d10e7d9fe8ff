// The code of one function as it grows: words, labels, and registers handed out and taken back.
#pragma once
#include <cstdint>
#include <vector>

#include "vm/module.h"

namespace sluice::vm {

inline constexpr unsigned kRegistersMax = 200;
inline constexpr std::size_t kWordsMax = 65535;

// A place that is not known yet; words that go there are completed when it is.
struct Label {
  std::vector<std::uint32_t> uses;
};

// Nothing is emitted where control does not come, so that every word can be reached, as the loader demands.
// Thread: one compilation.
class FunctionCode {
 public:
  void line(std::uint32_t line) { line_ = line; }
  bool reachable() const { return reachable_; }
  std::uint32_t here() const { return static_cast<std::uint32_t>(code_.size()); }

  void emit(Op op, unsigned a = 0, unsigned b = 0, unsigned c = 0) { put(word(op, a, b, c)); }
  void emit_x(Op op, unsigned a, unsigned x) { put(word_x(op, a, x)); }
  // Ends the straight run: what follows is reached by a label only.
  void end(Op op, unsigned a = 0, unsigned b = 0) {
    put(word(op, a, b));
    reachable_ = false;
  }
  void jump(Label& to) {
    refer(Op::jmp, 0, to);
    reachable_ = false;
  }
  // JT, JF, ABSENT.
  void refer(Op op, unsigned a, Label& to);
  void bind(Label& label);
  // LOOP, the one word that need not be reached.
  void close_loop(std::uint32_t head);

  // A register of this type that is free: types never change, so a freed one serves its own type again.
  unsigned take(RegisterType type);
  // `types.size()` consecutive ones.
  unsigned take_window(const std::vector<RegisterType>& types);
  void free(unsigned r) { used_[r] = false; }
  void free_window(unsigned first, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) free(first + static_cast<unsigned>(i));
  }

  // More than the machine can hold; what was emitted means nothing then.
  bool too_many_registers() const { return too_many_registers_; }
  bool too_long() const { return too_long_; }

  void move_to(Function& function, std::vector<std::uint32_t>& lines);

 private:
  void put(Word w);

  std::vector<Word> code_;
  std::vector<std::uint32_t> lines_;
  std::vector<RegisterType> types_;
  std::vector<bool> used_;
  std::uint32_t line_ = 1;
  bool reachable_ = true;
  bool too_many_registers_ = false;
  bool too_long_ = false;
};

}  // namespace sluice::vm
