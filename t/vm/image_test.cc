#include "vm/image.h"

#include <doctest/doctest.h>

#include "t/vm/assembler.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
std::string encoded(const Slot& s, const Value& v) {
  std::string out;
  encode_state(out, s, v);
  return out;
}
}  // namespace

TEST_CASE("states are kept under 02 and their number") {
  CHECK(state_key(0) == std::string("\x02\x00", 2));
  CHECK(state_key(127) == "\x02\x7f");
  CHECK(state_key(255) == "\x02\xff\x01");
}

TEST_CASE("values keep their bytes' shape, and come back") {
  CHECK(encoded(slot(Base::num), Value::number(1)) == std::string("\0\0\0\0\0\0\xf0\x3f", 8));
  CHECK(encoded(slot(Base::integer), Value::number(-1)) == "\x01");
  CHECK(encoded(slot(Base::u32), Value::number(64)) == "\x80\x01");
  CHECK(encoded(slot(Base::boolean), Value::truth(true)) == "\x01");
  CHECK(encoded(slot(Base::text, 9), Value::span("hi")) == "hi");
  for (const double n : {0.0, 1.0, -1.0, 63.0, 64.0, -9007199254740992.0, 9007199254740992.0, 4294967295.0})
    CHECK(decode_state(slot(Base::integer), encoded(slot(Base::integer), Value::number(n)))->num == n);
  CHECK(decode_state(slot(Base::num), encoded(slot(Base::num), Value::number(0.1)))->num == 0.1);
  CHECK(decode_state(slot(Base::boolean), std::string_view("\0", 1))->boolean == false);
  CHECK(decode_state(slot(Base::text, 9), "")->text().empty());
}

TEST_CASE("bytes that are not of the slot are damage, not a value") {
  CHECK(!decode_state(slot(Base::num), "1234567"));
  CHECK(!decode_state(slot(Base::num), std::string_view("\0\0\0\0\0\0\xf0\x7f", 8)));
  CHECK(!decode_state(slot(Base::num), std::string_view("\0\0\0\0\0\0\0\x80", 8)));
  CHECK(!decode_state(slot(Base::integer), ""));
  CHECK(!decode_state(slot(Base::integer), "\x80"));
  CHECK(!decode_state(slot(Base::integer), std::string_view("\x80\x00", 2)));
  CHECK(!decode_state(slot(Base::integer), "\x01\x01"));
  CHECK(!decode_state(slot(Base::integer), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  CHECK(!decode_state(slot(Base::u32), "\x01"));
  CHECK(!decode_state(slot(Base::boolean), "\x02"));
}

TEST_CASE("the clock comes back, or is damaged") {
  const auto clock = decode_clock(encode_clock({7, 1700000000000}));
  REQUIRE(clock);
  CHECK(clock->seq == 7);
  CHECK(clock->now_ms == 1700000000000);
  CHECK(!decode_clock("short"));
  CHECK(!decode_clock(encode_clock({}) + "x"));
}
