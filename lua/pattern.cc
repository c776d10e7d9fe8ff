#include "lua/pattern.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace sluice::lua {
namespace {

constexpr char kEscape = '%';

unsigned char byte(const char* p) { return static_cast<unsigned char>(*p); }

// Is `c` of the class that `%name` stands for? Upper case is the complement. A `%` before anything else is that itself.
// By the C locale, which is the only one a server has.
bool in_class(unsigned char c, unsigned char name) {
  bool is = false;
  switch (name | 0x20) {
    case 'a': is = std::isalpha(c) != 0; break;
    case 'c': is = std::iscntrl(c) != 0; break;
    case 'd': is = std::isdigit(c) != 0; break;
    case 'g': is = std::isgraph(c) != 0; break;
    case 'l': is = std::islower(c) != 0; break;
    case 'p': is = std::ispunct(c) != 0; break;
    case 's': is = std::isspace(c) != 0; break;
    case 'u': is = std::isupper(c) != 0; break;
    case 'w': is = std::isalnum(c) != 0; break;
    case 'x': is = std::isxdigit(c) != 0; break;
    case 'z': is = c == 0; break;
    default: return name == c;
  }
  return std::isupper(name) ? !is : is;
}

}  // namespace

PatternMatcher::PatternMatcher(lua_State* L, std::string_view subject, std::string_view pattern)
    : L_(L),
      begin_(subject.data()),
      end_(subject.data() + subject.size()),
      pattern_(pattern.data()),
      pattern_end_(pattern.data() + pattern.size()),
      left_(kPatternSteps + (kPatternStepsPerByte + 2 * std::min(pattern.size(), kPatternLength)) * subject.size()),
      allowed_(left_) {}

void PatternMatcher::fail(const char* why) {
  luaL_error(L_, "%s", why);
  __builtin_unreachable();
}

void PatternMatcher::out_of_steps() {
  luaL_error(L_, "the pattern takes too long: more than %f steps for a text of %f bytes", static_cast<double>(allowed_),
             static_cast<double>(end_ - begin_));
  __builtin_unreachable();
}

void PatternMatcher::look() {
  since_look_ = 0;
  // The only hook there is: it raises at the next instruction, which is behind us.
  if (lua_gethookmask(L_) != 0) fail("stopped: it ran too long without a wait");
}

const char* PatternMatcher::match_at(const char* from) {
  level_ = 0;
  depth_ = 0;
  step(1);
  return match(from, pattern_);
}

const char* PatternMatcher::item_end(const char* p) {
  const char first = *p++;
  if (first == kEscape) {
    if (p == pattern_end_) fail("malformed pattern (ends with '%')");
    return p + 1;
  }
  if (first != '[') return p;
  if (p < pattern_end_ && *p == '^') ++p;
  // A `]` that comes first is one of the set.
  do {
    if (p >= pattern_end_) fail("malformed pattern (missing ']')");
    step(1);
    if (*p++ == kEscape && p < pattern_end_) ++p;
  } while (p >= pattern_end_ || *p != ']');
  return p + 1;
}

bool PatternMatcher::in_set(unsigned char c, const char* p, const char* last) {
  bool within = true;
  if (p[1] == '^') {
    within = false;
    ++p;
  }
  while (++p < last) {
    step(1);
    if (*p == kEscape) {
      ++p;
      if (in_class(c, byte(p))) return within;
    } else if (p[1] == '-' && p + 2 < last) {
      if (byte(p) <= c && c <= byte(p + 2)) return within;
      p += 2;
    } else if (byte(p) == c) {
      return within;
    }
  }
  return !within;
}

bool PatternMatcher::item_matches(const char* s, const char* p, const char* behind) {
  step(1);
  if (s >= end_) return false;
  switch (*p) {
    case '.': return true;
    case kEscape: return in_class(byte(s), byte(p + 1));
    case '[': return in_set(byte(s), p, behind - 1);
    default: return *p == *s;
  }
}

const char* PatternMatcher::repeat_most(const char* s, const char* p, const char* next) {
  std::ptrdiff_t n = 0;
  while (item_matches(s + n, p, next)) ++n;
  for (; n >= 0; --n) {
    step(1);
    if (const char* e = match(s + n, next + 1)) return e;
  }
  return nullptr;
}

const char* PatternMatcher::repeat_least(const char* s, const char* p, const char* next) {
  for (;;) {
    if (const char* e = match(s, next + 1)) return e;
    if (!item_matches(s, p, next)) return nullptr;
    ++s;
  }
}

// %bxy: from an x to the y that closes it.
const char* PatternMatcher::balanced(const char* s, const char* p) {
  if (pattern_end_ - p < 2) fail("unbalanced pattern");
  step(1);
  if (s >= end_ || *s != p[0]) return nullptr;
  int open = 1;
  while (++s < end_) {
    step(1);
    if (*s == p[1]) {
      if (--open == 0) return s + 1;
    } else if (*s == p[0]) {
      ++open;
    }
  }
  return nullptr;
}

