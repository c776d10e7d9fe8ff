#include "vm/row_codec.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "vm/varint.h"

namespace sluice::vm {
namespace {
Column column(std::string name, Base base, bool optional = false) {
  Column out;
  out.name = std::move(name);
  out.slot.base = base;
  out.slot.optional = optional;
  out.slot.max = 100;
  return out;
}
Table sample() {
  Table table;
  table.columns = {column("n", Base::num), column("i", Base::integer), column("b", Base::boolean, true),
                   column("t", Base::text, true), column("u", Base::u32, true)};
  table.key = {0};
  return table;
}
Layout layout_of(const Table& table) {
  Module module;
  module.tables.push_back(table);
  return first_layout(module);
}
std::string bytes(const RowCodec& codec, const std::vector<Value>& row) {
  std::string out(codec.encoded_size(row.data()), '\x7e');
  codec.encode(row.data(), out.data());
  return out;
}
std::string text(const Value& value) {
  switch (value.type) {
    case Type::none: return "none";
    case Type::num: return std::to_string(value.num);
    case Type::boolean: return value.boolean ? "true" : "false";
    default: return "\"" + std::string(value.text()) + "\"";
  }
}
std::string read(const RowCodec& codec, std::string_view record, std::size_t columns) {
  std::vector<Value> row(columns);
  if (!codec.decode(record, row.data())) return "no row";
  std::string out;
  for (std::uint32_t c = 0; c < columns; ++c) {
    Value one;
    CHECK(codec.decode_column(record, c, one));
    CHECK(text(one) == text(row[c]));
    out += (c == 0 ? "" : " ") + text(row[c]);
  }
  return out;
}
}  // namespace

TEST_CASE("a row as bytes: its shape, a bit per column and two for a bool, then what there is") {
  const Table table = sample();
  const Layout layout = layout_of(table);
  const RowCodec codec(table, layout.tables[0]);
  const std::string full = bytes(codec, {Value::number(1), Value::number(-2), Value::truth(true), Value::span("ab"), Value::number(300)});
  CHECK(full == std::string("\0\x3f" "\0\0\0\0\0\0\xf0\x3f" "\x03" "\x02" "ab" "\xd8\x04", 16));
  CHECK(read(codec, full, 5) == "1.000000 -2.000000 true \"ab\" 300.000000");
  const std::string little = bytes(codec, {Value::number(0.5), Value::number(0), Value(), Value(), Value()});
  CHECK(little == std::string("\0\x03" "\0\0\0\0\0\0\xe0\x3f" "\0", 11));
  CHECK(read(codec, little, 5) == "0.500000 0.000000 none none none");
  CHECK(read(codec, bytes(codec, {Value::number(0), Value::number(-9007199254740992.0), Value::truth(false), Value::span(""), Value()}), 5) ==
        "0.000000 -9007199254740992.000000 false \"\" none");
}

TEST_CASE("bytes that are no row are refused, wherever they were cut") {
  const Table table = sample();
  const Layout layout = layout_of(table);
  const RowCodec codec(table, layout.tables[0]);
  const std::string full = bytes(codec, {Value::number(1), Value::number(-2), Value::truth(true), Value::span("ab"), Value::number(300)});
  for (std::size_t size = 0; size < full.size(); ++size) CHECK(read(codec, full.substr(0, size), 5) == "no row");
  CHECK(read(codec, full + "x", 5) == "no row");
  CHECK(read(codec, "\x05" + full.substr(1), 5) == "no row");        // a shape that there is not
}

TEST_CASE("numbers that no row is ever given are damage, and the largest ones are not") {
  const Table table = sample();
  const Layout layout = layout_of(table);
  const RowCodec codec(table, layout.tables[0]);
  const auto record = [](double n, std::int64_t i) {
    std::string out("\0\x03", 2);
    char bytes[kVarintMax];
    std::memcpy(bytes, &n, sizeof n);
    out.append(bytes, sizeof n);
    return out.append(bytes, put_varint(bytes, zigzag(i)));
  };
  constexpr std::int64_t most = std::int64_t{1} << 53;
  CHECK(read(codec, record(1e308, most), 5).find("9007199254740992.000000 none none none") != std::string::npos);
  CHECK(read(codec, record(0, -most), 5) == "0.000000 -9007199254740992.000000 none none none");
  for (const std::int64_t i : {most + 1, -most - 1, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    CHECK(read(codec, record(0, i), 5) == "no row");
    Value one;
    CHECK_FALSE(codec.decode_column(record(0, i), 1, one));
  }
  for (const double n : {-0.0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(read(codec, record(n, 0), 5) == "no row");
    Value one;
    CHECK_FALSE(codec.decode_column(record(n, 0), 0, one));
  }
}

TEST_CASE("rows of older shapes read what columns had when they were added, and lose what is gone") {
  // The table had n, i and an old text; then i became a num, the text went, and b, t and u came.
  Table table = sample();
  table.columns[1] = column("i", Base::num);
  Layout layout;
  layout.texts.emplace_back("before");
  TableLayout one;
  one.columns = {0, 1, 3, 4, 5};
  one.before = {std::nullopt, std::nullopt, Value::truth(true), Value::span(layout.texts.back()), std::nullopt};
  Shape old;
  old.columns = {{0, Form::num}, {1, Form::whole}, {2, Form::text}};
  Shape now;
  now.columns = {{0, Form::num}, {1, Form::num}, {3, Form::boolean}, {4, Form::text}, {5, Form::whole}};
  one.shapes = {old, now};
  one.shape = 1;

  Table before;
  before.columns = {column("n", Base::num), column("i", Base::integer), column("old", Base::text)};
  before.key = {0};
  TableLayout then;
  then.columns = {0, 1, 2};
  then.before.resize(3);
  then.shapes = {old};
  const RowCodec writer(before, then), codec(table, one);
  const std::string record = bytes(writer, {Value::number(1), Value::number(-7), Value::span("gone")});
  CHECK(read(codec, record, 5) == "1.000000 -7.000000 true \"before\" none");
  std::vector<Value> row(5);
  REQUIRE(codec.decode(record, row.data()));
  const std::string again = bytes(codec, row);
  CHECK(again[0] == '\x01');
  CHECK(read(codec, again, 5) == "1.000000 -7.000000 true \"before\" none");
}

}  // namespace sluice::vm
