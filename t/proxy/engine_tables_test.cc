// Tables over real stores: rows written in bursts, read at owners and workers, paged, undone, and there after a restart.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "t/proxy/engine_fixture.h"
#include "t/proxy/engine_modules.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

const Answer& page(Bench& b, std::string_view name, std::vector<Parameter> query, bool here = true) {
  Call c = Bench::call(Verb::view, name);
  c.query = query;
  return b.ask(std::move(c), here);
}

std::string page_text(Bench& b, std::string_view name, std::vector<Parameter> query, bool here = true) {
  page(b, name, std::move(query), here);
  return b.text();
}

void add(Bench& b, std::string_view sku, std::string_view left) { REQUIRE(b.post("stock", {{"sku", sku}, {"left", left}}).status == 200); }

}  // namespace

TEST_CASE("rows are written, read where the request is and at the owner, and are there after a restart") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  add(b, "tea", "5");
  add(b, "mug", "1");
  const std::string all = R"({"rows":2,"from":0,"items":[{"sku":"mug","left":1},{"sku":"tea","left":5}]})";
  CHECK(page_text(b, "items", {}) == all);
  CHECK(b.evaluated);
  CHECK(b.last->answer.type == ContentType::json);
  CHECK(page_text(b, "items", {}, false) == all);
  CHECK(b.post("buy", {{"sku", "tea"}, {"n", "2"}}).status == 200);
  CHECK(b.text() == R"({"sku":"tea","left":3})");

  b.set.reset();
  b.engine.reset();
  b.control->stop();
  b.control = make_engine(b.world.options());
  b.engine = b.control->worker(0, b.results);
  REQUIRE(b.load().empty());
  CHECK(page_text(b, "items", {}) == R"({"rows":2,"from":0,"items":[{"sku":"mug","left":1},{"sku":"tea","left":3}]})");
  CHECK(page_text(b, "scarce", {}) == R"({"rows":1,"from":0,"items":[{"sku":"mug","left":1}]})");
}

TEST_CASE("a page is asked for by from and count, whole numbers, of table views alone") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  for (const char* sku : {"a", "b", "c", "d"}) add(b, sku, "7");
  CHECK(page_text(b, "items", {{"from", "1"}, {"count", "2"}}) ==
        R"({"rows":4,"from":1,"items":[{"sku":"b","left":7},{"sku":"c","left":7}]})");
  CHECK(page_text(b, "items", {{"from", "9"}}) == R"({"rows":4,"from":4,"items":[]})");
  CHECK(page_text(b, "items", {{"count", "0"}}) == R"({"rows":4,"from":0,"items":[]})");
  CHECK(page_text(b, "items", {{"from", "99999999999999999999999"}}) == R"({"rows":4,"from":4,"items":[]})");
  CHECK_FALSE(b.evaluated);   // so far away, the owner has positions
  for (const char* wrong : {"-1", "", "1.5", "x", " 1", "1e3"}) {
    CHECK(page(b, "items", {{"from", wrong}}).status == 400);
    CHECK(b.last->answer.error == Errc::query);
    CHECK(b.text() == "`from` is not a whole number from 0 on\n");
  }
  CHECK(page(b, "items", {{"count", "1"}, {"count", "2"}}).error == Errc::query);
  CHECK(page(b, "items", {{"after", "a"}}).error == Errc::query);
  CHECK(b.text() == "there is no parameter `after`; `items` takes `from` and `count`\n");
  CHECK(page(b, "left", {{"sku", "a"}, {"from", "0"}}).error == Errc::query);
  CHECK(b.text() == "there is no parameter `from`; `left` takes `sku`\n");
  CHECK(page(b, "bought", {}).error == Errc::missing_field);
  CHECK(b.text() == "missing: the parameter `user`; `bought` takes `user`, and `from` and `count`\n");
  CHECK(page_text(b, "bought", {{"user", "7"}, {"count", "1"}}) == R"({"rows":0,"from":0,"items":[]})");
}

TEST_CASE("a failed event leaves no row, index entry or total behind, in a burst with others") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  add(b, "tea", "5");
  b.world.hold.store(true);
  std::vector<std::vector<Parameter>> asked = {
      {{"user", "1"}, {"sku", "tea"}, {"n", "2"}}, {{"user", "3"}, {"sku", "tea"}, {"n", "9"}}, {{"user", "2"}, {"sku", "tea"}, {"n", "1"}}};
  for (std::uint32_t i = 0; i < asked.size(); ++i) {
    Call c = Bench::call(Verb::input, "take");
    c.query = asked[i];
    REQUIRE(b.send(std::move(c), i));
  }
  b.flush();
  b.world.let_go();
  const std::vector<EventPtr> got = b.wait(3);
  for (const EventPtr& e : got) CHECK(e->answer.status == (e->ticket.tag == 1 ? 422 : 200));
  CHECK(b.view("taken") == "3");
  CHECK(page_text(b, "items", {}) == R"({"rows":1,"from":0,"items":[{"sku":"tea","left":2}]})");
  CHECK(page_text(b, "bought", {{"user", "1"}}) == R"({"rows":1,"from":0,"items":[{"sku":"tea","n":2}]})");
  CHECK(page_text(b, "scarce", {}) == R"({"rows":1,"from":0,"items":[{"sku":"tea","left":2}]})");
}

TEST_CASE("whether an event changed something, which seq counts, does not depend on its burst") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  add(b, "tea", "5");
  const std::string before = b.view("next");
  add(b, "tea", "5");
  CHECK(b.view("next") == before);
  CHECK(b.view("next", false) == before);
  add(b, "tea", "6");
  CHECK(b.view("next") != before);
}

