// Modules that the engine's tests run.
#pragma once

namespace sluice::proxy {

inline constexpr const char* kQuota = R"(module quota 1
state hits: int in 0..1_000_000
state lamp: bool
state level: num clamp 0..100 = 50
state motto: text max 40 = "be kind"
state winner: slug?
state stamp: num
input key plus
input key shine
input key odd
input text say max 40
message turn { amount: num }
message add { amount: int in 1..10 }
message win { who: slug }
message lose { }
message echo { who: slug, data: bytes }
message half { part: num }
message grow { }
message fails { how: int in 0..9 }
message mark { }
message number { }
on plus down { hits += 1 }
on shine down { lamp = true }
on shine up { lamp = false }
on odd down { hits += 1  fail limit "no down" }
on odd up { hits += 10  reply "up" }
on say (line) {
  check size(trim(line)) > 0 else limit "say something"
  motto = trim(line)
  reply line
}
on turn { level += amount  reply level }
on add { hits += amount  reply hits }
on win { winner = who  reply who }
on lose { winner = none }
on echo { reply data }
on half { hits += 1  reply 1 / part }
on grow { level = 1e308  reply (level + 1e308) * 10 }
on fails {
  hits += 100
  motto = "changed"
  winner = "someone"
  lamp = true
  if how == 0 { fail divide }
  if how == 1 { fail non_finite }
  if how == 2 { fail clamp }
  if how == 3 { fail limit }
  if how == 4 { fail not_found }
  if how == 5 { fail encoding }
  if how == 6 { fail exists }
  if how == 7 { fail denied }
  fail denied "because {how}"
}
on mark { stamp = now  reply { stamp, hits, winner } }
on number { stamp = seq  reply seq }
view hits: num = hits
view lamp: bool = lamp
view level: num = level
view motto: text = motto
view winner: text = winner
view plus(more: num): num = hits + more
view time: num = now
view next: num = seq
view broken: num = 1 / (hits - hits)
)";

inline constexpr const char* kNotes = R"(module notes 1
documents text max 1MiB
message show keyed { }
message edit keyed { body: text max 1MiB }
message remove keyed { }
input text ping max 10
on ping (line) { reply "pong {line}" }
on show { reply doc }
on edit {
  if starts(doc.key, "log-") {
    check ends(body, "\n") else limit "end every line"
    if has doc { append doc body } else { doc = body }
    reply doc
  }
  if starts(doc.key, "cut-") and has doc {
    splice doc at 1 remove 2 insert body
    reply doc
  }
  check body != "taken" else exists "taken already"
  check body != "no" else denied
  check body != "zero" else divide
  if body == "" { delete doc  reply }
  doc = body
  reply body
}
on remove {
  check doc != "keep" else denied "it stays"
  delete doc
  if doc.key == "told" { reply "gone" }
}
)";

inline constexpr const char* kStock = R"(module shop 1
table item max 100_000 {
  sku: slug
  left: int in 0..1000
  key sku
  index scarce (left, sku) ranked
}
table bought max 50 per user {
  user: u32
  sku: slug
  n: int
  key (user, sku)
  total taken sum(n)
}
message stock { sku: slug, left: u32 }
message buy { sku: slug, n: u32 }
message take { user: u32, sku: slug, n: u32 }
on stock { put item { sku, left } }
on buy { item[sku].left -= n  reply { sku, left: item[sku].left } }
on take {
  insert bought { user, sku, n }
  item[sku].left -= n
}
view items = for i in item { i.sku, i.left }
view scarce = for i in item by scarce below 3 limit 100 { i.sku, i.left }
view ranked = for i in item by scarce { place: row, i.left }
view bought(user: u32) = for b in bought[user] { b.sku, b.n }
view near(sku: slug) = for i in item from item[sku].sku limit 1 { i.sku }
view left(sku: slug): num = item[sku].left
view taken: num = total(bought.taken)
view place(sku: slug): num = rank(item[sku] by scarce)
view next: num = seq
fn slow(a: num): num = sum(i.left for i in item limit 100) + a
view heavy = for i in item { i.sku, slow: slow(i.left) }
)";

}  // namespace sluice::proxy
