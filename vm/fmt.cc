#include "vm/fmt.h"

#include <algorithm>
#include <limits>

#include "vm/base/utf8.h"
#include "vm/fmt_tree.h"
#include "vm/places.h"

namespace sluice::vm {
namespace {

constexpr std::size_t kWidth = 100;         // characters of a line
constexpr std::size_t kCommentColumn = 38;  // of a comment behind words, where they leave it room
constexpr std::size_t kIndent = 2, kContinued = 4;
constexpr std::size_t kNoBreak = std::numeric_limits<std::size_t>::max();

bool spaced(const Token& a, const Token& b) {
  switch (b.kind) {
    case Tok::comma:
    case Tok::colon:
    case Tok::dot:
    case Tok::dotdot:
    case Tok::question:
    case Tok::rparen:
    case Tok::lbracket:
    case Tok::rbracket:
    case Tok::text_mid:
    case Tok::text_tail:
      return false;
    default:
      break;
  }
  switch (a.kind) {
    case Tok::dot:
    case Tok::dotdot:
    case Tok::lparen:
    case Tok::lbracket:
    case Tok::text_head:
    case Tok::text_mid:
      return false;
    default:
      return a.mark != Mark::sign && b.mark != Mark::call;
  }
}

// How much is torn apart by a line that ends between two words: the least is chosen.
constexpr std::size_t kTogether = 9;  // these are never
std::size_t tear(const Token& a, const Token& b) {
  if (a.kind == Tok::comma || b.mark == Mark::size) return 0;
  if (b.mark == Mark::clause) return b.text == "or" ? 2 : b.text == "and" ? 3 : 1;
  if (b.kind == Tok::coalesce) return 1;
  switch (a.kind) {
    case Tok::assign:
    case Tok::plus_assign:
    case Tok::minus_assign:
    case Tok::star_assign:
    case Tok::slash_assign:
      return 4;
    default:
      break;
  }
  switch (b.kind) {
    case Tok::eq:
    case Tok::ne:
    case Tok::lt:
    case Tok::le:
    case Tok::gt:
    case Tok::ge:
      return 5;
    case Tok::plus:
    case Tok::minus:
      return 6;
    case Tok::star:
    case Tok::slash:
    case Tok::percent:
      return 7;
    case Tok::text:
    case Tok::text_head:
      return 8;
    default:
      return kTogether;
  }
}

// A word with what stands before it when it is not the first of its line.
struct Chunk {
  std::string_view text;
  bool space = false, comma = false;
  std::size_t level = kNoBreak;  // of a line that ends before it
  bool assigned = false;         // the value of an assignment begins here
  std::size_t width = 0;         // of the text, in characters
  std::size_t joined() const { return width + (comma ? 1 : 0) + (space ? 1 : 0); }
};

class Printer {
 public:
  explicit Printer(std::string_view source) : source_(source) {}

  std::string run(Braces& file) {
    for (Item& i : file.items) measure(i);
    for (const Item& i : file.items) place(i, 0, &i == &file.items.front(), false);
    comments(file.tail, 0, file.items.empty());
    out_ += '\n';
    return std::move(out_);
  }

 private:
  std::string_view text(const Token& t) const { return source_.substr(t.span.offset, t.span.length); }

  // --- what fits on one line: worked out from the inside, and dropped once it is too long
  std::vector<Chunk> chunks(const std::vector<const Token*>& words) const {
    std::vector<Chunk> out;
    std::size_t depth = 0, texts = 0;
    bool sized = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const Token& t = *words[i];
      if (t.kind == Tok::rparen || t.kind == Tok::rbracket) --depth;
      Chunk c;
      c.text = text(t);
      c.width = count_chars(c.text);
      if (i > 0) {
        const Token& before = *words[i - 1];
        c.space = spaced(before, t);
        c.comma = t.mark == Mark::size && sized;
        if (c.space && texts == 0) {
          const std::size_t torn = tear(before, t);
          if (torn < kTogether) c.level = depth * 10 + torn;
          c.assigned = torn == 4;
        }
      }
      if (t.mark == Mark::size) sized = true;
      if (t.kind == Tok::lparen || t.kind == Tok::lbracket) ++depth;
      if (t.kind == Tok::text_head) ++texts;
      if (t.kind == Tok::text_tail) --texts;
      out.push_back(c);
    }
    return out;
  }

  // Empty when it is longer than a line.
  std::string flat(const std::vector<const Token*>& words) const {
    std::string out;
    for (const Chunk& c : chunks(words)) {
      if (c.comma) out += ',';
      if (c.space) out += ' ';
      out += c.text;
      if (out.size() > 4 * kWidth) return {};
    }
    return count_chars(out) <= kWidth ? out : std::string();
  }

