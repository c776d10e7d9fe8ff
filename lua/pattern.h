// Lua's patterns with a bound: the same matches as LuaJIT's own, in a number of steps that no pattern can exceed.
//
// No hook stops a C function, and string.find with 28 `a?` ran half a minute. Here each look at a byte is a step, and a
// call that takes more steps than its subject's length allows is an error, as is one that the watchdog wants stopped.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "lua/api.h"

namespace sluice::lua {

// Shape: so many, and per byte of the subject so many more and twice the pattern's length (of 128 bytes at most): that is
//        what a pattern takes that looks at each byte once. A quadratic one fits into some thousand bytes.
inline constexpr std::uint64_t kPatternSteps = 1'000'000;
inline constexpr std::uint64_t kPatternStepsPerByte = 8;
inline constexpr std::size_t kPatternLength = 128;

// One call's matching of `pattern` against `subject`.
// Life: both texts outlive it; they are on the Lua stack. It has no destructor: errors leave it by a jump.
class PatternMatcher {
 public:
  static constexpr int kCaptures = 32;

  PatternMatcher(lua_State* L, std::string_view subject, std::string_view pattern);

  // The end of a match that begins at `from`; nullptr: there is none. Errors: raises for a pattern that cannot be read, or
  // that takes too long.
  const char* match_at(const char* from);
  // For a match from `begin` to `end`: pushes capture `index`, the whole match when there are none. Returns how many it pushed.
  void push_capture(int index, const char* begin, const char* end);
  int push_captures(const char* begin, const char* end, bool whole_when_none);
  int captures() const { return level_; }

  const char* begin() const { return begin_; }
  const char* end() const { return end_; }

 private:
  static constexpr std::ptrdiff_t kOpen = -1, kPosition = -2;
  static constexpr int kDeepest = 200;

  struct Capture {
    const char* at;
    std::ptrdiff_t size;           // kOpen: its `)` is not reached; kPosition: `()`
  };

  void step(std::uint64_t steps) {
    if (steps > left_) out_of_steps();
    left_ -= steps;
    if ((since_look_ += steps) >= kLookEvery) look();
  }
  static constexpr std::uint64_t kLookEvery = 1 << 16;
  [[noreturn]] void out_of_steps();
  [[noreturn]] void fail(const char* why);
  void look();                     // has the watchdog set its hook?

  const char* match(const char* s, const char* p);
  const char* item_end(const char* p);                          // behind a single item: `a`, `.`, `%d`, `[...]`
  bool item_matches(const char* s, const char* p, const char* item_end);
  bool in_set(unsigned char c, const char* p, const char* last);     // p at `[`, last at its `]`
  const char* repeat_most(const char* s, const char* p, const char* next);
  const char* repeat_least(const char* s, const char* p, const char* next);
  const char* balanced(const char* s, const char* p);
  const char* same_again(const char* s, unsigned char digit);
  const char* open_capture(const char* s, const char* p, std::ptrdiff_t what);
  const char* close_capture(const char* s, const char* p);

  lua_State* L_;
  const char* begin_;
  const char* end_;
  const char* pattern_;
  const char* pattern_end_;
  std::uint64_t left_, allowed_, since_look_ = 0;
  int level_ = 0, depth_ = 0;
  std::array<Capture, kCaptures> capture_;
};

// Puts find, match, gmatch and gsub over those of the string library.
void open_patterns(lua_State* L);

}  // namespace sluice::lua
