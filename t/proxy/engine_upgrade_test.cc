// Stores whose module changes: before they serve, and between two bursts while they do.
#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "t/proxy/engine_fixture.h"
#include "proxy/engine/upgrade_records.h"
#include "vm/catalog.h"
#include "vm/image.h"
#include "vm/wire.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

constexpr const char* kFirst = R"(module shop 1
state hits: int
state motto: text? max 40
table item max 1000 { sku: slug, left: int in 0..1000, note: text? max 40, key sku }
message put { sku: slug, left: u32, note: text max 40 }
message hit { }
on put { put item { sku, left, note } }
on hit { hits += 1  motto = "hit" }
view hits: num = hits
view rows = for i in item { i.sku, i.left, i.note }
)";

// Only what is free: a state that is renamed and kept otherwise, new ones, a new column, a renamed table.
constexpr const char* kFree = R"(module shop 2
state last: text? max 9 = "none"
state bonus: int = 5
state score: num was hits
state motto: text? max 80
table good was item max 2000 { sku: slug, color: text max 9 = "red", left: int in 0..1000, note: text? max 40, key sku }
message put { sku: slug, left: u32, note: text max 40 }
message hit { }
on put { put good { sku, left, note, color: "blue" } }
on hit { score += 0.5 }
view hits: num = score + bonus
view last: text = last
view rows = for i in good { i.sku, i.left, i.color }
)";

constexpr const char* kBuild = R"(module shop 2
state hits: int
state motto: text? max 40
table item max 1000 { sku: slug, left: int in 0..1000, note: text? max 40, key sku, index by_left left desc, total lefts sum(left) }
message put { sku: slug, left: u32, note: text max 40 }
message hit { }
on put { put item { sku, left, note } }
on hit { hits += 1 }
view hits: num = hits
view lefts: num = total(item.lefts)
view rows = for i in item by by_left { i.sku, i.left }
)";

constexpr const char* kDrop = R"(module shop 2
state hits: int
drop state motto
drop table item
view hits: num = hits
message hit { }
on hit { hits += 1 }
)";

struct Shop : Bench {
  Shop() : Bench({{"shop", kFirst}}) {
    REQUIRE(load() == "");
    for (const char* sku : {"a", "b", "c"}) put(sku, sku[0] - 'a');
    REQUIRE(post("hit").status == 200);
  }
  void put(const char* sku, int left) {
    const std::string number = std::to_string(left);
    REQUIRE(post("put", {{"sku", sku}, {"left", number}}, "n").status == 200);
  }
  std::string load_text(std::string_view text) {
    folder.write("shop.aup", text);
    return load();
  }
  // As after an end of the process.
  std::string restart(std::string_view text) {
    stop();
    control = make_engine(world.options());
    engine = control->worker(0, results);
    return load_text(text);
  }
  void stop() {
    set.reset();
    last.reset();
    engine.reset();
    control->stop();
    control.reset();
  }
};

}  // namespace

TEST_CASE("free changes are taken between two bursts, and are there after a restart") {
  Shop s;
  REQUIRE(s.load_text(kFree) == "");
  for (int i = 0; i < 3; ++i) {
    CAPTURE(i);
    for (const bool here : {true, false}) {
      CHECK(s.view("hits", here) == "6");
      CHECK(s.view("last", here) == "none");
      CHECK(s.view("rows", here) ==
            R"({"rows":3,"from":0,"items":[{"sku":"a","left":0,"color":"red"},{"sku":"b","left":1,"color":"red"},{"sku":"c","left":2,"color":"red"}]})");
    }
    if (i == 0) REQUIRE(s.restart(kFirst) != "");
    if (i == 1) REQUIRE(s.restart(kFree) == "");
    if (i == 0) REQUIRE(s.load_text(kFree) == "");
  }
  s.put("b", 7);
  REQUIRE(s.post("hit").status == 200);
  CHECK(s.view("hits") == "6.5");
  CHECK(s.view("rows").find(R"({"sku":"b","left":7,"color":"blue"})") != std::string::npos);
  REQUIRE(s.restart(kFree) == "");
  CHECK(s.view("hits") == "6.5");
  CHECK(s.view("rows").find(R"({"sku":"b","left":7,"color":"blue"})") != std::string::npos);
}

