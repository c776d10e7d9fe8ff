// Why small modules are refused: what tests of the loader ask.
#pragma once
#include "t/vm/assembler.h"

namespace sluice::vm {

// Why the code of `on start` is refused, of a module with a state `n`, an optional state `t` and a constant of each kind.
inline std::string start(std::string_view registers, std::vector<Word> code, bool writes = true) {
  Assembler a;
  a.state("n", slot(Base::num), Value::number(0));
  a.state("t", maybe(slot(Base::text, 9)));
  a.text("x");
  a.number(1);
  a.start(registers, std::move(code), writes);
  return a.refusal();
}

// Why a module is refused that `change` makes of an empty one.
template <class Change>
std::string declared(Change change) {
  Assembler a;
  change(a);
  return a.refusal();
}

// A shop, as tables go: a key, a `?` column, a default, an index that is ranked and one that is sparse and unique, sums
// and counts; then groups with a bound, an auto column; then a table that keeps a few rows.
struct Shop : Assembler {
  static constexpr std::uint8_t sku = 0, left = 1, note = 2, price = 3;           // of item
  static constexpr std::uint8_t user = 0, line = 1, what = 2, quantity = 3;       // of cart
  unsigned item, cart, log;
  unsigned new_item, put_item, change_item, new_line, new_entry;                  // row shapes
  unsigned all, dear, lines;                                                      // scans
  Shop() {
    item = table("item", {{"sku", slot(Base::slug)},
                          {"left", ranged(Base::integer, Range::in, 0, 1000)},
                          {"note", maybe(slot(Base::text, 20))},
                          {"price", slot(Base::num), false, Value::number(1)}}, {sku});
    Table& items = module.tables[item];
    items.size = Size::max;
    items.rows = 100;
    items.indexes = {{"by_price", {{price, true}}, false, true}, {"by_note", {{note}}, true}};
    items.totals = {{"worth", true, price, {}}, {"stock", true, left, {}}, {"alike", false, 0, {left}}};
    cart = table("cart", {{"user", slot(Base::slug)},
                          {"line", slot(Base::integer), true},
                          {"what", slot(Base::slug)},
                          {"quantity", slot(Base::u32), false, Value::number(1)}}, {user, line});
    Table& carts = module.tables[cart];
    carts.group_size = Size::max;
    carts.group_rows = 50;
    carts.per = 1;
    carts.totals = {{"wanted", true, quantity, {what}}};
    log = table("log", {{"id", slot(Base::integer), true}, {"said", slot(Base::text, 100)}}, {0});
    module.tables[log].size = Size::keep;
    module.tables[log].rows = 3;
    new_item = shape(item, Writing::insert, {sku, left, note});
    put_item = shape(item, Writing::put, {sku, left});
    change_item = shape(item, Writing::update, {note, price});
    new_line = shape(cart, Writing::insert, {user, what});
    new_entry = shape(log, Writing::insert, {1});
    all = scan({0, 0, 0, Bound::none, Bound::none, false, true, 100});
    dear = scan({0, 1, 0, Bound::including, Bound::excluding, false, false, 10});
    lines = scan({1, 0, 1, Bound::none, Bound::none, true, false, 50});
    text("x");
  }
  // Why `on start` with this code is refused.
  static std::string refusal_of(std::string_view registers, std::vector<Word> code, bool writes = true) {
    Shop shop;
    shop.start(registers, std::move(code), writes);
    return shop.refusal();
  }
};

}  // namespace sluice::vm
