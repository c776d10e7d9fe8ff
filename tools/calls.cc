#include "tools/calls.h"

#include <algorithm>
#include <charconv>

#include "vm/base/json.h"
#include "vm/base/utf8.h"

namespace sluice::tools {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_slug_char(char c) { return is_upper(c) || (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_'; }

std::string_view trim(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

// Takes the word in front, and the spaces behind it.
std::string_view take_word(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && !is_space(rest[end])) ++end;
  const std::string_view word = rest.substr(0, end);
  while (end < rest.size() && is_space(rest[end])) ++end;
  rest.remove_prefix(end);
  return word;
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// `$NAME` at the start of `text`: the name's length, 0 when there is none.
std::size_t placeholder(std::string_view text) {
  if (text.size() < 2 || text[0] != '$' || !is_upper(text[1])) return 0;
  std::size_t end = 2;
  while (end < text.size() && (is_upper(text[end]) || is_digit(text[end]) || text[end] == '_')) ++end;
  return end - 1;
}

int hex(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The inside of b'...'. False: it is none.
bool decode_bytes(std::string_view inside, std::string& out) {
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '\'') return false;
    if (inside[i] != '\\') {
      out += inside[i];
      continue;
    }
    if (++i == inside.size()) return false;
    switch (inside[i]) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case '\\': case '\'': out += inside[i]; break;
      case 'x': {
        if (inside.size() - i < 3) return false;
        const int high = hex(inside[i + 1]), low = hex(inside[i + 2]);
        if (high < 0 || low < 0) return false;
        out += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default: return false;
    }
  }
  return true;
}

// "..." or b'...', all of `text`. False: it is neither.
bool decode_text(std::string_view text, std::string& out) {
  if (text.size() >= 3 && text.starts_with("b'") && text.ends_with('\''))
    return decode_bytes(text.substr(2, text.size() - 3), out);
  if (!text.starts_with('"') || !json_valid(text)) return false;
  out.resize(text.size());
  out.resize(json_decode(text, out.data()));
  return true;
}

void append_text(std::string& out, std::string_view text) {
  if (valid_utf8(text)) return append_json_string(out, text);
  out += "b'";
  for (const char c : text) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '\'') out.append({'\\', c});
    else if (byte >= 0x20 && byte < 0x7f) out += c;
    else out.append({'\\', 'x', digits[byte >> 4], digits[byte & 15]});
  }
  out += '\'';
}

// JSON is written as it is sent, when that fits on a line and cannot be taken for a text.
bool is_plain_json(std::string_view body) {
  return !body.empty() && (body[0] == '{' || body[0] == '[') && trim(body) == body && valid_utf8(body) &&
         body.find_first_of("\r\n") == std::string_view::npos;
}

class Parser {
 public:
  Parser(std::string_view text, Answers answers) : rest_(text), answers_(answers) {}

  Result<std::vector<Step>, std::string> parse() {
    while (!rest_.empty() && error_.empty()) {
      ++line_;
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      take(line);
    }
    if (error_.empty()) end_step();
    if (!error_.empty()) return Result<std::vector<Step>, std::string>::failure(std::move(error_));
    return std::move(steps_);
  }

 private:
  // What a transcript writes wrongly is told at the line it is on.
  void refuse(std::string_view what, std::uint32_t line = 0) {
    if (error_.empty()) error_ = std::to_string(line != 0 ? line : line_) + ": " + std::string(what);
  }

  void take(std::string_view line) {
    const std::string_view words = trim(line);
    if (words.empty() || words.starts_with("//")) return;
    if (is_space(line.front())) return take_answer(words);
    end_step();
    if (error_.empty()) take_step(words);
  }

  void end_step() {
    if (open_ && answers_ == Answers::required && steps_.back().expected.line == 0 && steps_.back().timer.empty())
      refuse("this call has no answer; write it on the next line, indented: `    200`", steps_.back().line);
    open_ = false;
  }

  void take_step(std::string_view rest) {
    Step step;
    step.line = line_;
    if (rest.starts_with('@')) {
      const std::string_view clock = take_word(rest).substr(1);
      std::uint64_t ms = 0;
      if (!read_number(clock, ms)) return refuse("`@` is followed by the time in milliseconds since 1970");
      if (ms < clock_) return refuse("the clock never goes back: it was @" + std::to_string(clock_));
      step.clock_ms = clock_ = ms;
    }
    step.method = take_word(rest);
    if (step.method == "timer") {
      step.timer = take_word(rest);
      if (step.timer.empty() || !rest.empty()) return refuse("write `timer NAME`");
    } else {
      if (step.method.empty() || !std::all_of(step.method.begin(), step.method.end(), is_upper))
        return refuse("expected a call, such as `GET /views/NAME`, or `timer NAME`; answers are indented");
      step.target = take_word(rest);
      if (!step.target.starts_with('/')) return refuse("a path begins with `/`");
      if (!take_rest(step, rest)) return;
    }
    steps_.push_back(std::move(step));
    open_ = true;
  }

