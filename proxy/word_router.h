// Which route a word of the path leads to: what is before a separator, or between two.
//
// For keys such as `user:17` or `/@east/...`: where the whole path decides, see router.h.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "proxy/router.h"

namespace sluice::proxy {

// Shape: the text that is looked at is the path behind its first slash, or what a pool would hash of the path (the key of a
//        document, the name of a view). With `start` empty the word is what is before the first `stop`; else the text begins
//        with `start`, and the word is what is between it and the next `stop`. `stop` has 1 to 5 bytes, `start` 0 to 5.
//        A text without them has no word. Nothing is trimmed off the path.
struct WordRule {
  std::string start, stop = "/";
  bool of_key = false;
};

// Built on control, then only read.
class WordRouter {
 public:
  explicit WordRouter(WordRule rule) : rule_(std::move(rule)) {}

  // Errors: a sentence: the word was given before for such a method, or cannot occur. Nothing is added then.
  Result<void, std::string> add(std::string_view word, MethodSet methods, Route* route);
  // For paths without a word, or with one that was not added.
  void set_fallback(MethodSet methods, Route* route) { fallback_.set(methods, route); }
  // As Router::find().
  Route* find(Method method, std::string_view path, Match& match) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  const WordRule rule_;
  std::unordered_map<std::string, MethodMap, Hash, std::equal_to<>> words_;
  MethodMap fallback_;
};

}  // namespace sluice::proxy
