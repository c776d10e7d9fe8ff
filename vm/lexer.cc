#include "vm/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace sluice::vm {
namespace {

constexpr std::array<std::string_view, 39> kWords = {
    "above", "and",    "below",  "by",      "check",  "const", "delete", "desc", "documents", "else",
    "fail",  "false",  "fn",     "for",     "from",   "has",   "if",     "in",   "input",     "insert",
    "keyed", "let",    "limit",  "message", "module", "none",  "not",    "on",   "or",        "put",
    "reply", "return", "splice", "state",   "table",  "then",  "to",     "true", "update"};
constexpr std::array<std::string_view, 4> kMoreWords = {"append", "var", "view", "where"};

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 7> kUnits = {{{"ms", 1},
                                         {"s", 1000},
                                         {"min", 60'000},
                                         {"h", 3'600'000},
                                         {"d", 86'400'000},
                                         {"KiB", 1024},
                                         {"MiB", 1024.0 * 1024.0}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

class Lexer {
 public:
  Lexer(std::string_view source, std::vector<Span>* comments) : source_(source), comments_(comments) {}

  std::vector<Token> run() {
    while (next()) {
    }
    Token end;
    end.kind = Tok::end;
    // The end is where the last word ends, so that an error about it shows a line with something on it.
    end.span = {out_.empty() ? 0 : out_.back().span.end(), 0};
    out_.push_back(std::move(end));
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  Token& add(Tok kind, std::size_t from) {
    Token& t = out_.emplace_back();
    t.kind = kind;
    t.span = {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(at_ - from)};
    t.first_on_line = fresh_line_;
    fresh_line_ = false;
    return t;
  }

  void error(std::size_t from, std::size_t length, std::string what, std::string hint = {}) {
    Token& t = add(Tok::error, from);
    t.span.length = static_cast<std::uint32_t>(length);
    t.text = std::move(what);
    t.hint = std::move(hint);
  }

  void skip_space() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\n') {
        fresh_line_ = true;
        // A text ends on its line, and so does what is inserted in it.
        if (!depths_.empty()) {
          error(text_starts_.back(), 1, "this text does not end on its line",
                "close it with `\"`; `\\n` is a line feed");
          depths_.clear();
          text_starts_.clear();
        }
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        const std::size_t from = at_;
        while (at_ < source_.size() && source_[at_] != '\n') ++at_;
        if (comments_)
          comments_->push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(at_ - from)});
      } else {
        return;
      }
    }
  }

  bool next() {
    skip_space();
    if (at_ >= source_.size()) {
      if (!depths_.empty()) {
        error(text_starts_.back(), 1, "this text does not end on its line",
              "close it with `\"`; `\\n` is a line feed");
        depths_.clear();
        text_starts_.clear();
      }
      return false;
    }
    const std::size_t from = at_;
    const char c = source_[at_];
    if (is_letter(c)) {
      name(from);
    } else if (is_digit(c)) {
      number(from);
    } else if (c == '"') {
      ++at_;
      text(from, false);
    } else if (c == '}' && !depths_.empty() && depths_.back() == 0) {
      ++at_;
      const std::size_t start = text_starts_.back();
      depths_.pop_back();
      text_starts_.pop_back();
      text(from, true, start);
    } else {
      symbol(from);
    }
    return true;
  }

  void name(std::size_t from) {
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string_view text = source_.substr(from, at_ - from);
    if (text.size() > kNameMax) {
      error(from, text.size(), "this name is too long", "a name has at most 64 letters, digits and `_`");
      return;
    }
    add(is_language_word(text) ? Tok::word : Tok::name, from).text = text;
  }

