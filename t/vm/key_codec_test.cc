#include "vm/key_codec.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace sluice::vm {
namespace {
Slot slot(Base base, std::uint32_t max = 0) {
  Slot out;
  out.base = base;
  out.max = max;
  return out;
}
std::string part(const Slot& of, const Value& value, bool descending = false) {
  KeyBuffer key;
  REQUIRE(append_key(key, of, descending, value) == Fault::none);
  CHECK(key_part_size(of.base, descending, std::string(key.view()) + "more") == key.size);
  for (std::size_t size = 0; size < key.size; ++size)
    CHECK(key_part_size(of.base, descending, key.view().substr(0, size)) == std::string_view::npos);
  return std::string(key.view());
}
// Parts rise where the values do, and fall where the order is against them.
void rises(const Slot& of, const std::vector<Value>& values) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    CHECK(part(of, values[i - 1]) < part(of, values[i]));
    CHECK(part(of, values[i - 1], true) > part(of, values[i], true));
  }
}
std::vector<Value> numbers(std::initializer_list<double> list) {
  std::vector<Value> out;
  for (const double n : list) out.push_back(Value::number(n));
  return out;
}
}  // namespace

TEST_CASE("parts of keys sort as their values do, both ways") {
  rises(slot(Base::num), numbers({-1.7976931348623157e308, -1e10, -1, -0.5, -5e-324, 0, 5e-324, 0.5, 1, 1.5, 1e10, 1.7976931348623157e308}));
  rises(slot(Base::integer), numbers({-9007199254740992.0, -256, -255, -1, 0, 1, 255, 256, 9007199254740992.0}));
  rises(slot(Base::u32), numbers({0, 1, 255, 256, 65536, 4294967295.0}));
  rises(slot(Base::boolean), {Value::truth(false), Value::truth(true)});
  rises(slot(Base::text, 50), {Value::span(""), Value::span("\x01"), Value::span("a"), Value::span("a\x01"), Value::span("aa"),
                               Value::span("b"), Value::span("\xc3\xa9"), Value::span("\xf0\x9f\x98\x80")});
}

TEST_CASE("keys as bytes") {
  CHECK(part(slot(Base::num), Value::number(1)) == std::string("\xbf\xf0\0\0\0\0\0\0", 8));
  CHECK(part(slot(Base::num), Value::number(-1)) == std::string("\x40\x0f\xff\xff\xff\xff\xff\xff", 8));
  CHECK(part(slot(Base::u32), Value::number(258)) == std::string("\0\0\1\2", 4));
  CHECK(part(slot(Base::slug, 64), Value::span("ab")) == std::string("ab\0", 3));
  CHECK(part(slot(Base::slug, 64), Value::span("ab"), true) == std::string("\x9e\x9d\xff", 3));
}

TEST_CASE("a text with U+0000, one too long, and more than fits are no parts of keys") {
  KeyBuffer key;
  CHECK(append_key(key, slot(Base::text, 50), false, Value::span(std::string_view("a\0b", 3))) == Fault::encoding);
  CHECK(append_key(key, slot(Base::text, 2), false, Value::span("abc")) == Fault::limit);
  CHECK(key.size == 0);
  const std::string long_text(200, 'x');
  for (int i = 0; i < 2; ++i) CHECK(append_key(key, slot(Base::text, 200), false, Value::span(long_text)) == Fault::none);
  CHECK(append_key(key, slot(Base::text, 200), false, Value::span(long_text)) == Fault::limit);
  CHECK(key.size == 402);
  while (append_key(key, slot(Base::boolean), false, Value::truth(true)) == Fault::none) {}
  CHECK(key.size == KeyBuffer::kSize);
  for (const Base base : {Base::num, Base::u32, Base::boolean})
    CHECK(append_key(key, slot(base), false, Value::number(1)) == Fault::limit);
  CHECK_FALSE(key.append("x"));
}

TEST_CASE("the next key is above all that begin with one") {
  const auto next = [](std::string_view bytes) {
    KeyBuffer key;
    key.append(bytes);
    return next_key(key) ? std::string(key.view()) : "none";
  };
  CHECK(next("ab") == "ac");
  CHECK(next("a\xff\xff") == "b");
  CHECK(next("\xff\xff") == "none");
  CHECK(next("") == "none");
}

TEST_CASE("what a u32 cannot be is never looked for") {
  for (const double n : {-1.0, 0.5, 4294967296.0}) CHECK_FALSE(has_key_form(slot(Base::u32), Value::number(n)));
  for (const double n : {0.0, 7.0, 4294967295.0}) CHECK(has_key_form(slot(Base::u32), Value::number(n)));
  CHECK(has_key_form(slot(Base::integer), Value::number(0.5)));
}

}  // namespace sluice::vm
