#include "vm/builtin.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "t/vm/memory_host.h"
#include "vm/base/hash.h"
#include "vm/base/number_text.h"
#include "vm/builtin_run.h"
#include "vm/chance.h"
#include "vm/slot.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
Value in(double n) { return Value::number(n); }
Value in(int n) { return Value::number(n); }
Value in(bool b) { return Value::truth(b); }
Value in(const char* s) { return Value::span(s); }
Value in(const Value& v) { return v; }

// Calls a function by name and gives its answer as text: "=12", `"text"`, "true", "absent" or the fault's name.
struct Calls {
  Module module;
  MemoryHost host{module};
  Arena arena;
  std::uint64_t calls = 0;

  template <class... Args>
  std::string operator()(std::string_view name, const Args&... args) {
    const Value values[] = {in(args)...};
    Type types[sizeof...(args)];
    for (std::size_t i = 0; i < sizeof...(args); ++i) types[i] = values[i].type;
    const Builtin* one = find_builtin(name, types, sizeof...(args));
    REQUIRE(one != nullptr);
    arena.reset();
    BuiltinContext context{arena, host, calls};
    Value out;
    const Fault fault = run_builtin(one->number, values, out, context);
    if (fault != Fault::none) return std::string(vm::name(fault));
    if (out.type == Type::none) {
      CHECK(one->partial);
      return "absent";
    }
    CHECK(out.type == one->result);
    std::string text;
    if (out.type == Type::num) {
      CHECK(!(out.num == 0 && std::signbit(out.num)));
      append_number(text, out.num);
    } else if (out.type == Type::boolean) {
      text = out.boolean ? "true" : "false";
    } else {
      text = "\"" + std::string(out.text()) + "\"";
    }
    return text;
  }
};
}  // namespace

TEST_CASE("the table numbers its functions as files do, and finds them by name and types") {
  for (int i = 0; i < kBuiltins; ++i) CHECK(builtin(static_cast<std::uint8_t>(i)).number == i);
  const Type text = Type::text, bytes = Type::bytes, num = Type::num;
  CHECK(find_builtin("size", &text, 1)->number == 10);
  CHECK(find_builtin("size", &bytes, 1)->number == 11);
  CHECK(find_builtin("text", &num, 1)->number == 25);
  CHECK(find_builtin("size", &num, 1) == nullptr);
  CHECK(find_builtin("pow", &num, 1) == nullptr);
  CHECK(find_builtin("abs", &num, 0) == nullptr);
  CHECK(is_builtin_name("json_text"));
  CHECK(!is_builtin_name("exp"));
}

TEST_CASE("number functions round, floor and refuse as the language says") {
  Calls f;
  CHECK(f("abs", -2.5) == "2.5");
  CHECK(f("floor", -0.5) == "-1");
  CHECK(f("ceil", -0.5) == "0");
  CHECK(f("round", 0.5) == "1");
  CHECK(f("round", -0.5) == "-1");
  CHECK(f("round", 2.5) == "3");
  CHECK(f("round", -2.5) == "-3");
  CHECK(f("round", 0.49999999999999994) == "0");
  CHECK(f("trunc", -2.9) == "-2");
  CHECK(f("sqrt", 9) == "3");
  CHECK(f("sqrt", -1) == "non_finite");
  CHECK(f("min", 1, 2) == "1");
  CHECK(f("max", 1, 2) == "2");
  CHECK(f("div", 7, 2) == "3");
  CHECK(f("div", -7, 2) == "-4");
  CHECK(f("div", 7, -2) == "-4");
  CHECK(f("div", -7, -2) == "3");
  CHECK(f("div", 1, 0.1) == "9");
  CHECK(f("div", 0, 5) == "0");
  CHECK(f("div", 1, 0) == "divide");
  CHECK(f("div", 1e308, 1e-10) == "non_finite");
  CHECK(f("clamp", 5, 0, 3) == "3");
  CHECK(f("clamp", -5, 0, 3) == "0");
  CHECK(f("clamp", 2, 0, 3) == "2");
  CHECK(f("clamp", 2, 3, 0) == "clamp");
  CHECK(floor_mod(-7, 3) == 2);
  CHECK(floor_mod(7, -3) == -2);
  CHECK(floor_mod(5.5, 2) == 1.5);
}

