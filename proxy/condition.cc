#include "proxy/condition.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace sluice::proxy {
namespace {

constexpr std::size_t kRevisions = 1 + std::tuple_size_v<decltype(MoreRevisions::at)>;

bool is_field(std::string_view sent, std::string_view lower) {
  return sent.size() == lower.size() &&
         std::equal(sent.begin(), sent.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

bool is_space(char c) { return c == ' ' || c == '\t'; }

// Between the quotes. RFC 9110, 8.8.3.
bool is_tag_char(char c) {
  const auto b = static_cast<unsigned char>(c);
  return b == 0x21 || (b >= 0x23 && b != 0x7f);
}

// A revision as we write it: digits without a zero in front.
std::optional<std::uint64_t> our_revision(std::string_view tag) {
  if (tag.empty() || tag[0] == '0') return std::nullopt;
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(tag.data(), tag.data() + tag.size(), n);
  if (error != std::errc() || end != tag.data() + tag.size()) return std::nullopt;
  return n;
}

// What all lines of one field say together.
struct List {
  bool given = false;
  bool any = false;        // `*`
  bool malformed = false;
  std::size_t tags = 0;    // of ours or not
  std::size_t ours = 0;    // of which the first kRevisions are in `revisions`
  std::array<std::uint64_t, kRevisions> revisions;
};

void take_tag(List& list, std::string_view tag, bool weak) {
  ++list.tags;
  if (weak) return;
  const std::optional<std::uint64_t> revision = our_revision(tag);
  if (!revision) return;
  if (list.ours < kRevisions) list.revisions[list.ours] = *revision;
  ++list.ours;
}

void read_line(List& list, std::string_view value) {
  list.given = true;
  std::size_t at = 0;
  bool separated = true;   // empty elements are allowed, two without a comma between are not
  while (at < value.size()) {
    const char c = value[at];
    if (is_space(c)) {
      ++at;
      continue;
    }
    if (c == ',') {
      separated = true;
      ++at;
      continue;
    }
    if (!separated) break;
    separated = false;
    if (c == '*') {
      list.any = true;
      ++at;
      continue;
    }
    const bool weak = c == 'W';
    if (weak && value.substr(at, 2) != "W/") break;
    std::size_t open = at + (weak ? 2 : 0);
    if (open >= value.size() || value[open] != '"') break;
    std::size_t close = ++open;
    while (close < value.size() && is_tag_char(value[close])) ++close;
    if (close >= value.size() || value[close] != '"') break;
    take_tag(list, value.substr(open, close - open), weak);
    at = close + 1;
  }
  if (at < value.size()) list.malformed = true;
}

}  // namespace

Result<void> read_condition(Call& call, std::span<const Header> headers, bool may_create) {
  List match, none_match;
  for (const Header& h : headers) {
    if (is_field(h.name, "if-match")) read_line(match, h.value);
    else if (is_field(h.name, "if-none-match")) read_line(none_match, h.value);
  }
  if (!match.given && !none_match.given)
    return fail(Errc::condition, may_create
                                     ? "PUT needs one of `If-None-Match: *` (create) and `If-Match: \"REV\"` (replace)"
                                     : "DELETE needs `If-Match: \"REV\"`");
  if (match.given && none_match.given)
    return fail(Errc::request, "If-Match and If-None-Match together: give one of them");
  if (none_match.given) {
    if (!may_create) return fail(Errc::request, "DELETE takes `If-Match: \"REV\"`, not If-None-Match");
    if (!none_match.any || none_match.tags != 0 || none_match.malformed)
      return fail(Errc::request, "PUT takes no If-None-Match but `*`");
    call.condition = Condition::absent;
    return {};
  }
  if (match.malformed || match.any || match.tags == 0)
    return fail(Errc::request, "If-Match takes revisions in quotes, such as `If-Match: \"7\"`");
  if (match.ours > kRevisions) return fail(Errc::request, "If-Match takes at most 8 revisions");
  call.condition = Condition::match;
  call.revision = match.ours == 0 ? kNoRevision : match.revisions[0];
  call.more.count = 0;
  for (std::size_t i = 1; i < match.ours; ++i) call.more.at[call.more.count++] = match.revisions[i];
  return {};
}

}  // namespace sluice::proxy