  // Headers, then the body.
  bool take_rest(Step& step, std::string_view rest) {
    while (!rest.empty()) {
      if (rest.starts_with("body") && (rest.size() == 4 || is_space(rest[4]))) {
        step.body.emplace();
        if (decode_text(trim(rest.substr(4)), *step.body)) return true;
        refuse("a body is a JSON string, `\"...\"`, or bytes, `b'...'`");
        return false;
      }
      const std::size_t colon = rest.find(':');
      if (colon == std::string_view::npos || colon == 0 ||
          !std::all_of(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(colon), is_slug_char)) {
        refuse("expected `HEADER: VALUE` or `body TEXT`");
        return false;
      }
      std::string_view name = rest.substr(0, colon);
      rest = trim(rest.substr(colon + 1));
      const std::size_t end = value_end(rest);
      step.headers.emplace_back(name, trim(rest.substr(0, end)));
      rest = trim(rest.substr(end));
    }
    return true;
  }

  // A value ends at two spaces, or before ` body `; what is in quotes is a part of it.
  static std::size_t value_end(std::string_view text) {
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') quoted = !quoted;
      if (quoted || !is_space(text[i])) continue;
      const std::string_view behind = text.substr(i + 1);
      if (behind.empty() || is_space(behind[0]) || behind.starts_with("body ")) return i;
    }
    return text.size();
  }

  void take_answer(std::string_view rest) {
    if (!open_) return refuse("an answer without a call: calls are not indented");
    Expected& expected = steps_.back().expected;
    if (expected.line != 0) return refuse("a call has one answer, on one line");
    expected.line = line_;
    const std::string_view status = take_word(rest);
    if (status.size() != 3 || !read_number(status, expected.status))
      return refuse("an answer begins with its status, such as `200`");
    if (!rest.empty() && rest[0] >= 'a' && rest[0] <= 'z' && !rest.starts_with("b'")) {
      expected.name = take_word(rest);
      for (const char c : expected.name)
        if (c != '_' && (c < 'a' || c > 'z')) return refuse("a name of X-Pure-Error is of a-z and `_`");
    }
    if (rest.starts_with("ETag ")) {
      take_word(rest);
      std::string_view etag = take_word(rest);
      if (etag.size() < 3 || !etag.starts_with('"') || !etag.ends_with('"'))
        return refuse("an ETag is a revision in quotes: `ETag \"1\"`");
      expected.etag = etag.substr(1, etag.size() - 2);
    }
    if (rest.empty()) return;
    expected.text.emplace();
    if (rest[0] == '{' || rest[0] == '[') {
      expected.json = true;
      expected.text = rest;
    } else if (!decode_text(rest, *expected.text)) {
      refuse("a text is a JSON string, `\"...\"`, bytes, `b'...'`, or JSON as it is sent, `{...}`");
    }
  }

  std::string_view rest_;
  const Answers answers_;
  std::uint32_t line_ = 0;
  std::uint64_t clock_ = 0;
  bool open_ = false;                         // the last step may still get its answer
  std::vector<Step> steps_;
  std::string error_;
};

// Walks pattern and text together: a `$NAME` that nothing is known for takes as many slug characters as there are.
bool match_text(std::string_view pattern, std::string_view text, Captured& captured) {
  while (!pattern.empty()) {
    if (pattern.starts_with("$$")) {
      if (!text.starts_with('$')) return false;
      pattern.remove_prefix(2);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t name_size = placeholder(pattern);
    if (name_size == 0) {
      if (text.empty() || text[0] != pattern[0]) return false;
      pattern.remove_prefix(1);
      text.remove_prefix(1);
      continue;
    }
    const std::string_view name = pattern.substr(1, name_size);
    pattern.remove_prefix(1 + name_size);
    auto known = captured.find(name);
    if (known == captured.end()) {
      std::size_t end = 0;
      while (end < text.size() && is_slug_char(text[end])) ++end;
      if (end == 0) return false;
      known = captured.emplace(name, text.substr(0, end)).first;
    }
    if (!text.starts_with(known->second)) return false;
    text.remove_prefix(known->second.size());
  }
  return text.empty();
}

std::string join(std::uint16_t status, std::string_view name, const std::optional<std::string>& etag,
                 const std::string* text, bool json) {
  std::string out = std::to_string(status);
  if (!name.empty()) out.append(" ").append(name);
  if (etag) out.append(" ETag \"").append(*etag).append("\"");
  if (text == nullptr) return out;
  out += "  ";
  if (json && is_plain_json(*text)) out += *text;
  else append_text(out, *text);
  return out;
}

}  // namespace