TEST_CASE("a commit that fails takes rows and ranks back with it") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  add(b, "a", "5");
  add(b, "b", "3");
  CHECK(page_text(b, "place", {{"sku", "a"}}) == "1");
  b.world.before_commit.store(EIO);
  CHECK(b.post("stock", {{"sku", "c"}, {"left", "4"}}).status == 500);
  b.world.before_commit.store(0);
  CHECK(page_text(b, "place", {{"sku", "a"}}) == "1");
  CHECK(page_text(b, "items", {}, false) == R"({"rows":2,"from":0,"items":[{"sku":"a","left":5},{"sku":"b","left":3}]})");
  add(b, "c", "4");
  CHECK(page_text(b, "place", {{"sku", "a"}}) == "2");
  CHECK_FALSE(b.evaluated);   // ranks are known at the owner
}

TEST_CASE("an index gives rows of the burst and of the store in one order") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  for (int i = 0; i < 300; ++i) add(b, "s" + std::to_string(i), std::to_string((i * 7) % 300));
  const std::string far = page_text(b, "ranked", {{"from", "1200"}, {"count", "2"}});
  CHECK(far == R"({"rows":300,"from":300,"items":[]})");
  CHECK(page_text(b, "ranked", {{"from", "290"}, {"count", "2"}}, false) ==
        R"({"rows":300,"from":290,"items":[{"place":290,"left":290},{"place":291,"left":291}]})");
  CHECK(page_text(b, "ranked", {{"from", "290"}, {"count", "2"}}) ==
        R"({"rows":300,"from":290,"items":[{"place":290,"left":290},{"place":291,"left":291}]})");
}

TEST_CASE("a page that costs more than a worker may spend is the owner's, and the same") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  for (int i = 0; i < 60; ++i) add(b, "s" + std::to_string(100 + i), "1");
  const std::string here = page_text(b, "heavy", {});
  CHECK_FALSE(b.evaluated);
  CHECK(here == page_text(b, "heavy", {}, false));
  CHECK(b.last->answer.status == 200);
}

TEST_CASE("rows that fault or are absent have no value") {
  Bench b({{"shop", kStock}});
  REQUIRE(b.load().empty());
  CHECK(page(b, "near", {{"sku", "none"}}).status == 404);
  CHECK(b.last->answer.error == Errc::no_value);
  CHECK(page(b, "near", {{"sku", "none"}}, false).status == 404);
  add(b, "tea", "5");
  CHECK(page_text(b, "near", {{"sku", "tea"}}) == R"({"rows":1,"from":0,"items":[{"sku":"tea"}]})");
}

TEST_CASE("rows that `on start` makes are in the first commit") {
  Bench b({{"shop", "module m 1\ntable t max 9 { k: int auto, v: text max 9, key k }\non start { insert t { v: \"one\" } "
                    "insert t { v: \"two\" } }\nview t = for r in t { r.k, r.v }\n"}});
  REQUIRE(b.load().empty());
  CHECK(page_text(b, "t", {}) == R"({"rows":2,"from":0,"items":[{"k":1,"v":"one"},{"k":2,"v":"two"}]})");
}

TEST_CASE("a page that is damaged while the store serves fails the events that read it, and no others") {
  Bench b({{"notes", "module m 1\ntable t max 9_000 { k: u32, v: text max 2000, key k }\nmessage put { k: u32, v: text }\n"
                     "message size { k: u32 }\non put { put t { k, v } }\non size { reply size(t[k].v) }\n"
                     "view size(k: u32): num = size(t[k].v)\nview t = for r in t { r.k }\nview count: num = count(t)\n"}});
  REQUIRE(b.load().empty());
  const auto value = [](int k) { return "row number " + std::to_string(k) + " " + std::string(1000, 'x'); };
  for (int k = 100; k < 400; ++k) REQUIRE(b.post("put", {{"k", std::to_string(k)}}, value(k)).status == 200);

  // The page with row 200, as it is now: the last copy in the file.
  const std::string path = b.folder / "notes.db/data.mdb";
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  REQUIRE(file != nullptr);
  std::string bytes(std::filesystem::file_size(path), '\0');
  REQUIRE(std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size());
  for (std::size_t at = bytes.find(value(200)); at != std::string::npos; at = bytes.find(value(200), at + 1)) {
    std::fseek(file, static_cast<long>(at / 4096 * 4096), SEEK_SET);
    const std::string zeros(4096, '\0');
    REQUIRE(std::fwrite(zeros.data(), 1, zeros.size(), file) == zeros.size());
  }
  std::fclose(file);

  const auto size = [&](const char* k, bool here) {
    Call c = Bench::call(Verb::view, "size");
    const Parameter one[] = {{"k", k}};
    c.query = one;
    return b.ask(std::move(c), here).status;
  };
  for (const bool here : {true, false}) {
    CHECK(size("200", here) == 500);
    CHECK(b.last->answer.error == Errc::storage);
    CHECK(b.text() == "the stored data is damaged\n");
    CHECK(size("399", here) == 200);
    CHECK(b.view("count", here) == "300");
  }
  CHECK(b.post("size", {{"k", "200"}}).status == 500);
  CHECK(b.post("put", {{"k", "200"}}, "new").status == 500);
  CHECK(b.post("size", {{"k", "399"}}).status == 200);
  CHECK(b.post("put", {{"k", "399"}}, "new").status == 200);
  CHECK(size("399", true) == 200);
  CHECK(b.text() == "3");
}
