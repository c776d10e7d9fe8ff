#include <doctest/doctest.h>

#include "vm/base/json.h"
#include "vm/base/utf8.h"

using namespace sluice;

TEST_CASE("only RFC 3629's forms are UTF-8") {
  CHECK(valid_utf8(""));
  CHECK(valid_utf8("h\xc3\xa9llo \xf0\x9f\x98\x80"));
  for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"}) CHECK(!valid_utf8(bad));
  CHECK(count_chars("h\xc3\xa9llo \xf0\x9f\x98\x80") == 7);
  CHECK(count_chars("") == 0);
}

TEST_CASE("JSON strings escape quotes, backslashes and control bytes, nothing else") {
  std::string out;
  append_json_string(out, std::string_view("a\"b\\c\n\x01\x1f/\xc3\xa9\x7f\0z", 14));
  CHECK(out == "\"a\\\"b\\\\c\\u000a\\u0001\\u001f/\xc3\xa9\x7f\\u0000z\"");
}

TEST_CASE("valid JSON is RFC 8259's") {
  for (const char* good : {"1", " -0.5e-7 ", "\"\"", "true", "false", "null", "[]", "{}", "[1,[2,{\"a\":[]}]]",
                           "{\"a\":1,\"b\":{\"c\":\"\\u00e9\\ud83d\\ude00\\n\"}}", "123456789012345678901234567890", "1e400",
                           "{ \"a\" : [ 1 , 2 ] }\n", "[\"\x7f\"]"})
    CHECK_MESSAGE(json_valid(good), good);
  for (const char* bad : {"", " ", "01", "1.", ".5", "+1", "-", "1e", "tru", "nul", "truex", "1 2", "[1,]", "[,1]", "[1 2]", "[",
                          "]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:2}", "\"", "\"\\x\"", "\"\\u12\"",
                          "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\n\"", "\"\xff\"", "[1}", "{\"a\":1]", "'a'"})
    CHECK_MESSAGE(!json_valid(bad), bad);
}

TEST_CASE("JSON may be nested 1,024 deep and no deeper") {
  CHECK(json_valid(std::string(1024, '[') + std::string(1024, ']')));
  CHECK(!json_valid(std::string(1025, '[') + std::string(1025, ']')));
  CHECK(!json_valid(std::string(100000, '[')));
}

TEST_CASE("a pointer leads to one value, as RFC 6901 says") {
  const std::string_view doc =
      "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,"
      "\"\\u00e9\":\"caf\\u00e9 \\ud83d\\ude00\\t\"}";
  CHECK(json_find(doc, "") == doc);
  CHECK(json_find(doc, "/foo") == "[\"bar\",\"baz\"]");
  CHECK(json_text(doc, "/foo/0") == "bar");
  CHECK(json_text(doc, "/foo/1") == "baz");
  CHECK(json_number(doc, "/") == 0);
  CHECK(json_number(doc, "/a~1b") == 1);
  CHECK(json_number(doc, "/c%d") == 2);
  CHECK(json_number(doc, "/e^f") == 3);
  CHECK(json_number(doc, "/g|h") == 4);
  CHECK(json_number(doc, "/i\\j") == 5);
  CHECK(json_number(doc, "/k\"l") == 6);
  CHECK(json_number(doc, "/ ") == 7);
  CHECK(json_number(doc, "/m~0n") == 8);
  CHECK(json_text(doc, "/\xc3\xa9") == "caf\xc3\xa9 \xf0\x9f\x98\x80\t");
}

TEST_CASE("a pointer that leads nowhere, to another type or into what is not JSON finds nothing") {
  const std::string_view doc = "{\"a\":[1,{\"b\":\"x\"}],\"n\":\"5\",\"z\":null,\"t\":true}";
  for (const char* nowhere : {"/b", "a", "/a/2", "/a/-", "/a/01", "/a/x", "/a/1/c", "/a/0/0", "/n/0", "/a~2", "/a~", "/a/99999999999", "//"})
    CHECK_MESSAGE(!json_find(doc, nowhere), nowhere);
  CHECK(!json_text(doc, "/a"));
  CHECK(!json_text(doc, "/a/0"));
  CHECK(!json_text(doc, "/z"));
  CHECK(!json_number(doc, "/n"));
  CHECK(!json_number(doc, "/z"));
  CHECK(!json_number(doc, "/t"));
  CHECK(json_number(doc, "/a/0") == 1);
  CHECK(!json_number("{\"a\":1", "/a"));
  CHECK(!json_text("{\"a\":\"x\"} ,", "/a"));
}

TEST_CASE("JSON numbers are read by our own rule: beyond 64 bits they are plain, beyond the doubles absent") {
  CHECK(json_number("{\"a\":123456789012345678901234567890}", "/a") == 123456789012345678901234567890.0);
  CHECK(json_number("{\"a\":18446744073709551616}", "/a") == 18446744073709551616.0);
  CHECK(!json_number("{\"a\":1e400}", "/a"));
  CHECK(json_number("{\"a\":1e400,\"b\":2}", "/b") == 2);
  CHECK(json_number(" -12.5e1 ", "") == -125);
}

TEST_CASE("of equal names the first counts") { CHECK(json_number("{\"a\":1,\"a\":2}", "/a") == 1); }
