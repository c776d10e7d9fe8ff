// A transcript of a module, FILE.calls: what is asked, and what is answered to it.
//
//   // a comment
//   [@MS] METHOD PATH [HEADER: VALUE]... [body TEXT]
//       STATUS [NAME] [ETag "N"] [TEXT]
//   [@MS] timer NAME
//       [STATUS [NAME] [TEXT]]
//
// TEXT is "a JSON string" or b'bytes'; in an answer also JSON as it is sent. `@MS` sets the clock, from there on. In an
// answer `$ID` stands for any letters, digits, `-` and `_`; wherever it comes again, for the same ones. `$$` is a `$`.
// A refusal without TEXT is answered with the server's own line, whatever that says.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/base/result.h"

namespace sluice::tools {

// What came for each `$NAME`.
using Captured = std::map<std::string, std::string, std::less<>>;

struct Expected {
  std::uint32_t line = 0;                     // 0: there is none; of a timer that is 200 without a text
  std::uint16_t status = 200;
  std::string name;                           // of X-Pure-Error; empty: none
  std::optional<std::string> etag;            // without its quotes
  std::optional<std::string> text;            // decoded, with its `$NAME`s
  bool json = false;                          // it was written as JSON: then it is answered as application/json
};

struct Step {
  std::uint32_t line = 0;
  std::optional<std::uint64_t> clock_ms;      // from `@MS`
  std::string timer;                          // its name; empty: a request
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::string> body;            // decoded
  Expected expected;
};

// A call whose answer is still to be written is taken only when its answers are `optional`.
enum class Answers : std::uint8_t { required, optional };
// Errors: "LINE: what is wrong", one sentence.
Result<std::vector<Step>, std::string> parse_calls(std::string_view text, Answers answers = Answers::required);

// What a step was answered.
struct Answer {
  std::uint16_t status = 200;
  std::string name;                           // empty: none
  std::uint64_t revision = 0;                 // 0: no ETag
  std::string body;
  bool json = false;
  bool own_words = true;                      // false: `body` is a line of the server's, not the module's
};

// Puts what was captured in the places of `$NAME`. Errors: the name that nothing has been captured for.
Result<std::string, std::string> expand(std::string_view pattern, const Captured& captured);

// Whether `answer` is what was expected; notes new `$NAME`s when it is.
bool matches(const Expected& expected, const Answer& answer, Captured& captured);

// As a transcript writes them.
std::string write_step(const Step& step);
std::string write_answer(const Answer& answer);
std::string write_answer(const Expected& expected);

// The transcript with other answers, its comments and spaces kept: one per step, in order; none: the one there is.
std::string with_answers(std::string_view text, const std::vector<Step>& steps,
                         const std::vector<std::optional<std::string>>& answers);

}  // namespace sluice::tools