  void number(std::size_t from) {
    std::string digits;
    auto take = [&] {
      while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) {
        if (peek() != '_') digits += peek();
        ++at_;
      }
    };
    take();
    if (peek() == '.' && is_digit(peek(1))) {
      digits += '.';
      ++at_;
      take();
    }
    if ((peek() == 'e' || peek() == 'E') &&
        (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
      digits += 'e';
      ++at_;
      if (peek() == '-') digits += '-';
      if (peek() == '-' || peek() == '+') ++at_;
      while (is_digit(peek())) digits += source_[at_++];
    }
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const std::size_t unit_at = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string_view unit = source_.substr(unit_at, at_ - unit_at);
    if (!unit.empty()) {
      const auto found =
          std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == unit; });
      if (found == kUnits.end()) {
        error(unit_at, unit.size(), "there is no unit `" + std::string(unit) + "`",
              "units are ms, s, min, h, d, KiB and MiB");
        return;
      }
      value *= found->factor;
    }
    // from_chars reports both ends of the range; what is too small to tell from 0 is 0, as everywhere else.
    const bool tiny = read.ec == std::errc::result_out_of_range && digits.find("e-") != std::string::npos;
    if (tiny) value = 0;
    if ((read.ec != std::errc() && !tiny) || !std::isfinite(value)) {
      error(from, at_ - from, "this number is too large", "numbers go up to about 1.79e308");
      return;
    }
    add(Tok::number, from).number = value;
  }

  // Reads from behind the quote, or behind the brace that ends an insertion, to the end or the next
  // insertion.
  void text(std::size_t from, bool inserted, std::size_t start = 0) {
    if (!inserted) start = from;
    std::string value;
    while (at_ < source_.size() && source_[at_] != '\n') {
      const char c = source_[at_];
      if (c == '"') {
        ++at_;
        add(inserted ? Tok::text_tail : Tok::text, from).text = std::move(value);
        return;
      }
      if (c == '{') {
        ++at_;
        if (depths_.size() >= 8) {
          error(at_ - 1, 1, "texts inside texts go at most 8 deep", "give the inner text a name with `let`");
          skip_line();
          return;
        }
        add(inserted ? Tok::text_mid : Tok::text_head, from).text = std::move(value);
        depths_.push_back(0);
        text_starts_.push_back(start);
        return;
      }
      if (c == '}') {
        error(at_, 1, "this `}` closes nothing", "in a text, write `\\}`");
        skip_line();
        return;
      }
      if (c == '\\') {
        if (!escape(value)) return;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') {
        error(at_, 1, "a text cannot hold this control character", "write it as `\\u{...}`");
        skip_line();
        return;
      }
      if (c != '\r' || peek(1) != '\n') value += c;
      ++at_;
    }
    if (!text_starts_.empty()) start = text_starts_.front();
    error(start, 1, "this text does not end on its line", "close it with `\"`; `\\n` is a line feed");
    depths_.clear();
    text_starts_.clear();
  }

  bool escape(std::string& value) {
    const std::size_t from = at_++;
    const char c = peek();
    switch (c) {
      case 'n':
        value += '\n';
        break;
      case 't':
        value += '\t';
        break;
      case '"':
      case '\\':
      case '{':
      case '}':
        value += c;
        break;
      case 'u':
        return unicode(value, from);
      default: {
        std::size_t length = 2;
        while (from + length < source_.size() &&
               (static_cast<unsigned char>(source_[from + length]) & 0xc0) == 0x80)
          ++length;
        if (from + length > source_.size() || c == '\n') length = 1;
        error(from, length, "there is no escape `" + std::string(source_.substr(from, length)) + "`",
              "escapes are \\n \\t \\\" \\\\ \\{ \\} and \\u{1F600}");
        skip_line();
        return false;
      }
    }
    ++at_;
    return true;
  }

  bool unicode(std::string& value, std::size_t from) {
    ++at_;
    std::uint32_t c = 0;
    std::size_t digits = 0;
    bool good = peek() == '{';
    if (good) {
      ++at_;
      for (; digits < 7; ++digits) {
        const char d = peek();
        int v = 0;
        if (is_digit(d))
          v = d - '0';
        else if (d >= 'a' && d <= 'f')
          v = d - 'a' + 10;
        else if (d >= 'A' && d <= 'F')
          v = d - 'A' + 10;
        else
          break;
        c = c * 16 + static_cast<std::uint32_t>(v);
        ++at_;
      }
      good = digits >= 1 && digits <= 6 && peek() == '}' && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
      if (good) ++at_;
    }
    if (!good) {
      error(from, std::max<std::size_t>(2, at_ - from), "this is no character",
            "write its number in hexadecimal, as in \\u{1F600}");
      skip_line();
      return false;
    }
    append_utf8(value, c);
    return true;
  }

  // Behind a broken text nothing on its line can be trusted.
  void skip_line() {
    while (at_ < source_.size() && source_[at_] != '\n') ++at_;
    depths_.clear();
    text_starts_.clear();
  }

  void symbol(std::size_t from) {
    struct Symbol {
      std::string_view text;
      Tok kind;
    };
    static constexpr Symbol kSymbols[] = {{"??", Tok::coalesce},    {"..", Tok::dotdot},
                                          {"+=", Tok::plus_assign}, {"-=", Tok::minus_assign},
                                          {"*=", Tok::star_assign}, {"/=", Tok::slash_assign},
                                          {"==", Tok::eq},          {"!=", Tok::ne},
                                          {"<=", Tok::le},          {">=", Tok::ge},
                                          {"{", Tok::lbrace},       {"}", Tok::rbrace},
                                          {"(", Tok::lparen},       {")", Tok::rparen},
                                          {"[", Tok::lbracket},     {"]", Tok::rbracket},
                                          {",", Tok::comma},        {":", Tok::colon},
                                          {".", Tok::dot},          {"?", Tok::question},
                                          {"=", Tok::assign},       {"<", Tok::lt},
                                          {">", Tok::gt},           {"+", Tok::plus},
                                          {"-", Tok::minus},        {"*", Tok::star},
                                          {"/", Tok::slash},        {"%", Tok::percent}};
    struct Foreign {
      std::string_view text, hint;
    };
    static constexpr Foreign kForeign[] = {{"&&", "write `and`"},
                                           {"||", "write `or`"},
                                           {"!", "write `not`"},
                                           {";", "statements need no semicolons"},
                                           {"'", "texts are written in double quotes"},
                                           {"#", "a comment starts with `//`"},
                                           {"&", "write `and`"},
                                           {"|", "write `or`"}};
    const std::string_view rest = source_.substr(from);
    for (const Symbol& s : kSymbols) {
      if (!rest.starts_with(s.text)) continue;
      at_ += s.text.size();
      if (!depths_.empty()) {
        if (s.kind == Tok::lbrace) ++depths_.back();
        if (s.kind == Tok::rbrace) --depths_.back();
      }
      add(s.kind, from);
      return;
    }
    for (const Foreign& f : kForeign) {
      if (!rest.starts_with(f.text)) continue;
      at_ += f.text.size();
      error(from, f.text.size(), "there is no `" + std::string(f.text) + "`", std::string(f.hint));
      return;
    }
    ++at_;
    while (at_ < source_.size() && (static_cast<unsigned char>(source_[at_]) & 0xc0) == 0x80) ++at_;
    const std::string_view what = source_.substr(from, at_ - from);
    if (static_cast<unsigned char>(what[0]) < 0x20 || what[0] == 0x7f)
      error(from, 1, "a control character cannot be here", "remove it");
    else if (what == "\xef\xbb\xbf")
      error(from, what.size(), "a byte order mark cannot be here", "save the file as UTF-8 without one");
    else
      error(from, what.size(), "`" + std::string(what) + "` cannot be here",
            static_cast<unsigned char>(what[0]) >= 0x80
                ? "names are made of A-Z a-z 0-9 and _; other letters stand in texts"
                : "");
  }

  std::string_view source_;
  std::vector<Span>* comments_;
  std::size_t at_ = 0;
  bool fresh_line_ = true;
  std::vector<Token> out_;
  std::vector<int> depths_;               // open braces inside each insertion we are in
  std::vector<std::size_t> text_starts_;  // where the text around each began
};

}  // namespace

bool is_language_word(std::string_view text) {
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end() ||
         std::find(kMoreWords.begin(), kMoreWords.end(), text) != kMoreWords.end();
}

std::vector<Token> tokenize(std::string_view source, std::vector<Span>* comments) {
  return Lexer(source, comments).run();
}

}  // namespace sluice::vm
