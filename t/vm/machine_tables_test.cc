// Tables as modules use them, from their text to their answers.
#include <doctest/doctest.h>

#include "t/vm/module_player.h"

namespace sluice::vm {
namespace {
std::string row(std::string_view fields) { return "ok {" + std::string(fields) + "}"; }

constexpr std::string_view kShop = R"aup(module shop 1
table item max 100_000 {
  sku: slug
  name: text max 80
  left: int in 0..1_000_000
  price: num in 0..1e6
  key sku
  index scarce (left, sku)
}
table cart max 1_000_000, max 50 per user {
  user: u32
  sku: slug
  qty: int in 1..99
  key (user, sku)
  total held sum(qty) by sku
}
message stock { sku: slug, count: u32, price: num, name: text }
message add { user: u32, sku: slug, qty: u32 }
message drop { user: u32, sku: slug }
message buy { user: u32 }
fn cost(c: cart): num = c.qty * item[c.sku].price
fn due(user: num): num = round(sum(cost(c) for c in cart[user]) * 100) / 100
on stock {
  put item { sku, name, left: count, price }
  reply name
}
on add {
  item[sku].left -= qty
  if has cart[user, sku] { cart[user, sku].qty += qty }
  else { insert cart { user, sku, qty } }
  reply { sku, left: item[sku].left, qty: cart[user, sku].qty }
}
on drop {
  item[sku].left += cart[user, sku].qty
  delete cart[user, sku]
}
on buy {
  check count(cart[user]) > 0 else not_found "the cart is empty"
  let paid = due(user)
  for c in cart[user] { delete c }
  reply { user, paid }
}
view items = for i in item { i.sku, i.name, i.left, held: total(cart.held, i.sku) }
view scarce = for i in item by scarce below 5 limit 100 { i.sku, i.left }
view cart(user: u32) = for c in cart[user] { c.sku, c.qty, cost: cost(c) }
view due(user: u32): num = due(user)
)aup";
}  // namespace

TEST_CASE("a shop: stock that cannot go negative, carts, kept sums and pages") {
  ModulePlayer m(kShop);
  CHECK(m.post("stock", {{"sku", "tea"}, {"count", "10"}, {"price", "2.5"}}, "Green tea") == "ok Green tea");
  CHECK(m.post("stock", {{"sku", "mug"}, {"count", "1"}, {"price", "8"}}, "Mug \"XL\"") == "ok Mug \"XL\"");
  const Query tea = {{"user", "7"}, {"sku", "tea"}, {"qty", "4"}};
  CHECK(m.post("add", tea) == row(R"("sku":"tea","left":6,"qty":4)"));
  CHECK(m.post("add", tea) == row(R"("sku":"tea","left":2,"qty":8)"));
  const auto before = m.host().stored().contents();
  CHECK(m.post("add", tea) == "clamp");
  CHECK(m.post("add", {{"user", "7"}, {"sku", "pot"}, {"qty", "1"}}) == "not_found");
  CHECK(m.post("add", {{"user", "7"}, {"sku", "mug"}, {"qty", "0"}}) == "clamp");
  CHECK(m.host().stored().contents() == before);
  CHECK(m.post("add", {{"user", "7"}, {"sku", "mug"}, {"qty", "1"}}) == row(R"("sku":"mug","left":0,"qty":1)"));
  CHECK(m.page("items") ==
        R"({"rows":2,"from":0,"items":[{"sku":"mug","name":"Mug \"XL\"","left":0,"held":1},{"sku":"tea","name":"Green tea","left":2,"held":8}]})");
  CHECK(m.page("cart", {{"user", "7"}}, 1, 1) == R"({"rows":2,"from":1,"items":[{"sku":"tea","qty":8,"cost":20}]})");
  CHECK(m.view("due", {{"user", "7"}}) == "28");
  CHECK(m.page("scarce") == R"({"rows":2,"from":0,"items":[{"sku":"mug","left":0},{"sku":"tea","left":2}]})");
  CHECK(m.post("drop", {{"user", "7"}, {"sku", "mug"}}) == "ok");
  CHECK(m.post("drop", {{"user", "7"}, {"sku", "mug"}}) == "not_found");
  CHECK(m.post("buy", {{"user", "7"}}) == row(R"("user":7,"paid":20)"));
  CHECK(m.post("buy", {{"user", "7"}}) == "not_found the cart is empty");
  CHECK(m.view("due", {{"user", "7"}}) == "0");
}

