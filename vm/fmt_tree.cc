#include "vm/fmt_tree.h"

#include <algorithm>

namespace sluice::vm {
namespace {

class Arranger {
 public:
  Arranger(std::string_view source, const Written& written) : source_(source), written_(written) {}

  Braces run() {
    Braces file;
    while (token().kind != Tok::end) file.items.push_back(item(Mark::none));
    file.tail = comments();
    return file;
  }

 private:
  const Token& token() const { return written_.tokens[at_]; }
  // Where the next word is. The end of the file is behind its last comment, not where the token says.
  std::uint32_t next() const {
    return token().kind == Tok::end ? static_cast<std::uint32_t>(source_.size()) : token().span.offset;
  }
  bool comment_before(std::uint32_t offset) const {
    return comment_ < written_.comments.size() && written_.comments[comment_].offset < offset;
  }
  std::size_t lines_between(std::uint32_t from, std::uint32_t to) const {
    return static_cast<std::size_t>(std::count(source_.begin() + from, source_.begin() + to, '\n'));
  }
  bool after_blank(std::uint32_t offset) const { return lines_between(end_, offset) > 1; }

  std::string_view take_comment() {
    const Span s = written_.comments[comment_++];
    end_ = s.end();
    std::string_view text = source_.substr(s.offset, s.length);
    while (text.ends_with(' ') || text.ends_with('\t') || text.ends_with('\r')) text.remove_suffix(1);
    return text;
  }
  std::vector<LineComment> comments() {
    std::vector<LineComment> out;
    while (comment_before(next())) {
      const bool blank = after_blank(written_.comments[comment_].offset);
      out.push_back({take_comment(), blank});
    }
    return out;
  }
  // The one on the line on which the last word stands.
  void take_behind(std::string_view& behind) {
    if (behind.empty() && comment_before(next()) &&
        lines_between(end_, written_.comments[comment_].offset) == 0)
      behind = take_comment();
  }
  const Token* take() {
    const Token* t = &token();
    end_ = t->span.end();
    ++at_;
    return t;
  }

  // Up to the next item, the end of its braces or, in a list or a table, behind its comma.
  Item item(Mark in) {
    Item out;
    out.before = comments();
    out.after_blank = after_blank(token().span.offset);
    out.first_on_line = token().first_on_line;
    out.column = in == Mark::table && written_.tokens[at_ + 1].kind == Tok::colon;
    Part* part = &out.parts.emplace_back();
    part->words.push_back(take());
    for (int depth = 0;;) {
      const Token& t = token();
      if (t.kind == Tok::end || t.mark == Mark::item || (t.kind == Tok::rbrace)) break;
      if (t.kind == Tok::comma && depth == 0) {
        if (in == Mark::list || in == Mark::table) break;
        // Between the sizes of a table: written again where it belongs.
        hoist(out);
        take();
        continue;
      }
      if (part->braces) {
        // An `else`. What is said between it and its `if` stays there.
        take_behind(part->behind);
        part = &out.parts.emplace_back();
        part->before = comments();
      } else {
        hoist(out);
      }
      if (t.kind == Tok::lbrace) {
        part->braces = std::make_unique<Braces>(braces());
        continue;
      }
      if (t.kind == Tok::lparen || t.kind == Tok::lbracket) ++depth;
      if (t.kind == Tok::rparen || t.kind == Tok::rbracket) --depth;
      part->words.push_back(take());
    }
    take_behind(part->behind);
    if (token().kind == Tok::comma) {
      // A comment above the comma belongs to what follows, and so does a second one on this line.
      std::vector<LineComment> kept = comments();
      take();
      if (kept.empty()) take_behind(part->behind);
      held_ = std::move(kept);
    }
    return out;
  }

  // Comments amid an item go above it, as does the empty line that stood there.
  void hoist(Item& to) {
    for (LineComment& c : comments()) {
      c.after_blank = to.after_blank;
      to.after_blank = false;
      to.before.push_back(c);
    }
  }

  Braces braces() {
    Braces out;
    out.kind = token().mark;
    take();
    take_behind(out.behind_open);
    while (token().kind != Tok::rbrace) {
      std::vector<LineComment> held = std::move(held_);
      held_.clear();
      Item next = item(out.kind);
      if (!held.empty()) next.before.insert(next.before.begin(), held.begin(), held.end());
      out.items.push_back(std::move(next));
    }
    out.tail = std::move(held_);
    held_.clear();
    for (LineComment& c : comments()) out.tail.push_back(c);
    take();
    return out;
  }

  std::string_view source_;
  const Written& written_;
  std::size_t at_ = 0, comment_ = 0;
  std::uint32_t end_ = 0;          // of the last word or comment taken
  std::vector<LineComment> held_;  // read before a comma, for the item behind it
};

}  // namespace

Braces arrange(std::string_view source, const Written& written) { return Arranger(source, written).run(); }

}  // namespace sluice::vm
