// The text of a module as a list of tokens.
#pragma once
#include <string_view>
#include <vector>

#include "vm/token.h"

namespace sluice::vm {

inline constexpr std::size_t kSourceMax = 1024 * 1024;  // bytes
inline constexpr std::size_t kNameMax = 64;             // bytes

// Never fails: what cannot be a token becomes one of kind `error`, and reading goes on behind it. The last
// token is `end`; where comments stand is told to who asks. Shape:  source is valid UTF-8 of at most
// kSourceMax bytes. Source: design module.md 1.2.
std::vector<Token> tokenize(std::string_view source, std::vector<Span>* comments = nullptr);

bool is_language_word(std::string_view text);

}  // namespace sluice::vm