  void measure(Braces& b) {
    bool good = b.behind_open.empty() && b.tail.empty();
    std::size_t size = 4;
    for (Item& i : b.items) {
      measure(i);
      // A block or a table that was broken anywhere stays so, a list that was broken at its start.
      const bool broken = i.first_on_line && (b.kind != Mark::list || &i == &b.items.front());
      good = good && !broken && i.before.empty() && i.parts.back().behind.empty() && !i.flat.empty();
      size += i.flat.size();
    }
    if (!good || size > 4 * kWidth) return;
    b.flat = "{ ";
    for (const Item& i : b.items) {
      if (&i != &b.items.front()) b.flat += b.kind == Mark::block ? "  " : ", ";
      b.flat += i.flat;
    }
    b.flat += b.items.empty() ? "}" : " }";
    if (count_chars(b.flat) > kWidth) b.flat.clear();
  }

  void measure(Item& item) {
    bool good = true;
    for (Part& p : item.parts) {
      if (p.braces) measure(*p.braces);
      good = good && (!p.braces || !p.braces->flat.empty()) && p.before.empty();
      if (&p != &item.parts.front()) good = good && !p.words[0]->first_on_line;
      if (&p != &item.parts.back()) good = good && p.behind.empty();
    }
    if (!good) return;
    for (const Part& p : item.parts) {
      const std::string words = flat(p.words);
      if (words.empty()) return item.flat.clear();
      if (!item.flat.empty()) item.flat += ' ';
      item.flat += words;
      if (p.braces) item.flat += ' ' + p.braces->flat;
    }
    if (count_chars(item.flat) > kWidth) item.flat.clear();
  }

  // --- lines
  void begin(std::size_t indent) {
    if (!out_.empty()) out_ += '\n';
    line_ = out_.size();
    out_.append(indent, ' ');
  }
  void blank() { out_ += '\n'; }
  std::size_t column() const { return count_chars(std::string_view(out_).substr(line_)); }

  void behind(std::string_view comment) {
    if (comment.empty()) return;
    const std::size_t from = column() + 2;
    const bool room = from <= kCommentColumn && kCommentColumn + count_chars(comment) <= kWidth;
    out_.append(room ? kCommentColumn - column() : 2, ' ');
    out_ += comment;
  }

  void comments(const std::vector<LineComment>& list, std::size_t indent, bool first) {
    for (const LineComment& c : list) {
      if (c.after_blank && !first) blank();
      first = false;
      begin(indent);
      out_ += c.text;
    }
  }

  // An item on lines of its own.
  void place(const Item& item, std::size_t indent, bool first, bool comma) {
    comments(item.before, indent, first);
    if (item.after_blank && (!first || !item.before.empty())) blank();
    begin(indent);
    if (fits(item, indent, comma)) {
      out_ += item.flat;
    } else if (in_segments(item, indent)) {
      for (const Part& p : item.parts) {
        if (&p != &item.parts.front()) resume(p, indent);
        out_ += flat(p.words);
        out_ += ' ' + p.braces->flat;
        if (&p != &item.parts.back()) behind(p.behind);
      }
    } else {
      for (const Part& p : item.parts) {
        if (&p != &item.parts.front()) {
          if (p.before.empty() && (&p - 1)->behind.empty())
            out_ += ' ';
          else
            resume(p, indent);
        }
        wrap(chunks(p.words), indent, p.braces ? 2 : comma ? 1 : 0);
        if (p.braces) broken(*p.braces, indent);
        if (&p != &item.parts.back()) behind(p.behind);
      }
    }
    if (comma) out_ += ',';
    behind(item.parts.back().behind);
  }
  void resume(const Part& p, std::size_t indent) {
    comments(p.before, indent, true);
    begin(indent);
  }
  static bool fits(const Item& item, std::size_t indent, bool comma) {
    return !item.flat.empty() && indent + count_chars(item.flat) + (comma ? 1 : 0) <= kWidth;
  }
  // An `if` whose `else` start lines of their own, with a short block each.
  bool in_segments(const Item& item, std::size_t indent) const {
    if (item.parts.size() < 2) return false;
    return std::all_of(item.parts.begin(), item.parts.end(), [&](const Part& p) {
      if (!p.braces || p.braces->flat.empty()) return false;
      const std::string words = flat(p.words);
      return !words.empty() && indent + count_chars(words) + 1 + count_chars(p.braces->flat) <= kWidth;
    });
  }

