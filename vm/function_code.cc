#include "vm/function_code.h"

#include <utility>

namespace sluice::vm {

void FunctionCode::put(Word w) {
  if (!reachable_) return;
  if (code_.size() >= kWordsMax) {
    too_long_ = true;
    return;
  }
  code_.push_back(w);
  lines_.push_back(line_);
}

void FunctionCode::refer(Op op, unsigned a, Label& to) {
  if (!reachable_) return;
  to.uses.push_back(here());
  put(word_x(op, a, 0));
}

void FunctionCode::bind(Label& label) {
  if (label.uses.empty()) return;
  reachable_ = true;
  if (too_long_) return;
  for (std::uint32_t use : label.uses)
    if (use < code_.size()) code_[use] = (code_[use] & 0xffffu) | here() << 16;
  label.uses.clear();
}

void FunctionCode::close_loop(std::uint32_t head) {
  reachable_ = true;
  put(word_x(Op::loop, 0, head));
  reachable_ = false;
}

unsigned FunctionCode::take(RegisterType type) {
  for (unsigned r = 0; r < types_.size(); ++r) {
    if (used_[r] || types_[r] != type) continue;
    used_[r] = true;
    return r;
  }
  return take_window({type});
}

unsigned FunctionCode::take_window(const std::vector<RegisterType>& types) {
  const unsigned n = static_cast<unsigned>(types.size());
  unsigned first = 0;
  for (; first < types_.size(); ++first) {
    unsigned i = 0;
    while (i < n && (first + i >= types_.size() || (!used_[first + i] && types_[first + i] == types[i]))) ++i;
    if (i == n) break;
  }
  if (first + n > kRegistersMax) {
    // The function is refused; what is emitted from here on only has to stay inside the arrays.
    too_many_registers_ = true;
    types_.assign(kRegistersMax + n, types.empty() ? RegisterType(Type::num) : types[0]);
    used_.assign(kRegistersMax + n, true);
    return 0;
  }
  for (unsigned i = 0; i < n; ++i) {
    if (first + i == types_.size()) {
      types_.push_back(types[i]);
      used_.push_back(true);
    }
    used_[first + i] = true;
  }
  return first;
}

void FunctionCode::move_to(Function& function, std::vector<std::uint32_t>& lines) {
  function.registers = std::move(types_);
  function.code = std::move(code_);
  lines = std::move(lines_);
}

}  // namespace sluice::vm
