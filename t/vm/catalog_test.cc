#include "vm/catalog.h"

#include <doctest/doctest.h>

#include "t/vm/schema.h"
#include "vm/plan.h"
#include "vm/wire.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
// As the version before tables wrote them.
std::string first_format(std::uint32_t version, std::string_view documents, std::uint32_t max,
                         const std::vector<std::pair<std::string, std::string>>& states) {
  std::string out;
  Writer w(out);
  w.u16(1);
  w.u32(version);
  w.u64(0x1111);
  w.u64(0x2222);
  w.text("shop");
  w.text(documents);
  w.number(max);
  w.count(states.size());
  for (const auto& [name, slot] : states) {
    w.text(name);
    w.text(slot);
  }
  return out;
}

// A catalog with something in every place: two shapes, a default of its day, erases, an upgrade.
Catalog full() {
  Schema s = shop();
  const Catalog first = first_catalog(*s.module());
  s.version = 2;
  s.documents = {DocumentKind::json, 900};
  s.add("item", "color", of(Base::text, 9), Value::span("red"));
  s.add("item", "sold", of(Base::boolean), Value::truth(true));
  s.add("item", "grade", between(Base::num, -1.5, 2.5, Range::clamp), Value::number(0.5));
  s.index("item", "by_color", {"color", "left desc"}, true);
  s.total("item", "by_grade", "", {"color", "sold"});
  s.table("cart").per = 2;
  Catalog next = plan_upgrade(first, *s.module()).next;
  next.upgrade = {encode(next), 1, "\x10\x01key"};
  return next;
}
}  // namespace

TEST_CASE("a catalog comes back from its bytes") {
  const Catalog made = full();
  REQUIRE(made.erases.size() == 1);
  const std::string bytes = encode(made);
  const auto read = decode_catalog(bytes);
  REQUIRE_MESSAGE(read, (read ? std::string() : read.error()));
  CHECK(read->name == "shop");
  CHECK(read->version == 2);
  CHECK(read->code == 1);
  CHECK(read->documents.kind == DocumentKind::json);
  CHECK(read->documents.max == 900);
  CHECK(read->states == made.states);
  CHECK(read->tables == made.tables);
  CHECK(read->next_state == 2);
  CHECK(read->next_table == 2);
  CHECK(read->erases == made.erases);
  REQUIRE(read->upgrade);
  CHECK(*read->upgrade == *made.upgrade);
  CHECK(encode(*read) == bytes);
  CHECK(read->keeps_as(made));
}

TEST_CASE("a catalog that is cut short, longer or of a later format is refused in one sentence") {
  const std::string bytes = encode(full());
  for (std::size_t n = 0; n < bytes.size(); ++n) CHECK(!decode_catalog(bytes.substr(0, n)));
  CHECK(decode_catalog(bytes.substr(0, 40)).error() == "its catalog is damaged");
  CHECK(decode_catalog(bytes + "x").error() == "its catalog is damaged");
  CHECK(decode_catalog("").error() == "its catalog is damaged");
  std::string later = bytes;
  later[0] = 3;
  CHECK(decode_catalog(later).error() ==
        "its catalog has format 3, and this version reads up to 2; it was written by a later one");
  later[0] = 0;
  CHECK(decode_catalog(later).error() == "its catalog is damaged");
}

TEST_CASE("a catalog with any byte changed is refused, or is one that can be used") {
  const std::string bytes = encode(full());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int bit : {1, 2, 8, 64, 128}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ bit);
      const auto read = decode_catalog(changed);
      if (!read) continue;
      const Layout layout = layout_of(*read);
      const auto module = module_of(*read);
      REQUIRE(layout.tables.size() == module->tables.size());
      for (std::size_t t = 0; t < layout.tables.size(); ++t) {
        CHECK(layout.tables[t].shape < layout.tables[t].shapes.size());
        for (const std::uint8_t c : module->tables[t].key) CHECK(c < module->tables[t].columns.size());
      }
      CHECK(decode_catalog(encode(*read)));
    }
}

