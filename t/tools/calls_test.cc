// Transcripts: what they say, what is wrong with them, and which answers are the ones expected.
#include "tools/calls.h"

#include <doctest/doctest.h>

namespace sluice::tools {
namespace {

std::vector<Step> steps_of(std::string_view text) {
  Result<std::vector<Step>, std::string> steps = parse_calls(text);
  REQUIRE_MESSAGE(steps.has_value(), (steps ? std::string() : steps.error()));
  return std::move(*steps);
}

std::string wrong_with(std::string_view text, Answers answers = Answers::required) {
  const Result<std::vector<Step>, std::string> steps = parse_calls(text, answers);
  return steps ? std::string("nothing") : steps.error();
}

Answer answered(std::uint16_t status, std::string name, std::string body, bool own_words = true) {
  Answer a;
  a.status = status;
  a.name = std::move(name);
  a.body = std::move(body);
  a.own_words = own_words;
  return a;
}

bool matches(std::string_view answer_line, const Answer& answer, Captured& captured) {
  const std::vector<Step> steps = steps_of("GET /views/x\n  " + std::string(answer_line) + "\n");
  return matches(steps[0].expected, answer, captured);
}

bool matches(std::string_view answer_line, const Answer& answer) {
  Captured captured;
  return matches(answer_line, answer, captured);
}

TEST_CASE("a transcript is read: clocks, headers, bodies, answers, timers, comments") {
  const std::vector<Step> steps = steps_of(
      "// what this is\n"
      "\n"
      "@1000 POST /inputs/say?who=ann   body \"hi \\u00e9\\n\"\r\n"
      "    200  \"1\"\r\n"
      "PUT /objects/a  If-Match: \"1\", \"2\" body b'\\xff\\'\\n x'\n"
      "\t412 conflict ETag \"3\"\n"
      "// between\n"
      "GET /objects/a  If-None-Match: *   Accept: text/plain, */*\n"
      "  200 ETag \"3\"  {\"a\":1}\n"
      "@1000 timer sweep\n"
      "timer sweep\n"
      "  422 limit \"too much\"");
  REQUIRE(steps.size() == 5);
  CHECK(steps[0].line == 3);
  CHECK(steps[0].clock_ms == 1000);
  CHECK(steps[0].method == "POST");
  CHECK(steps[0].target == "/inputs/say?who=ann");
  CHECK(steps[0].body == "hi \xc3\xa9\n");
  CHECK(steps[0].expected.line == 4);
  CHECK(steps[0].expected.text == "1");
  REQUIRE(steps[1].headers.size() == 1);
  CHECK(steps[1].headers[0].first == "If-Match");
  CHECK(steps[1].headers[0].second == "\"1\", \"2\"");
  CHECK(steps[1].body == "\xff'\n x");
  CHECK(steps[1].expected.status == 412);
  CHECK(steps[1].expected.name == "conflict");
  CHECK(steps[1].expected.etag == "3");
  CHECK_FALSE(steps[1].expected.text.has_value());
  CHECK_FALSE(steps[1].clock_ms.has_value());
  REQUIRE(steps[2].headers.size() == 2);
  CHECK(steps[2].headers[1].second == "text/plain, */*");
  CHECK(steps[2].expected.json);
  CHECK(steps[2].expected.text == "{\"a\":1}");
  CHECK(steps[3].timer == "sweep");
  CHECK(steps[3].expected.line == 0);
  CHECK(steps[3].expected.status == 200);
  CHECK(steps[4].expected.text == "too much");
}

TEST_CASE("what is wrong with a transcript is told with its line") {
  CHECK(wrong_with("GET /views/x\n") == "1: this call has no answer; write it on the next line, indented: `    200`");
  CHECK(wrong_with("\nGET /views/x\nGET /views/y\n  200\n").starts_with("2: this call has no answer"));
  CHECK(wrong_with("GET /views/x\n", Answers::optional) == "nothing");
  CHECK(wrong_with("  200\n") == "1: an answer without a call: calls are not indented");
  CHECK(wrong_with("GET /views/x\n  200\n  200\n") == "3: a call has one answer, on one line");
  CHECK(wrong_with("@soon GET /views/x\n  200\n") == "1: `@` is followed by the time in milliseconds since 1970");
  CHECK(wrong_with("@5 GET /views/x\n  200\n@4 timer t\n") == "3: the clock never goes back: it was @5");
  CHECK(wrong_with("200\n").starts_with("1: expected a call"));
  CHECK(wrong_with("@7\n").starts_with("1: expected a call"));
  CHECK(wrong_with("GET views/x\n  200\n") == "1: a path begins with `/`");
  CHECK(wrong_with("GET\n  200\n") == "1: a path begins with `/`");
  CHECK(wrong_with("timer\n") == "1: write `timer NAME`");
  CHECK(wrong_with("timer a b\n") == "1: write `timer NAME`");
  CHECK(wrong_with("GET /views/x  nonsense\n  200\n") == "1: expected `HEADER: VALUE` or `body TEXT`");
  CHECK(wrong_with("GET /views/x  : no name\n  200\n") == "1: expected `HEADER: VALUE` or `body TEXT`");
  for (const char* body : {"x", "\"x", "'x'", "b'\\x4'", "b'\\xgg'", "b'\\q'", "b'a'b'", "b'\\", "\"a\" b", ""})
    CHECK(wrong_with("POST /inputs/x   body " + std::string(body) + "\n  200\n") ==
          "1: a body is a JSON string, `\"...\"`, or bytes, `b'...'`");
  CHECK(wrong_with("GET /views/x\n  ok\n") == "2: an answer begins with its status, such as `200`");
  CHECK(wrong_with("GET /views/x\n  2000\n") == "2: an answer begins with its status, such as `200`");
  CHECK(wrong_with("GET /views/x\n  200 No-Name\n").starts_with("2: a text is a JSON string"));
  CHECK(wrong_with("GET /views/x\n  404 no-name\n") == "2: a name of X-Pure-Error is of a-z and `_`");
  CHECK(wrong_with("GET /views/x\n  200 ETag 1\n") == "2: an ETag is a revision in quotes: `ETag \"1\"`");
  CHECK(wrong_with("GET /views/x\n  200 \"1\n").starts_with("2: a text is a JSON string"));
}

TEST_CASE("an answer is the one expected only if status, name, ETag and every byte are") {
  CHECK(matches("200", answered(200, "", "")));
  CHECK_FALSE(matches("200", answered(200, "", "1")));
  CHECK_FALSE(matches("200", answered(204, "", "")));
  CHECK(matches("200 \"a\"", answered(200, "", "a")));
  CHECK_FALSE(matches("200 \"a\"", answered(200, "", "a\n")));
  CHECK_FALSE(matches("200 \"a\"", answered(200, "", "")));
  CHECK_FALSE(matches("200 \"\"", answered(200, "", "a")));
  CHECK_FALSE(matches("422 limit", answered(422, "clamp", "no\n", false)));
  // The server's own line need not be written; the module's words must be.
  CHECK(matches("422 limit", answered(422, "limit", "more than the module allows\n", false)));
  CHECK_FALSE(matches("422 limit", answered(422, "limit", "wait", true)));
  CHECK(matches("422 limit \"wait\"", answered(422, "limit", "wait", true)));
  Answer document = answered(200, "", "x");
  document.revision = 3;
  CHECK(matches("200 ETag \"3\" \"x\"", document));
  CHECK_FALSE(matches("200 ETag \"2\" \"x\"", document));
  CHECK_FALSE(matches("200 \"x\"", document));
  CHECK_FALSE(matches("200 ETag \"3\" \"x\"", answered(200, "", "x")));
  Answer json = answered(200, "", "{}");
  CHECK_FALSE(matches("200 {}", json));
  json.json = true;
  CHECK(matches("200 {}", json));
  CHECK(matches("200 \"{}\"", json));
}

TEST_CASE("a placeholder takes letters, digits, - and _ and stands for them from then on") {
  Captured captured;
  CHECK(matches("200 {\"id\":\"$ID\",\"n\":$N}", [] {
    Answer a = answered(200, "", "{\"id\":\"a-B_9\",\"n\":12}");
    a.json = true;
    return a;
  }(), captured));
  CHECK(captured.at("ID") == "a-B_9");
  CHECK(captured.at("N") == "12");
  CHECK(*expand("/views/v?id=$ID&n=$N$$&x=$x$", captured) == "/views/v?id=a-B_9&n=12$&x=$x$");
  CHECK(expand("$ID $NONE", captured).error() == "NONE");
  CHECK(matches("200 \"$ID!\"", answered(200, "", "a-B_9!"), captured));
  CHECK_FALSE(matches("200 \"$ID!\"", answered(200, "", "other!"), captured));
  CHECK_FALSE(matches("200 \"$OTHER\"", answered(200, "", ""), captured));
  // What does not match captures nothing.
  CHECK_FALSE(matches("200 \"$OTHER!\"", answered(200, "", "x?"), captured));
  CHECK(captured.count("OTHER") == 0);
  CHECK(matches("200 \"5 $$\"", answered(200, "", "5 $"), captured));
  CHECK_FALSE(matches("200 \"5 $$\"", answered(200, "", "5 $$"), captured));
}

TEST_CASE("an answer written into a transcript is the one that comes") {
  for (const char* body : {"", "a", "{\"a\":1}", "line\n", "\xff'\\", "$ID", "$$ID", "$$", "cost $5", "$", "[1]", "{\"a\":\n1}"}) {
    for (const bool json : {false, true}) {
      Answer a = answered(200, "", body);
      a.json = json;
      a.revision = 7;
      INFO(write_answer(a));
      CHECK(matches(write_answer(a), a));
    }
  }
  CHECK(write_answer(answered(422, "clamp", "a number outside its range\n", false)) == "422 clamp");
  CHECK(write_answer(answered(422, "limit", "wait 750 ms")) == "422 limit  \"wait 750 ms\"");
}

TEST_CASE("other answers go where the old ones were, and comments stay") {
  const std::string_view text = "// one\n@5 POST /inputs/a   body \"x\"\n    200\n\nGET /views/b\ntimer t\n// end";
  const Result<std::vector<Step>, std::string> steps = parse_calls(text, Answers::optional);
  REQUIRE(steps);
  CHECK(with_answers(text, *steps, {std::nullopt, "404 no_view", std::nullopt}) ==
        "// one\n@5 POST /inputs/a   body \"x\"\n    200\n\nGET /views/b\n    404 no_view\ntimer t\n// end\n");
  CHECK(with_answers(text, *steps, {"409 exists", "200  \"1\"", "422 limit"}) ==
        "// one\n@5 POST /inputs/a   body \"x\"\n    409 exists\n\nGET /views/b\n    200  \"1\"\ntimer t\n    422 limit\n// end\n");
  CHECK(write_step((*steps)[0]) == "@5 POST /inputs/a   body \"x\"");
  CHECK(write_step((*steps)[2]) == "timer t");
}

}  // namespace
}  // namespace sluice::tools