TEST_CASE("a queue: automatic numbers, leases, rows as replies, a loop that deletes what it goes over") {
  ModulePlayer m(R"aup(module jobs 1
const TRIES = 3
table job max 1_000_000 {
  id: int auto, queue: slug, due: num, tries: u32 = 0, body: text max 4096
  key id
  index ready (queue, due)
  index tired tries
  total waiting count by queue
}
table dead keep 2 { id: int, queue: slug, why: text? max 200, body: text max 4096  key id }
message push { queue: slug, delay: u32, body: text }
message take { queue: slug, lease: u32 }
message done { id: u32 }
input timer sweep every 10s
fn bury(j: job, why: text) {
  insert dead { id: j.id, queue: j.queue, why: why, body: j.body }
  delete j
}
on push { let id = insert job { queue, due: now + delay, body }  reply id }
on take {
  for j in job by ready[queue] to now limit 1 {
    update j { due: now + lease, tries: j.tries + 1 }
    reply j
  }
  fail not_found "nothing to do in {queue}"
}
on done { delete job[id] }
on sweep { for j in job by tired from TRIES limit 500 where j.due <= now { bury(j, "gave up") } }
view jobs = for j in job { j.id, j.queue, wait: max(0, j.due - now), j.tries }
view waiting(queue: slug): num = total(job.waiting, queue)
view oldest(queue: slug): num = min(j.due for j in job by ready[queue] limit 1)
view dead = for d in dead desc { d.id, d.why, text: d.body }
)aup");
  m.now = 1000;
  CHECK(m.post("push", {{"queue", "mail"}, {"delay", "0"}}, "to ann") == "ok 1");
  CHECK(m.post("push", {{"queue", "mail"}, {"delay", "5000"}}, "to bob") == "ok 2");
  CHECK(m.view("waiting", {{"queue", "mail"}}) == "2");
  CHECK(m.view("oldest", {{"queue", "mail"}}) == "1000");
  const Query take = {{"queue", "mail"}, {"lease", "100"}};
  CHECK(m.post("take", take) == row(R"("id":1,"queue":"mail","due":1100,"tries":1,"body":"to ann")"));
  CHECK(m.post("take", take) == "not_found nothing to do in mail");
  m.now = 1100;
  CHECK(m.post("take", take) == row(R"("id":1,"queue":"mail","due":1200,"tries":2,"body":"to ann")"));
  m.now = 1200;
  CHECK(m.post("take", take) == row(R"("id":1,"queue":"mail","due":1300,"tries":3,"body":"to ann")"));
  CHECK(m.page("jobs") ==
        R"({"rows":2,"from":0,"items":[{"id":1,"queue":"mail","wait":100,"tries":3},{"id":2,"queue":"mail","wait":4800,"tries":0}]})");
  m.now = 10000;
  CHECK(m.tick("sweep") == "ok");
  CHECK(m.page("jobs") == R"({"rows":1,"from":0,"items":[{"id":2,"queue":"mail","wait":0,"tries":0}]})");
  CHECK(m.page("dead") == R"({"rows":1,"from":0,"items":[{"id":1,"why":"gave up","text":"to ann"}]})");
  CHECK(m.post("done", {{"id", "2"}}) == "ok");
  CHECK(m.post("done", {{"id", "2"}}) == "not_found");
  CHECK(m.view("oldest", {{"queue", "mail"}}) == "no_value");
  CHECK(m.post("push", {{"queue", "mail"}, {"delay", "0"}}, "again") == "ok 3");      // a number never comes again
  for (int i = 4; i < 8; ++i) CHECK(m.post("push", {{"queue", "mail"}, {"delay", "0"}}, "x") == "ok " + std::to_string(i));
  for (int i = 0; i < 3 * 5; ++i) m.post("take", {{"queue", "mail"}, {"lease", "0"}});
  CHECK(m.tick("sweep") == "ok");
  CHECK(m.page("dead", {}, 0, 1).starts_with(R"({"rows":2,"from":0,"items":[{"id":)"));   // the oldest made room
}

