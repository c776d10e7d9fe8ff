// A rebuild finds whatever is not as the rows say.
#include "tools/check_derived.h"

#include "t/tools/play.h"

namespace sluice::tools {
namespace {

constexpr std::string_view kShelf = R"aup(module shelf 1
table book max 100, max 10 per room {
  room: slug
  id: int auto
  title: text max 40
  weight: num
  pages: u32
  owner: slug?
  key (room, id)
  index by_weight (weight desc) ranked
  index owned owner
  unique title title
  total many count by room
  total heavy sum(weight) by room
  total pages sum(pages)
}
message add { room: slug, weight: num, pages: u32, title: text max 40 }
message lend { room: slug, id: u32, owner: slug }
message drop { room: slug, id: u32 }
on add { let id = insert book { room, title, weight, pages }  reply id }
on lend { book[room, id].owner = owner }
on drop { delete book[room, id] }
)aup";

std::unique_ptr<Player> shelf() {
  std::unique_ptr<Player> p = player_of(kShelf);
  CHECK(play_all(*p, R"(
POST /inputs/add?room=a&weight=0.1&pages=10   body "one"
    200  "1"
POST /inputs/add?room=a&weight=0.2&pages=20   body "two"
    200  "2"
POST /inputs/add?room=b&weight=0.3&pages=30   body "three"
    200  "3"
POST /inputs/add?room=b&weight=-0.3&pages=40   body "four"
    200  "4"
POST /inputs/lend?room=b&id=3&owner=ann
    200
POST /inputs/drop?room=b&id=4
    200
)") == "");
  return p;
}

// Changes the store behind the module's back.
std::string after(Player& p, const std::string& key, const std::optional<std::string>& value) {
  MemoryStore& store = p.store();
  store.begin_event({});
  if (value) store.records()->put(key, *value);
  else store.records()->erase(key);
  store.keep_event();
  return store.check_derived();
}

TEST_CASE("what rows give is right after writes of every kind") { CHECK(shelf()->store().check_derived() == ""); }

TEST_CASE("each record that is gone, other, or too many is found") {
  const vm::MemoryRecords::Map contents = shelf()->store().contents();
  int derived = 0;
  for (const auto& record : contents) {
    const std::string &key = record.first, &value = record.second;
    if (key[0] < 0x10) continue;
    INFO("record of kind " << static_cast<int>(key[0]) << ", " << key.size() << " bytes");
    CHECK(after(*shelf(), key, std::nullopt) != "");
    CHECK(after(*shelf(), key, value + "\x7f") != "");
    if (key[0] > 0x10) CHECK(after(*shelf(), key + "x", value).find("no row gives") != std::string::npos);
    derived += key[0] > 0x10;
  }
  // 3 rows: 3 weights, 1 owner, 3 titles; many a b, heavy a b, pages; groups a b; the table.
  CHECK(derived == 3 + 1 + 3 + 2 + 2 + 1 + 2 + 1);
}

TEST_CASE("an automatic number that was given already is found") {
  const std::unique_ptr<Player> p = shelf();
  for (const auto& [key, value] : vm::MemoryRecords::Map(p->store().contents()))
    if (key[0] == 0x14) {
      CHECK(value == std::string("\x03\x05"));
      CHECK(after(*p, key, "\x03\x04") == "");
      CHECK(after(*p, key, "\x03\x03") != "");
    }
}

TEST_CASE("a row that is no row is found") {
  const std::unique_ptr<Player> p = shelf();
  for (const auto& [key, value] : vm::MemoryRecords::Map(p->store().contents()))
    if (key[0] == 0x10) {
      CHECK(after(*p, key, "\x7f").find("book: a row cannot be read") == 0);
      break;
    }
}

}  // namespace
}  // namespace sluice::tools
