#include "proxy/remote/fields.h"

#include <array>

namespace sluice::proxy {
namespace {

constexpr std::array<bool, 256> kToken = [] {
  std::array<bool, 256> t{};
  for (int c = '0'; c <= '9'; ++c) t[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) t[static_cast<std::size_t>(c)] = t[static_cast<std::size_t>(c - 32)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) t[static_cast<unsigned char>(c)] = true;
  return t;
}();

}  // namespace

bool is_field_name(std::string_view text) {
  for (const char c : text)
    if (!kToken[static_cast<unsigned char>(c)]) return false;
  return !text.empty();
}

bool is_field_text(std::string_view text) {
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return false;
  return true;
}

}  // namespace sluice::proxy