TEST_CASE("what a swap brings is stored at once, and workers leave its views to the owner until then") {
  Shop s;
  s.world.before_commit = EIO;
  const int before = s.world.commits;
  REQUIRE(s.load_text(kFree) == "");
  // The commit fails; nothing of the store is lost, and nothing is evaluated over what is not there yet.
  s.world.commits.wait(before);
  for (int i = 0; i < 3; ++i) {
    CHECK(s.view("hits", true) == "6");
    CHECK(!s.evaluated);
    CHECK(s.view("last", true) == "none");
  }
  CHECK(s.post("hit").status == 500);
  CHECK(s.view("hits", true) == "6");
  s.world.before_commit = 0;
  s.world.wall_ms += 10'000;
  REQUIRE(s.post("hit").status == 200);
  CHECK(s.view("hits", true) == "6.5");
  CHECK(s.evaluated);
  REQUIRE(s.restart(kFree) == "");
  CHECK(s.view("hits") == "6.5");
}

TEST_CASE("two swaps before anything is stored lead to the last module's shape") {
  Shop s;
  s.world.before_commit = EIO;
  REQUIRE(s.load_text(kFree) == "");
  std::string third(kFree);
  third.replace(third.find("shop 2"), 6, "shop 3");
  third.replace(third.find("state bonus: int = 5"), 20, "state extra: num was bonus\nstate more: int = 100");
  third.replace(third.find("score + bonus"), 13, "score + extra + more");
  REQUIRE(s.load_text(third) == "");
  CHECK(s.view("hits", true) == "106");
  s.world.before_commit = 0;
  s.world.wall_ms += 10'000;
  REQUIRE(s.post("hit").status == 200);
  CHECK(s.view("hits", true) == "106.5");
  REQUIRE(s.restart(third) == "");
  CHECK(s.view("hits", true) == "106.5");
}

TEST_CASE("a second swap that brings nothing itself waits for what the first one brought") {
  Shop s;
  s.world.before_commit = EIO;
  REQUIRE(s.load_text(kFree) == "");
  std::string third(kFree);
  third.replace(third.find("score + bonus"), 13, "score + bonus + 10");
  REQUIRE(s.load_text(third) == "");
  CHECK(s.view("hits", true) == "16");
  CHECK(!s.evaluated);
  CHECK(s.view("last", true) == "none");
  s.world.before_commit = 0;
  s.world.wall_ms += 10'000;
  // No event changes anything: what came with the modules is stored all the same.
  CHECK(s.view("last", false) == "none");
  CHECK(s.view("hits", true) == "16");
  CHECK(s.evaluated);
  CHECK(s.view("last", true) == "none");
}

TEST_CASE("builds want a restart; the old module goes on, and after one the rows are in their index and total") {
  Shop s;
  CHECK(s.load_text(kBuild) ==
        "store `shop`: build item index by_left: built from the rows; build item total lefts: counted from the rows; that needs a restart");
  CHECK(s.view("hits") == "1");
  s.put("d", 9);
  REQUIRE(s.restart(kBuild) == "");
  CHECK(s.view("lefts") == "12");
  CHECK(s.view("rows") ==
        R"({"rows":4,"from":0,"items":[{"sku":"d","left":9},{"sku":"c","left":2},{"sku":"b","left":1},{"sku":"a","left":0}]})");
  s.put("d", 0);
  CHECK(s.view("lefts") == "3");
  CHECK(s.restart(kFirst) ==
        "store `shop`: the store has version 2 of `shop`, and this is version 1; going back works only where the data keeps its shape");
}

TEST_CASE("what is dropped is destroyed with leave alone: the spec's, or the engine's") {
  for (const bool by_spec : {true, false}) {
    Shop s;
    CHECK(s.load_text(kDrop) ==
          "store `shop`: destroy state motto: its value is lost; destroy table item: its rows are lost; that needs a restart");
    CHECK(s.restart(kDrop) ==
          "store `shop`: state motto: its value is lost; table item: its rows are lost; start with --allow-destroy to agree");
    CHECK(s.load_text(kFirst) == "");
    CHECK(s.view("rows").find(R"("rows":3)") != std::string::npos);
    s.stop();
    EngineOptions options = s.world.options();
    if (by_spec) s.specs[0].allow_destroy = true;
    else options.allow_destroy = true;
    s.control = make_engine(options);
    s.engine = s.control->worker(0, s.results);
    REQUIRE(s.load_text(kDrop) == "");
    CHECK(s.view("hits") == "1");
  }
}

