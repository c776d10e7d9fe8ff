#include "vm/builtin_run.h"

#include <cmath>
#include <cstring>

#include "vm/base/hash.h"
#include "vm/base/json.h"
#include "vm/base/number_text.h"
#include "vm/base/utf8.h"
#include "vm/builtin.h"
#include "vm/chance.h"
#include "vm/slot.h"

namespace sluice::vm {
namespace {
constexpr double kWholeMax = 9007199254740992.0;  // 2^53
constexpr double kTokenMax = 256;
constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool is_whole(double n, double low, double high) { return n >= low && n <= high && n == std::trunc(n); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

// Offset or npos. memmem is linear whatever the texts; string_view::find is not.
std::size_t find_text(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  if (text.empty()) return std::string_view::npos;
  const void* at = memmem(text.data(), text.size(), part.data(), part.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

Fault div_floor(double a, double b, Value& out) {
  if (b == 0) return Fault::divide;
  // By way of the exact remainder: the quotient itself may round up to the next whole number.
  const double rest = floor_mod(a, b);
  return finish_number(std::round((a - rest) / b), out);
}

// Changes ASCII letters in first..last by the case bit; a text without such letters stays where it is.
Fault change_case(std::string_view text, char first, char last, Value& out, BuiltinContext& context) {
  std::size_t i = 0;
  while (i < text.size() && !(text[i] >= first && text[i] <= last)) ++i;
  if (i == text.size()) {
    out = Value::span(text);
    return Fault::none;
  }
  char* const copy = context.arena.take(text.size(), context.reserved);
  if (copy == nullptr) return Fault::limit;
  std::memcpy(copy, text.data(), i);
  for (; i < text.size(); ++i) {
    const char c = text[i];
    copy[i] = c >= first && c <= last ? static_cast<char>(c ^ 0x20) : c;
  }
  out = Value::span({copy, text.size()});
  return Fault::none;
}

Fault slice(std::string_view text, double from, double to, Value& out) {
  const auto size = static_cast<double>(text.size());
  if (!is_whole(from, 0, size) || !is_whole(to, from, size)) return Fault::clamp;
  const auto a = static_cast<std::size_t>(from);
  const auto b = static_cast<std::size_t>(to);
  if (is_inside_character(text, a) || is_inside_character(text, b)) return Fault::encoding;
  out = Value::span(text.substr(a, b - a));
  return Fault::none;
}

Fault replace(std::string_view text, std::string_view from, std::string_view to, Value& out, BuiltinContext& context) {
  std::size_t count = 0;
  if (!from.empty()) {
    for (std::string_view rest = text; ; ++count) {
      const std::size_t at = find_text(rest, from);
      if (at == std::string_view::npos) break;
      rest.remove_prefix(at + from.size());
    }
  }
  if (count == 0) {
    out = Value::span(text);
    return Fault::none;
  }
  const std::size_t size = text.size() - count * from.size() + count * to.size();
  char* put = context.arena.take(size, context.reserved);
  if (put == nullptr) return Fault::limit;
  out = Value::span({put, size});
  const auto append = [&](std::string_view part) {
    if (!part.empty()) std::memcpy(put, part.data(), part.size());
    put += part.size();
  };
  while (true) {
    const std::size_t at = find_text(text, from);
    if (at == std::string_view::npos) break;
    append(text.substr(0, at));
    append(to);
    text.remove_prefix(at + from.size());
  }
  append(text);
  return Fault::none;
}

// Puts `fill` in front until there are `width` characters.
Fault pad(std::string_view text, double width, std::string_view fill, Value& out, BuiltinContext& context) {
  if (!is_whole(width, 0, kWholeMax) || count_chars(fill) != 1) return Fault::clamp;
  const std::size_t have = count_chars(text);
  if (width <= static_cast<double>(have)) {
    out = Value::span(text);
    return Fault::none;
  }
  if (width > kArenaBytes) return Fault::limit;
  const std::size_t missing = static_cast<std::size_t>(width) - have;
  const std::size_t size = missing * fill.size() + text.size();
  char* put = context.arena.take(size, context.reserved);
  if (put == nullptr) return Fault::limit;
  out = Value::span({put, size});
  for (std::size_t i = 0; i < missing; ++i, put += fill.size()) std::memcpy(put, fill.data(), fill.size());
  if (!text.empty()) std::memcpy(put, text.data(), text.size());
  return Fault::none;
}

Fault number_as_text(double n, Value& out, BuiltinContext& context) {
  char* const put = context.arena.take(32, context.reserved);
  if (put == nullptr) return Fault::limit;
  const std::size_t size = write_number(put, n);
  context.arena.give_back(32 - size);
  out = Value::span({put, size});
  return Fault::none;
}

Fault base62(double n, Value& out, BuiltinContext& context) {
  if (!is_whole(n, 0, kWholeMax)) return Fault::clamp;
  char digits[16];
  std::size_t at = sizeof digits;
  auto rest = static_cast<std::uint64_t>(n);
  do {
    digits[--at] = kLetters[rest % 62];
    rest /= 62;
  } while (rest != 0);
  const std::size_t size = sizeof digits - at;
  char* const put = context.arena.take(size, context.reserved);
  if (put == nullptr) return Fault::limit;
  std::memcpy(put, digits + at, size);
  out = Value::span({put, size});
  return Fault::none;
}

Fault json_text_of(std::string_view json, std::string_view pointer, Value& out, BuiltinContext& context) {
  out = Value();
  const auto raw = json_find(json, pointer);
  if (!raw || !json_is_text(*raw)) return Fault::none;
  const std::string_view content = raw->substr(1, raw->size() - 2);
  if (content.find('\\') == std::string_view::npos) {
    out = Value::span(content);
    return Fault::none;
  }
  char* const put = context.arena.take(content.size(), context.reserved);
  if (put == nullptr) return Fault::limit;
  const std::size_t size = json_decode(*raw, put);
  context.arena.give_back(content.size() - size);
  out = Value::span({put, size});
  return Fault::none;
}

Fault token(double n, Value& out, BuiltinContext& context) {
  if (!is_whole(n, 1, kTokenMax)) return Fault::clamp;
  const auto size = static_cast<std::size_t>(n);
  char* const put = context.arena.take(size, context.reserved);
  if (put == nullptr) return Fault::limit;
  Chance chance(context.host.seed(), context.chance_calls++);
  for (std::size_t i = 0; i < size; ++i) {
    std::uint8_t byte = chance.byte();
    while (byte >= 248) byte = chance.byte();  // 248 = 4 * 62: every letter as likely
    put[i] = kLetters[byte % 62];
  }
  out = Value::span({put, size});
  return Fault::none;
}
}  // namespace

Fault finish_number(double n, Value& out) {
  if (!std::isfinite(n)) return Fault::non_finite;
  out = Value::number(n + 0.0);  // -0 + 0 is 0
  return Fault::none;
}

double floor_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Fault run_builtin(std::uint8_t number, const Value* arguments, Value& out, BuiltinContext& context) {
  // Copied, because `out` may be among them.
  const Value a = arguments[0];
  const int arity = builtin(number).arity;
  const Value b = arity > 1 ? arguments[1] : Value();
  const Value c = arity > 2 ? arguments[2] : Value();
  const auto answer = [&out](Value v) {
    out = v;
    return Fault::none;
  };
  const auto is = [&](bool truth) { return answer(Value::truth(truth)); };
  switch (number) {
    case 0: return answer(Value::number(std::fabs(a.num)));
    case 1: return finish_number(std::floor(a.num), out);
    case 2: return finish_number(std::ceil(a.num), out);
    case 3: return finish_number(std::round(a.num), out);
    case 4: return finish_number(std::trunc(a.num), out);
    case 5: return a.num < 0 ? Fault::non_finite : finish_number(std::sqrt(a.num), out);
    case 6: return answer(Value::number(b.num < a.num ? b.num : a.num));
    case 7: return answer(Value::number(b.num > a.num ? b.num : a.num));
    case 8: return div_floor(a.num, b.num, out);
    case 9:
      if (b.num > c.num) return Fault::clamp;
      return answer(Value::number(a.num < b.num ? b.num : a.num > c.num ? c.num : a.num));
    case 10: case 11: return answer(Value::number(a.size));
    case 12: return answer(Value::number(static_cast<double>(count_chars(a.text()))));
    case 13: return change_case(a.text(), 'a', 'z', out, context);
    case 14: return change_case(a.text(), 'A', 'Z', out, context);
    case 15: {
      std::string_view text = a.text();
      while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
      while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
      return answer(Value::span(text));
    }
    case 16: return is(a.text().starts_with(b.text()));
    case 17: return is(a.text().ends_with(b.text()));
    case 18: return is(find_text(a.text(), b.text()) != std::string_view::npos);
    case 19: {
      const std::size_t at = find_text(a.text(), b.text());
      return answer(at == std::string_view::npos ? Value() : Value::number(static_cast<double>(at)));
    }
    case 20: return slice(a.text(), b.num, c.num, out);
    case 21: case 22: {
      const std::size_t at = find_text(a.text(), b.text());
      if (at == std::string_view::npos) return answer(Value());
      return answer(Value::span(number == 21 ? a.text().substr(0, at) : a.text().substr(at + b.size)));
    }
    case 23: return replace(a.text(), b.text(), c.text(), out, context);
    case 24: {
      const auto n = read_number(a.text());
      return answer(n ? Value::number(*n) : Value());
    }
    case 25: return number_as_text(a.num, out, context);
    case 26: return answer(Value::span(a.boolean ? std::string_view("true") : std::string_view("false")));
    case 27: return valid_utf8(a.text()) ? answer(Value::span(a.text())) : Fault::encoding;
    case 28: return answer(Value::number(static_cast<double>(xxh64(a.text()) >> 11)));
    case 29:
      if (b.num == 0) return Fault::divide;
      if (!is_whole(b.num, 1, kWholeMax)) return Fault::clamp;
      return answer(Value::number(static_cast<double>(xxh64(a.text()) % static_cast<std::uint64_t>(b.num))));
    case 30: return base62(a.num, out, context);
    case 31: return pad(a.text(), b.num, c.text(), out, context);
    case 32: return is(is_slug(a.text()));
    case 33: return is(json_valid(a.text()));
    case 34: return json_text_of(a.text(), b.text(), out, context);
    case 35: {
      const auto n = json_number(a.text(), b.text());
      return answer(n ? Value::number(*n) : Value());
    }
    case 36: {
      if (!is_whole(a.num, 1, kWholeMax)) return Fault::clamp;
      Chance chance(context.host.seed(), context.chance_calls++);
      return answer(Value::number(static_cast<double>(chance.below(static_cast<std::uint64_t>(a.num)))));
    }
    case 37: return token(a.num, out, context);
    default: SLUICE_CHECK(number < kBuiltins); return Fault::limit;
  }
}

}  // namespace sluice::vm