TEST_CASE("a store of before there were tables is read: states keep their places as numbers") {
  const auto read = decode_catalog(first_format(3, "text", 1000,
                                                {{"hits", "int in 0..100"}, {"motto", "text? max 40"}, {"ratio", "num clamp -1.5..1e+21"},
                                                 {"tag", "slug?"}, {"on", "bool"}, {"n", "u32"}}));
  REQUIRE_MESSAGE(read, (read ? std::string() : read.error()));
  CHECK(read->version == 3);
  CHECK(read->code == 0x2222);
  CHECK(read->documents.kind == DocumentKind::text);
  CHECK(read->documents.max == 1000);
  CHECK(read->next_state == 6);
  CHECK(read->next_table == 0);
  REQUIRE(read->states.size() == 6);
  CHECK(read->states[0] == KeptState{0, "hits", between(Base::integer, 0, 100)});
  CHECK(read->states[1] == KeptState{1, "motto", optionally(of(Base::text, 40))});
  CHECK(read->states[2] == KeptState{2, "ratio", between(Base::num, -1.5, 1e21, Range::clamp)});
  CHECK(read->states[3] == KeptState{3, "tag", optionally(of(Base::slug))});
  CHECK(read->states[4] == KeptState{4, "on", of(Base::boolean)});
  CHECK(read->states[5] == KeptState{5, "n", of(Base::u32)});
  CHECK(decode_catalog(encode(*read))->keeps_as(*read));

  CHECK(!decode_catalog(first_format(1, "paper", 0, {})));
  for (const char* slot : {"", "integer", "int in 0", "int in 0..", "int in 0..x", "text? max", "text max x", "slug max 4 ", "bool!"})
    CHECK(!decode_catalog(first_format(1, "", 0, {{"hits", slot}})));
}

TEST_CASE("a new store's layout is the first one") {
  const auto module = shop().module();
  const Layout layout = layout_of(first_catalog(*module)), first = first_layout(*module);
  CHECK(layout.states == first.states);
  REQUIRE(layout.tables.size() == first.tables.size());
  for (std::size_t i = 0; i < layout.tables.size(); ++i) {
    CHECK(layout.tables[i].number == first.tables[i].number);
    CHECK(layout.tables[i].columns == first.tables[i].columns);
    CHECK(layout.tables[i].shapes == first.tables[i].shapes);
    CHECK(layout.tables[i].shape == first.tables[i].shape);
    CHECK(layout.tables[i].indexes == first.tables[i].indexes);
    CHECK(layout.tables[i].totals == first.tables[i].totals);
  }
}

TEST_CASE("a catalog declares what the module declared") {
  const auto module = shop().module(), again = module_of(first_catalog(*module));
  REQUIRE(again->tables.size() == 2);
  CHECK(again->name == "shop");
  CHECK(again->states[0].slot == module->states[0].slot);
  const Table& item = again->tables[0];
  CHECK(item.name == "item");
  CHECK(item.size == Size::max);
  CHECK(item.rows == 1000);
  CHECK(item.key == module->tables[0].key);
  CHECK(item.columns[3].slot == module->tables[0].columns[3].slot);
  CHECK(item.indexes[0].parts == module->tables[0].indexes[0].parts);
  CHECK(item.totals[0].column == 2);
  CHECK(again->tables[1].per == 1);
  CHECK(again->tables[1].group_rows == 50);
  CHECK(first_catalog(*again).shape_hash() == first_catalog(*module).shape_hash());
}

TEST_CASE("the shape's hash is the same whatever the history, and another one for another shape") {
  Schema s = shop();
  const Catalog first = first_catalog(*s.module());
  s.version = 2;
  s.table("item").drops = {"note"};
  s.remove("item", "note");
  s.add("item", "extra", optionally(of(Base::num)));
  const auto module = s.module();
  const Catalog grown = plan_upgrade(first, *module).next, fresh = first_catalog(*module);
  CHECK(grown.tables[0].columns[3].number == 4);
  CHECK(fresh.tables[0].columns[3].number == 3);
  CHECK(grown.shape_hash() == fresh.shape_hash());
  CHECK(!grown.keeps_as(fresh));
  CHECK(first.shape_hash() != grown.shape_hash());
}