TEST_CASE("a refused store leaves all others of its config as they were") {
  Shop s;
  s.stop();
  StoreSpec other;
  other.name = "other";
  other.module_path = s.folder.write("other.aup", "module other 1\nstate n: int\nview n: num = n\n");
  other.path = s.folder / "other.db";
  StoreSpec fresh = other;
  fresh.name = "fresh";
  fresh.path = s.folder / "fresh.db";
  s.specs.push_back(other);
  s.control = make_engine(s.world.options());
  s.engine = s.control->worker(0, s.results);
  REQUIRE(s.load() == "");
  s.stop();
  // The first could be built, the second is refused, the third is new.
  s.specs.push_back(fresh);
  s.folder.write("other.aup", "module another 1\nstate n: int\nview n: num = n\n");
  s.control = make_engine(s.world.options());
  s.engine = s.control->worker(0, s.results);
  CHECK(s.load_text(kBuild) == "store `other`: the store is of the module `other`, not `another`");
  CHECK(!std::filesystem::exists(fresh.path));
  s.folder.write("other.aup", "module other 1\nstate n: int\nview n: num = n\n");
  CHECK(s.load_text(kFirst) == "");
  Call c = Bench::call(Verb::view, "hits");
  c.store = s.store("shop");
  s.ask(std::move(c));
  CHECK(s.text() == "1");
  CHECK(std::filesystem::exists(fresh.path));
}

TEST_CASE("an upgrade that cannot be saved is told, changes nothing, and is done by the next start") {
  Shop s;
  s.stop();
  s.world.before_commit = ENOSPC;
  s.control = make_engine(s.world.options());
  s.engine = s.control->worker(0, s.results);
  CHECK(s.load_text(kBuild).starts_with("store `shop`: its upgrade cannot be saved (full): "));
  s.world.before_commit = 0;
  CHECK(s.load_text(kBuild) == "");
  CHECK(s.view("lefts") == "3");
}

TEST_CASE("a row that does not fit refuses the start with its name, and the old module serves on") {
  Shop s;
  std::string narrow(kFirst);
  narrow.replace(narrow.find("shop 1"), 6, "shop 2");
  narrow.replace(narrow.find("in 0..1000"), 10, "in 0..1");
  CHECK(s.restart(narrow) == "store `shop`: item[\"c\"].left is 2, which does not fit int in 0..1");
  CHECK(s.load_text(kFirst) == "");
  CHECK(s.view("hits") == "1");
  s.put("c", 1);
  CHECK(s.restart(narrow) == "");
}

TEST_CASE("a store of the version before there were tables opens, and is upgraded") {
  Shop s;
  s.stop();
  const std::string path = s.folder / "old.db";
  {
    auto store = store::Store::open(path, s.world.options().store);
    REQUIRE(store);
    UpgradeRecords records(**store);
    REQUIRE(records.begin());
    std::string catalog;
    vm::Writer w(catalog);
    w.u16(1);
    w.u32(1);
    w.u64(7);
    w.u64(8);
    w.text("old");
    w.text("text");
    w.number(500);
    w.count(2);
    for (const char* text : {"hits", "int in 0..100", "motto", "text? max 40"}) w.text(text);
    records.put(vm::kCatalogKey, catalog);
    records.put(vm::state_key(0), "\x54");
    records.put(vm::state_key(1), "be kind");
    REQUIRE(records.commit());
  }
  s.specs[0].name = "old";
  s.specs[0].path = path;
  s.specs[0].module_path = s.folder.write("old.aup",
      "module old 2\nstate motto: text? max 40\nstate score: num was hits\ndocuments text max 1000\n"
      "message show keyed { }\nmessage edit keyed { body: text max 1000 }\non show { reply doc }\non edit { doc = body }\n"
      "table t { k: slug, key k }\nview score: num = score\nview motto: text = motto\n");
  s.control = make_engine(s.world.options());
  s.engine = s.control->worker(0, s.results);
  REQUIRE(s.load() == "");
  CHECK(s.view("score") == "42");
  CHECK(s.view("motto") == "be kind");
}
