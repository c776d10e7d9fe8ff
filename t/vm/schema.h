// Modules that declare things and do nothing, for tests of catalogs and upgrades.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/module.h"

namespace sluice::vm {

inline Slot of(Base base, std::uint32_t max = 0) {
  Slot s;
  s.base = base;
  s.max = base == Base::slug ? kSlugMax : max;
  return s;
}
inline Slot between(Base base, double low, double high, Range range = Range::in) {
  Slot s = of(base);
  s.range = range;
  s.low = low;
  s.high = high;
  return s;
}
inline Slot optionally(Slot s) {
  s.optional = true;
  return s;
}

// What tests change of a module before they plan it. Copies freely, as a Module does not.
struct Schema {
  std::string name = "shop";
  std::uint32_t version = 1;
  std::uint64_t code = 1;
  Documents documents;
  std::vector<State> states;
  std::vector<Table> tables;
  std::vector<std::string> dropped_states, dropped_tables;

  Table& table(std::string_view called) {
    const auto at = std::find_if(tables.begin(), tables.end(), [&](const Table& t) { return t.name == called; });
    REQUIRE(at != tables.end());
    return *at;
  }
  std::uint8_t place(std::string_view in, std::string_view column) {
    const Table& t = table(in);
    const auto at = std::find_if(t.columns.begin(), t.columns.end(), [&](const Column& c) { return c.name == column; });
    REQUIRE(at != t.columns.end());
    return static_cast<std::uint8_t>(at - t.columns.begin());
  }
  Column& column(std::string_view in, std::string_view called) { return table(in).columns[place(in, called)]; }
  Column& add(std::string_view in, std::string called, Slot slot, std::optional<Value> first = std::nullopt) {
    Column c;
    c.name = std::move(called);
    c.slot = slot;
    c.first = first;
    return table(in).columns.emplace_back(std::move(c));
  }
  Index& index(std::string_view in, std::string called, const std::vector<std::string>& columns, bool unique = false) {
    std::vector<KeyPart> parts;
    for (const std::string& c : columns) {
      const bool descending = c.ends_with(" desc");
      parts.push_back({place(in, descending ? c.substr(0, c.size() - 5) : c), descending});
    }
    Index& i = table(in).indexes.emplace_back();
    i.name = std::move(called);
    i.parts = std::move(parts);
    i.unique = unique;
    return i;
  }
  // `sum` empty: a count.
  Total& total(std::string_view in, std::string called, std::string_view sum, const std::vector<std::string>& by = {}) {
    std::vector<std::uint8_t> groups;
    for (const std::string& c : by) groups.push_back(place(in, c));
    const std::uint8_t column = sum.empty() ? std::uint8_t{0} : place(in, sum);
    Total& t = table(in).totals.emplace_back();
    t.name = std::move(called);
    t.sum = !sum.empty();
    t.column = column;
    t.by = std::move(groups);
    return t;
  }
  State& state(std::string called, Slot slot, std::optional<Value> first = std::nullopt) {
    State s;
    s.name = std::move(called);
    s.slot = slot;
    s.first = first;
    return states.emplace_back(std::move(s));
  }
  // Takes a column away, and leaves the numbers of those behind it right.
  void remove(std::string_view in, std::string_view column) {
    const std::uint8_t gone = place(in, column);
    Table& t = table(in);
    t.columns.erase(t.columns.begin() + gone);
    const auto move = [gone](std::uint8_t& c) { if (c > gone) --c; };
    for (std::uint8_t& c : t.key) move(c);
    for (Index& i : t.indexes)
      for (KeyPart& p : i.parts) move(p.column);
    for (Total& total : t.totals) {
      move(total.column);
      for (std::uint8_t& c : total.by) move(c);
    }
  }

  std::unique_ptr<const Module> module() const {
    auto m = std::make_unique<Module>();
    m->name = name;
    m->version = version;
    m->code_hash = code;
    m->documents = documents;
    m->states = states;
    m->tables = tables;
    m->dropped_states = dropped_states;
    m->dropped_tables = dropped_tables;
    const auto keep = [&m](std::optional<Value>& value) {
      if (value && value->type == Type::text) value = Value::span(m->text_pool.emplace_back(value->text()));
    };
    for (State& s : m->states) keep(s.first);
    for (Table& t : m->tables)
      for (Column& c : t.columns) keep(c.first);
    return m;
  }
};

// module shop 1: states hits and motto; item (sku; left, price), cart (user, sku; qty) max 50 per user.
inline Schema shop() {
  Schema s;
  s.state("hits", between(Base::integer, 0, 100), Value::number(0));
  s.state("motto", optionally(of(Base::text, 40)));
  Table item;
  item.name = "item";
  item.size = Size::max;
  item.rows = 1000;
  s.tables.push_back(item);
  s.add("item", "sku", of(Base::slug));
  s.add("item", "left", between(Base::integer, 0, 1000));
  s.add("item", "price", of(Base::num));
  s.add("item", "note", optionally(of(Base::text, 100)));
  s.table("item").key = {0};
  s.index("item", "by_left", {"left desc"});
  s.total("item", "worth", "price");
  Table cart;
  cart.name = "cart";
  cart.group_size = Size::max;
  cart.group_rows = 50;
  cart.per = 1;
  s.tables.push_back(cart);
  s.add("cart", "user", of(Base::slug));
  s.add("cart", "sku", of(Base::slug));
  s.add("cart", "qty", of(Base::u32), Value::number(1));
  s.table("cart").key = {0, 1};
  return s;
}

}  // namespace sluice::vm