TEST_CASE("text functions know ASCII, bytes and characters") {
  Calls f;
  CHECK(f("size", "h\xc3\xa9") == "3");
  CHECK(f("size", Value::span("abc", Type::bytes)) == "3");
  CHECK(f("chars", "h\xc3\xa9") == "2");
  CHECK(f("upper", "h\xc3\xa9llo z{") == "\"H\xc3\xa9LLO Z{\"");
  CHECK(f("lower", "HE[Z@") == "\"he[z@\"");
  CHECK(f("lower", "abc") == "\"abc\"");
  CHECK(f("trim", " \t\n\v\f\r hi \xc2\xa0 ") == "\"hi \xc2\xa0\"");
  CHECK(f("trim", "   ") == "\"\"");
  CHECK(f("starts", "abc", "ab") == "true");
  CHECK(f("starts", "abc", "") == "true");
  CHECK(f("ends", "abc", "bc") == "true");
  CHECK(f("ends", "abc", "abcd") == "false");
  CHECK(f("contains", "abc", "b") == "true");
  CHECK(f("contains", "abc", "") == "true");
  CHECK(f("contains", "", "b") == "false");
  CHECK(f("find", "abcabc", "ca") == "2");
  CHECK(f("find", "abc", "x") == "absent");
  CHECK(f("before", "k=v=w", "=") == "\"k\"");
  CHECK(f("after", "k=v=w", "=") == "\"v=w\"");
  CHECK(f("before", "kv", "=") == "absent");
  CHECK(f("after", "kv", "=") == "absent");
  CHECK(f("replace", "aXbXc", "X", "--") == "\"a--b--c\"");
  CHECK(f("replace", "aaa", "aa", "b") == "\"ba\"");
  CHECK(f("replace", "abc", "", "x") == "\"abc\"");
  CHECK(f("replace", "abc", "x", "y") == "\"abc\"");
  CHECK(f("replace", "XX", "X", "") == "\"\"");
  CHECK(f("text", Value::span("ok", Type::bytes)) == "\"ok\"");
  CHECK(f("text", Value::span("\xff", Type::bytes)) == "encoding");
  CHECK(f("text", 0.5) == "\"0.5\"");
  CHECK(f("text", true) == "\"true\"");
  CHECK(f("text", false) == "\"false\"");
  CHECK(f("num", "-12.5") == "-12.5");
  CHECK(f("num", "12 ") == "absent");
  CHECK(f("num", "1e999") == "absent");
  CHECK(f("is_slug", "a-Z_9") == "true");
  CHECK(f("is_slug", "a b") == "false");
  CHECK(f("is_slug", "") == "false");
}

TEST_CASE("slices are by bytes, inside the text, and never inside a character") {
  Calls f;
  CHECK(f("slice", "h\xc3\xa9llo", 0, 1) == "\"h\"");
  CHECK(f("slice", "h\xc3\xa9llo", 1, 3) == "\"\xc3\xa9\"");
  CHECK(f("slice", "h\xc3\xa9llo", 6, 6) == "\"\"");
  CHECK(f("slice", "h\xc3\xa9llo", 0, 2) == "encoding");
  CHECK(f("slice", "h\xc3\xa9llo", 2, 3) == "encoding");
  CHECK(f("slice", "abc", 0, 4) == "clamp");
  CHECK(f("slice", "abc", 2, 1) == "clamp");
  CHECK(f("slice", "abc", -1, 1) == "clamp");
  CHECK(f("slice", "abc", 0, 1.5) == "clamp");
}

TEST_CASE("padding puts one character in front until the text is wide enough") {
  Calls f;
  CHECK(f("pad", "7", 3, "0") == "\"007\"");
  CHECK(f("pad", "h\xc3\xa9", 4, "\xc3\xa9") == "\"\xc3\xa9\xc3\xa9h\xc3\xa9\"");
  CHECK(f("pad", "1234", 3, "0") == "\"1234\"");
  CHECK(f("pad", "1", 3, "ab") == "clamp");
  CHECK(f("pad", "1", 3, "") == "clamp");
  CHECK(f("pad", "1", -1, "0") == "clamp");
  CHECK(f("pad", "1", 2.5, "0") == "clamp");
  CHECK(f("pad", "1", 2e6, "0") == "limit");
  CHECK(f("pad", "1", 600000, "\xc3\xa9") == "limit");
}

