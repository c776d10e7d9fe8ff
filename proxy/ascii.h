// ASCII comparisons that HTTP needs: field names and tokens without regard to case.
#pragma once
#include <cstddef>
#include <string_view>

namespace sluice::proxy {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Whether `a` is `small` (lower case) but for case.
constexpr bool same_text(std::string_view a, std::string_view small) {
  if (a.size() != small.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != small[i]) return false;
  return true;
}

// The same for two texts of any case.
constexpr bool equal_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

constexpr std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Hands each non-empty element of a comma-separated list to `f`, trimmed. Quotes are not looked at.
template <class F>
constexpr void each_token(std::string_view list, F&& f) {
  while (!list.empty()) {
    const std::size_t end = list.find(',');
    const std::string_view token = trim(list.substr(0, end));
    list = end == list.npos ? std::string_view() : list.substr(end + 1);
    if (!token.empty()) f(token);
  }
}

}  // namespace sluice::proxy