Result<std::vector<Step>, std::string> parse_calls(std::string_view text, Answers answers) {
  return Parser(text, answers).parse();
}

Result<std::string, std::string> expand(std::string_view pattern, const Captured& captured) {
  using Expanded = Result<std::string, std::string>;
  std::string out;
  while (!pattern.empty()) {
    const std::size_t name_size = placeholder(pattern);
    if (name_size == 0) {
      const bool doubled = pattern.starts_with("$$");
      out += pattern[0];
      pattern.remove_prefix(doubled ? 2 : 1);
      continue;
    }
    const std::string_view name = pattern.substr(1, name_size);
    const auto known = captured.find(name);
    if (known == captured.end()) return Expanded::failure(std::string(name));
    out += known->second;
    pattern.remove_prefix(1 + name_size);
  }
  return Expanded(std::move(out));
}

bool matches(const Expected& expected, const Answer& answer, Captured& captured) {
  if (expected.status != answer.status || expected.name != answer.name) return false;
  Captured attempt = captured;
  if (expected.etag.has_value() != (answer.revision != 0)) return false;
  if (expected.etag && !match_text(*expected.etag, std::to_string(answer.revision), attempt)) return false;
  if (!expected.text) {
    if (answer.own_words && !answer.body.empty()) return false;
  } else {
    if (expected.json && !answer.json) return false;
    if (!match_text(*expected.text, answer.body, attempt)) return false;
  }
  captured = std::move(attempt);
  return true;
}

std::string write_step(const Step& step) {
  std::string out;
  if (step.clock_ms) out.append("@").append(std::to_string(*step.clock_ms)).append(" ");
  if (!step.timer.empty()) return out.append("timer ").append(step.timer);
  out.append(step.method).append(" ").append(step.target);
  for (const auto& [name, value] : step.headers) out.append("  ").append(name).append(": ").append(value);
  if (step.body) {
    out += "   body ";
    append_text(out, *step.body);
  }
  return out;
}

std::string write_answer(const Answer& answer) {
  std::optional<std::string> etag;
  if (answer.revision != 0) etag = std::to_string(answer.revision);
  const bool silent = answer.own_words ? answer.body.empty() : true;
  if (silent) return join(answer.status, answer.name, etag, nullptr, false);
  // What could be taken for a placeholder is told apart.
  std::string text;
  for (std::size_t i = 0; i < answer.body.size(); ++i) {
    const std::string_view here = std::string_view(answer.body).substr(i);
    if (placeholder(here) != 0 || here.starts_with("$$")) text += '$';
    text += answer.body[i];
    if (here.starts_with("$$")) text.append("$$"), ++i;
  }
  return join(answer.status, answer.name, etag, &text, answer.json);
}

std::string write_answer(const Expected& expected) {
  return join(expected.status, expected.name, expected.etag, expected.text ? &*expected.text : nullptr, expected.json);
}

std::string with_answers(std::string_view text, const std::vector<Step>& steps,
                         const std::vector<std::optional<std::string>>& answers) {
  std::map<std::uint32_t, const std::string*> instead, added;   // by the line of the answer, of the call
  for (std::size_t i = 0; i < steps.size() && i < answers.size(); ++i) {
    if (!answers[i]) continue;
    if (steps[i].expected.line != 0) instead[steps[i].expected.line] = &*answers[i];
    else added[steps[i].line] = &*answers[i];
  }
  std::string out;
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view here = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto other = instead.find(line);
    if (other == instead.end()) {
      out.append(here).append("\n");
    } else {
      std::size_t indent = 0;
      while (indent < here.size() && is_space(here[indent])) ++indent;
      out.append(here.substr(0, indent)).append(*other->second).append("\n");
    }
    const auto more = added.find(line);
    if (more != added.end()) out.append("    ").append(*more->second).append("\n");
  }
  return out;
}

}  // namespace sluice::tools