TEST_CASE("identity functions are the named hashes") {
  Calls f;
  std::string expected;
  append_number(expected, static_cast<double>(xxh64("abc") >> 11));
  CHECK(f("hash", "abc") == expected);
  CHECK(xxh64("abc") == 0x44bc2cf5ad770999u);
  CHECK(f("bucket", "abc", 100) == std::to_string(xxh64("abc") % 100));
  CHECK(f("bucket", "abc", 1) == "0");
  CHECK(f("bucket", "abc", 0) == "divide");
  CHECK(f("bucket", "abc", -1) == "clamp");
  CHECK(f("bucket", "abc", 1.5) == "clamp");
  CHECK(f("base62", 238329) == "\"1001\"");
  CHECK(f("base62", 0) == "\"0\"");
  CHECK(f("base62", 61) == "\"z\"");
  CHECK(f("base62", 9007199254740992.0) == "\"fFgnDxSe8\"");
  CHECK(f("base62", -1) == "clamp");
  CHECK(f("base62", 0.5) == "clamp");
}

TEST_CASE("JSON functions take one value out of a text") {
  Calls f;
  const char* doc = "{\"title\":\"First\",\"note\":\"a\\nb\",\"version\":2}";
  CHECK(f("json_valid", doc) == "true");
  CHECK(f("json_valid", "{") == "false");
  CHECK(f("json_text", doc, "/title") == "\"First\"");
  CHECK(f("json_text", doc, "/note") == "\"a\nb\"");
  CHECK(f("json_text", doc, "/version") == "absent");
  CHECK(f("json_num", doc, "/version") == "2");
  CHECK(f("json_num", doc, "/title") == "absent");
  CHECK(f("json_num", "nonsense", "/title") == "absent");
}

TEST_CASE("ChaCha20 gives the key stream of RFC 8439, 2.3.2") {
  std::string key;
  for (int i = 0; i < 32; ++i) key.push_back(static_cast<char>(i));
  const std::string_view nonce("\0\0\0\x09\0\0\0\x4a\0\0\0\0", 12);
  std::array<std::uint8_t, 64> out{};
  chacha20_block(key, 1, nonce, out);
  const std::uint8_t expected[] = {0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20, 0x71, 0xc4};
  for (std::size_t i = 0; i < sizeof expected; ++i) CHECK(out[i] == expected[i]);
  CHECK(out[63] == 0x4e);
}

TEST_CASE("chance depends on the seed and the number of the call alone") {
  Calls f;
  const std::string first = f("token", 22), second = f("token", 22);
  CHECK(first.size() == 24);
  CHECK(first != second);
  f.calls = 0;
  CHECK(f("token", 22) == first);
  f.calls = 0;
  f.host.seed_bytes = std::string(32, 'x');
  CHECK(f("token", 22) != first);
  std::set<std::string> seen;
  for (int i = 0; i < 500; ++i) seen.insert(f("random", 6));
  CHECK(seen == std::set<std::string>{"0", "1", "2", "3", "4", "5"});
  CHECK(f("random", 1) == "0");
  CHECK(f("random", 0) == "clamp");
  CHECK(f("random", 1.5) == "clamp");
  CHECK(f("token", 0) == "clamp");
  CHECK(f("token", 256).size() == 258);
  CHECK(f("token", 257) == "clamp");
}

TEST_CASE("every function that builds a text faults limit when the event's memory is used up") {
  Module module;
  MemoryHost host(module);
  Arena arena;
  REQUIRE(arena.take(kArenaBytes) != nullptr);
  std::uint64_t calls = 0;
  BuiltinContext context{arena, host, calls};
  const auto run = [&](std::uint8_t number, std::vector<Value> arguments) {
    Value out;
    return run_builtin(number, arguments.data(), out, context);
  };
  CHECK(run(13, {in("a")}) == Fault::limit);
  CHECK(run(14, {in("A")}) == Fault::limit);
  CHECK(run(23, {in("a"), in("a"), in("b")}) == Fault::limit);
  CHECK(run(25, {in(1)}) == Fault::limit);
  CHECK(run(30, {in(1)}) == Fault::limit);
  CHECK(run(31, {in("a"), in(2), in("0")}) == Fault::limit);
  CHECK(run(34, {in("\"\\n\""), in("")}) == Fault::limit);
  CHECK(run(37, {in(5)}) == Fault::limit);
}