// %1: what capture 1 holds, again.
const char* PatternMatcher::same_again(const char* s, unsigned char digit) {
  const int index = digit - '1';
  if (index < 0 || index >= level_ || capture_[static_cast<std::size_t>(index)].size == kOpen) fail("invalid capture index");
  const Capture& c = capture_[static_cast<std::size_t>(index)];
  // Of a position the size is beyond what any subject has left.
  const auto size = static_cast<std::size_t>(c.size);
  if (static_cast<std::size_t>(end_ - s) < size) return nullptr;
  step(1 + size / 8);
  return std::memcmp(c.at, s, size) == 0 ? s + size : nullptr;
}

const char* PatternMatcher::open_capture(const char* s, const char* p, std::ptrdiff_t what) {
  if (level_ >= kCaptures) fail("too many captures");
  capture_[static_cast<std::size_t>(level_)] = {s, what};
  ++level_;
  const char* e = match(s, p);
  if (!e) --level_;
  return e;
}

const char* PatternMatcher::close_capture(const char* s, const char* p) {
  int at = level_ - 1;
  while (at >= 0 && capture_[static_cast<std::size_t>(at)].size != kOpen) --at;
  if (at < 0) fail("invalid pattern capture");
  Capture& c = capture_[static_cast<std::size_t>(at)];
  c.size = s - c.at;
  const char* e = match(s, p);
  if (!e) c.size = kOpen;
  return e;
}

const char* PatternMatcher::match(const char* s, const char* p) {
  if (++depth_ > kDeepest) fail("pattern too complex");
  const auto leave = [this](const char* e) {
    --depth_;
    return e;
  };
  while (p < pattern_end_) {
    switch (*p) {
      case '(':
        if (p + 1 < pattern_end_ && p[1] == ')') return leave(open_capture(s, p + 2, kPosition));
        return leave(open_capture(s, p + 1, kOpen));
      case ')': return leave(close_capture(s, p + 1));
      case '$':
        if (p + 1 == pattern_end_) return leave(s == end_ ? s : nullptr);
        break;
      case kEscape: {
        const unsigned char what = p + 1 < pattern_end_ ? byte(p + 1) : 0;
        if (what == 'b') {
          s = balanced(s, p + 2);
          if (!s) return leave(nullptr);
          p += 4;
          continue;
        }
        if (what == 'f') {
          // A frontier: the byte before is not in the set, the byte here is. The ends count as zero bytes.
          p += 2;
          if (p >= pattern_end_ || *p != '[') fail("missing '[' after '%f' in pattern");
          const char* behind = item_end(p);
          const unsigned char before = s == begin_ ? 0 : byte(s - 1);
          const unsigned char here = s < end_ ? byte(s) : 0;
          step(1);
          if (in_set(before, p, behind - 1) || !in_set(here, p, behind - 1)) return leave(nullptr);
          p = behind;
          continue;
        }
        if (what >= '0' && what <= '9') {
          s = same_again(s, what);
          if (!s) return leave(nullptr);
          p += 2;
          continue;
        }
        break;
      }
      default: break;
    }
    const char* next = item_end(p);
    const char suffix = next < pattern_end_ ? *next : '\0';
    if (suffix == '*') return leave(repeat_most(s, p, next));
    if (suffix == '-') return leave(repeat_least(s, p, next));
    const bool here = item_matches(s, p, next);
    if (suffix == '+') return leave(here ? repeat_most(s + 1, p, next) : nullptr);
    if (suffix == '?') {
      if (here)
        if (const char* e = match(s + 1, next + 1)) return leave(e);
      p = next + 1;
      continue;
    }
    if (!here) return leave(nullptr);
    ++s;
    p = next;
  }
  return leave(s);
}

void PatternMatcher::push_capture(int index, const char* begin, const char* end) {
  if (index >= level_) {
    if (index != 0) fail("invalid capture index");
    lua_pushlstring(L_, begin, static_cast<std::size_t>(end - begin));
    return;
  }
  const Capture& c = capture_[static_cast<std::size_t>(index)];
  if (c.size == kOpen) fail("unfinished capture");
  if (c.size == kPosition) lua_pushinteger(L_, static_cast<lua_Integer>(c.at - begin_ + 1));
  else lua_pushlstring(L_, c.at, static_cast<std::size_t>(c.size));
}

int PatternMatcher::push_captures(const char* begin, const char* end, bool whole_when_none) {
  const int n = level_ == 0 && whole_when_none ? 1 : level_;
  luaL_checkstack(L_, n, "too many captures");
  for (int i = 0; i < n; ++i) push_capture(i, begin, end);
  return n;
}

}  // namespace sluice::lua