  void broken(const Braces& b, std::size_t indent) {
    if (b.items.empty() && b.behind_open.empty() && b.tail.empty()) {
      out_ += " { }";
      return;
    }
    out_ += " {";
    behind(b.behind_open);
    if (b.kind == Mark::block) {
      for (const Item& i : b.items) place(i, indent + kIndent, &i == &b.items.front(), false);
    } else {
      several(b, indent + kIndent);
    }
    comments(b.tail, indent + kIndent, b.items.empty());
    begin(indent);
    out_ += '}';
  }

  // Those that shared a line do so again as far as they fit. A clause of a table stands alone; so do the
  // columns of a table that was on one line and does not fit there.
  void several(const Braces& b, std::size_t indent) {
    const bool table = b.kind == Mark::table;
    const bool grouped =
        !table || std::any_of(b.items.begin(), b.items.end(), [](const Item& i) { return i.first_on_line; });
    const Item* last = nullptr;
    for (const Item& i : b.items) {
      const bool comma = !table && &i != &b.items.back();
      const bool joins = last && grouped && !i.first_on_line && i.before.empty() && !i.flat.empty() &&
                         fits(*last, indent, false) && last->parts.back().behind.empty() &&
                         (!table || (last->column && i.column)) &&
                         column() + (table ? 2 : 1) + count_chars(i.flat) + (comma ? 1 : 0) <= kWidth;
      if (joins) {
        if (table) out_ += ',';
        out_ += ' ';
        out_ += i.flat;
        if (comma) out_ += ',';
        behind(i.parts.back().behind);
      } else {
        place(i, indent, last == nullptr, comma);
      }
      last = &i;
    }
  }

  // Puts words on the line that is open, and on further ones as far as they do not fit.
  // Units: `reserve` characters follow the last word.
  void wrap(const std::vector<Chunk>& words, std::size_t indent, std::size_t reserve) {
    std::size_t at = column();
    std::size_t from = 0;
    while (from < words.size()) {
      const std::size_t end = line_end(words, from, at, indent + kContinued, reserve);
      for (std::size_t i = from; i < end; ++i) {
        if (words[i].comma) out_ += ',';
        if (words[i].space && i > from) out_ += ' ';
        out_ += words[i].text;
      }
      if (end < words.size()) {
        begin(indent + kContinued);
        at = indent + kContinued;
      }
      from = end;
    }
  }

  // How many words go on a line that begins at column `at`.
  static std::size_t line_end(const std::vector<Chunk>& words, std::size_t from, std::size_t at,
                              std::size_t next_at, std::size_t reserve) {
    const std::size_t all = words.size();
    if (run_width(words, from, all) + at + reserve <= kWidth) return all;
    std::size_t best = all, best_level = kNoBreak;
    for (std::size_t i = from + 1, width = at + words[from].width; i < all; ++i) {
      const bool over = width > kWidth;
      if (over && best != all) break;
      const Chunk& c = words[i];
      if (c.level != kNoBreak && (over || c.level <= best_level) && helps(words, i, next_at, reserve)) {
        best = i;
        best_level = c.level;
        if (over) break;
      }
      width += c.joined();
    }
    return best;
  }
  static bool helps(const std::vector<Chunk>& words, std::size_t at, std::size_t column,
                    std::size_t reserve) {
    std::size_t end = at + 1;
    if (words[at].assigned)
      end = words.size();
    else
      while (end < words.size() && words[end].level == kNoBreak) ++end;
    return column + run_width(words, at, end) + (end == words.size() ? reserve : 0) <= kWidth;
  }
  // Not looked at beyond what is longer than any line.
  static std::size_t run_width(const std::vector<Chunk>& words, std::size_t from, std::size_t end) {
    std::size_t width = words[from].width;
    for (std::size_t i = from + 1; i < end && width <= kWidth; ++i) width += words[i].joined();
    return width;
  }

  std::string_view source_;
  std::string out_;
  std::size_t line_ = 0;  // where the open line begins
};

}  // namespace

Formatted reformat(std::string_view source) {
  Formatted out;
  std::vector<Complaint> complaints;
  Written written;
  if (std::optional<Complaint> bad = unreadable(source))
    complaints.push_back(std::move(*bad));
  else
    parse(source, complaints, &written);
  const Places places(source);
  for (const Complaint& c : complaints) out.diagnostics.push_back(places.at(c, Diagnostic::Kind::error));
  if (!complaints.empty()) return out;
  Braces file = arrange(source, written);
  out.text = Printer(source).run(file);
  return out;
}

}  // namespace sluice::vm