TEST_CASE("a poll: unique keys, counts by group, ranks, positions and cells without a value") {
  ModulePlayer m(R"aup(module poll 1
table vote { poll: slug, user: u32, n: u32, key (poll, user), total tally count by (poll, n), total voters count by poll }
table player { name: slug, points: num, at: num, key name, index top (points desc, at) ranked }
message vote { poll: slug, user: u32, n: u32 }
message score { name: slug, points: num }
on vote { insert vote { poll, user, n }  reply { n, votes: total(vote.tally, poll, n) } }
on score {
  if points > (player[name].points ?? -1) { put player { name, points, at: now } }
  reply rank(player[name] by top) + 1
}
view share(poll: slug, n: u32): num = round(100 * total(vote.tally, poll, n) / total(vote.voters, poll))
view board = for p in player by top { place: row + 1, p.name, half: p.points / (p.points - 20) }
view place(name: slug): num = rank(player[name] by top) + 1
)aup");
  CHECK(m.view("share", {{"poll", "a"}, {"n", "1"}}) == "no_value");
  CHECK(m.post("vote", {{"poll", "a"}, {"user", "1"}, {"n", "2"}}) == row(R"("n":2,"votes":1)"));
  CHECK(m.post("vote", {{"poll", "a"}, {"user", "1"}, {"n", "1"}}) == "exists");
  CHECK(m.post("vote", {{"poll", "a"}, {"user", "2"}, {"n", "2"}}) == row(R"("n":2,"votes":2)"));
  CHECK(m.post("vote", {{"poll", "a"}, {"user", "3"}, {"n", "1"}}) == row(R"("n":1,"votes":1)"));
  CHECK(m.view("share", {{"poll", "a"}, {"n", "2"}}) == "67");
  CHECK(m.post("score", {{"name", "ann"}, {"points", "10"}}) == "ok 1");
  CHECK(m.post("score", {{"name", "bob"}, {"points", "30"}}) == "ok 1");
  CHECK(m.post("score", {{"name", "cy"}, {"points", "20"}}) == "ok 2");
  CHECK(m.post("score", {{"name", "ann"}, {"points", "5"}}) == "ok 3");
  CHECK(m.post("score", {{"name", "ann"}, {"points", "25"}}) == "ok 2");
  CHECK(m.page("board") ==
        R"({"rows":3,"from":0,"items":[{"place":1,"name":"bob","half":3},{"place":2,"name":"ann","half":5},{"place":3,"name":"cy","half":null}]})");
  CHECK(m.view("place", {{"name", "cy"}}) == "3");
  CHECK(m.view("place", {{"name", "zed"}}) == "no_value");
  m.host().has_orders = false;
  CHECK(m.view("place", {{"name", "cy"}}) == "elsewhere");
  CHECK(m.view("place", {{"name", "zed"}}) == "no_value");
}

TEST_CASE("a chat: each room keeps its last lines, newest first") {
  ModulePlayer m(R"aup(module chat 1
table line keep 3 per room { room: slug, id: int auto, body: text max 500, key (room, id) }
message say { room: slug, body: text }
on say { let id = insert line { room, body }  reply id }
view room(room: slug) = for l in line[room] desc { l.id, text: l.body }
view last(room: slug): text = first("{l.id}: {l.body}" for l in line[room] desc limit 1)
view all: num = count(line)
)aup");
  for (int i = 1; i <= 5; ++i) CHECK(m.post("say", {{"room", "a"}}, "line") == "ok " + std::to_string(i));
  CHECK(m.post("say", {{"room", "b"}}, "hi") == "ok 6");
  CHECK(m.page("room", {{"room", "a"}}) ==
        R"({"rows":3,"from":0,"items":[{"id":5,"text":"line"},{"id":4,"text":"line"},{"id":3,"text":"line"}]})");
  CHECK(m.view("last", {{"room", "a"}}) == "5: line");
  CHECK(m.view("last", {{"room", "none"}}) == "no_value");
  CHECK(m.view("all") == "4");
}

}  // namespace sluice::vm
