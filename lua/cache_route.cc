#include "lua/cache_route.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "lua/fields.h"
#include "lua/response_object.h"
#include "proxy/ascii.h"
#include "vm/base/check.h"

namespace sluice::lua {
namespace {

constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

void count(std::atomic<std::uint64_t>& n) { n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

// So that no two lists of texts are one key.
void append(std::string& key, std::string_view text) {
  const std::uint32_t bytes = static_cast<std::uint32_t>(text.size());
  key.append(reinterpret_cast<const char*>(&bytes), sizeof bytes).append(text);
}

// The seconds behind "NAME=" of one directive; nothing: it is another one, or they cannot be read.
std::optional<std::uint64_t> seconds_of(std::string_view token, std::string_view name) {
  if (token.size() <= name.size() || !same_field(token.substr(0, name.size()), name) || token[name.size()] != '=') return std::nullopt;
  token.remove_prefix(name.size() + 1);
  if (token.size() > 1 && token.front() == '"' && token.back() == '"') token = token.substr(1, token.size() - 2);
  std::uint64_t n = 0;
  const auto read = std::from_chars(token.data(), token.data() + token.size(), n);
  // What nobody can read is taken for what allows the least. Source: RFC 9111, 4.2.1.
  if (read.ec != std::errc() || read.ptr != token.data() + token.size()) return 0;
  return std::min<std::uint64_t>(n, 1u << 31);
}

}  // namespace

// The client's exchange as the child sees it; what is answered goes through keep().
class CacheRoute::Held final : public proxy::Exchange {
 public:
  Held(CacheRoute& route, std::uint32_t index) : route_(route), index_(index) {}
  const proxy::Request& request() const override { return outer->request(); }
  bool gone() const override { return outer->gone(); }
  bool behind_write() const override { return outer->behind_write(); }
  void hold_writes(bool held) override { outer->hold_writes(held); }
  std::string_view own_key() const override { return outer->own_key(); }
  void answer(proxy::Response& response) override {
    proxy::Exchange& to = *outer;
    // What answers nobody is no answer of the child's: it lets go with whatever it has.
    if (!let_go && !to.gone()) route_.keep(*this, response);
    if (writing) route_.cache_.shared().writes.fetch_add(1);
    route_.recycle(*this);
    to.answer(response);
  }
  std::uint32_t index() const { return index_; }

  proxy::Exchange* outer = nullptr;              // nullptr: free
  bool writing = false, let_go = false;
  std::string key;
  std::uint64_t asked_us = 0, writes = 0, changes = 0;

 private:
  CacheRoute& route_;
  const std::uint32_t index_;
};

CacheRoute::CacheRoute(CacheSpec spec, std::shared_ptr<CacheShared> shared, proxy::Route& child)
    : spec_(std::move(spec)), cache_(spec_.limit_bytes, std::move(shared)), child_(child) {}

CacheRoute::~CacheRoute() = default;

// Not answered from the cache, and not kept: what the request's path, query and `vary` do not say all about.
bool CacheRoute::passes_by(const proxy::Request& r) const {
  if (r.body.size() != 0) return true;
  const auto varies = [this](std::string_view name) {
    return std::any_of(spec_.vary.begin(), spec_.vary.end(), [&](const std::string& v) { return same_field(v, name); });
  };
  for (const proxy::Header& h : r.headers) {
    if (same_field(h.name, "range") || same_field(h.name, "if-match")) return true;
    if (!spec_.everybody && (same_field(h.name, "authorization") || same_field(h.name, "cookie")) && !varies(h.name)) return true;
  }
  return false;
}

void CacheRoute::make_key(const proxy::Request& r, std::string_view own) {
  key_.clear();
  append(key_, r.path);
  append(key_, own);   // of a pool: it may lead elsewhere
  for (const std::string& name : spec_.vary) {
    for (const proxy::Header& h : r.headers)
      if (same_field(h.name, name)) append(key_, h.value);
    key_.push_back('\0');
  }
  for (const proxy::Parameter& p : r.query) {
    append(key_, p.name);
    append(key_, p.value);
  }
}

// Each number only grows, so their sum stands as long as all do.
std::uint64_t CacheRoute::changes() const {
  std::uint64_t sum = 0;
  for (const proxy::StorePtr& s : spec_.stores) {
    const std::uint64_t n = s->changes();
    if (n == 0) return 0;
    sum += n;
  }
  return sum;
}

bool CacheRoute::fresh(const StoredAnswer& a, std::uint64_t now_us, std::uint64_t changes) const {
  return now_us < a.until_us && a.writes == cache_.shared().writes.load() && a.changes == changes;
}

void CacheRoute::start(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services) {
  const proxy::Request& r = exchange.request();
  if (!proxy::is_safe(r.method)) return ask(exchange, match, services, true, 0);
  // Before anything is looked at: what is read later may be newer, but not older.
  const std::uint64_t changes = spec_.revalidate ? this->changes() : 0;
  const bool unknown = spec_.revalidate && changes == 0;
  const bool get = r.method == proxy::Method::get;
  if (unknown || !(get || r.method == proxy::Method::head) || exchange.behind_write() || passes_by(r)) {
    count(cache_.counts().passed);
    exchange.passed_to = &child_;
    return child_.start(exchange, match, services);
  }
  make_key(r, exchange.own_key());
  const std::uint64_t now_us = services.monotonic_us();
  if (const StoredPtr found = cache_.find(key_)) {
    if (fresh(*found, now_us, changes)) return give(exchange, found, now_us);
    cache_.drop(key_);
  }
  count(cache_.counts().misses);
  if (!get) {
    // Its answer may lack the body.
    exchange.passed_to = &child_;
    return child_.start(exchange, match, services);
  }
  ask(exchange, match, services, false, changes);
}

void CacheRoute::give(proxy::Exchange& exchange, const StoredPtr& a, std::uint64_t now_us) {
  count(cache_.counts().hits);
  response_.content_type = a->content_type;      // good as long as the body's loan is
  response_.revision = a->revision;
  response_.no_store = a->no_store;
  char age[32];
  const char* const end = std::to_chars(age, age + sizeof age, (now_us - a->asked_us) / 1'000'000).ptr;
  response_.headers.assign(a->headers).append("Age: ").append(age, static_cast<std::size_t>(end - age)).append("\r\n");
  response_.body.loan = a;
  if (!a->body.empty()) response_.body.pieces.push_back(a->body);
  exchange.answer(response_);
}

void CacheRoute::ask(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services, bool writes, std::uint64_t changes) {
  if (free_.empty()) {
    held_.push_back(std::make_unique<Held>(*this, static_cast<std::uint32_t>(held_.size())));
    free_.reserve(held_.size());
    free_.push_back(held_.back()->index());
  }
  Held& h = *held_[free_.back()];
  free_.pop_back();
  h.outer = &exchange;
  exchange.passed_to = this;
  exchange.route_slot = h.index() + 1;
  h.route_slot = 0;
  h.passed_to = nullptr;
  h.writing = writes;
  h.let_go = false;
  if (writes) {
    // Now, so that nothing from before it is given while it is under way; and when it is answered, so that nothing is that
    // was asked for meanwhile.
    cache_.shared().writes.fetch_add(1);
  } else {
    h.key.swap(key_);
    h.asked_us = services.monotonic_us();
    h.writes = cache_.shared().writes.load();
    h.changes = changes;
  }
  child_.start(h, match, services);
}

std::uint64_t CacheRoute::allowed_us(std::string_view lines, std::uint64_t& age_us) const {
  std::uint64_t most_us = spec_.ttl_us == 0 ? kForEver : spec_.ttl_us;
  std::optional<std::uint64_t> max_age, shared_age;
  bool no = false;
  std::string_view name, value;
  while (!no && next_header_line(lines, name, value)) {
    if (same_field(name, "set-cookie")) no = true;
    if (same_field(name, "vary"))
      proxy::each_token(value, [&](std::string_view token) {
        no = no || std::none_of(spec_.vary.begin(), spec_.vary.end(), [&](const std::string& v) { return same_field(v, token); });
      });
    if (same_field(name, "age"))
      if (std::uint64_t n = 0; std::from_chars(value.data(), value.data() + value.size(), n).ec == std::errc())
        age_us = std::min<std::uint64_t>(n, 1u << 31) * 1'000'000;
    if (!same_field(name, "cache-control")) continue;
    proxy::each_token(value, [&](std::string_view token) {
      const std::string_view word = token.substr(0, token.find('='));
      if (same_field(word, "no-store") || same_field(word, "private") || same_field(word, "no-cache")) no = true;
      if (const auto n = seconds_of(token, "max-age")) max_age = n;
      if (const auto n = seconds_of(token, "s-maxage")) shared_age = n;
    });
  }
  if (no) return 0;
  if (shared_age || max_age) most_us = std::min(most_us, (shared_age ? *shared_age : *max_age) * 1'000'000);
  if (most_us == kForEver) return kForEver;
  return most_us > age_us ? most_us : 0;
}

void CacheRoute::keep(Held& h, const proxy::Response& r) {
  if (h.writing || r.status != 200 || r.error != Errc::none || r.body.size() > spec_.item_bytes) return;
  // A write that has begun since may be in the answer or not.
  if (h.writes != cache_.shared().writes.load()) return;
  std::uint64_t age_us = 0;
  const std::uint64_t allowed = allowed_us(r.headers, age_us);
  if (allowed == 0) return;
  auto stored = std::make_shared<StoredAnswer>();
  stored->key = h.key;
  stored->content_type = r.content_type;
  stored->headers = r.headers;
  if (age_us != 0) drop_header_line(stored->headers, "age");
  if (r.body.loan && !r.body.buffer)
    for (const std::string_view piece : r.body.pieces) stored->body.append(piece);
  else
    stored->body = r.body.flat();
  stored->revision = r.revision;
  stored->no_store = r.no_store;
  // Of one that was kept elsewhere: since it was asked for there.
  stored->asked_us = h.asked_us > age_us ? h.asked_us - age_us : 0;
  stored->until_us = allowed == kForEver ? kForEver : stored->asked_us + allowed;
  stored->writes = h.writes;
  stored->changes = h.changes;
  cache_.put(std::move(stored));
}

void CacheRoute::recycle(Held& h) {
  h.outer->route_slot = 0;
  h.outer = nullptr;
  free_.push_back(h.index());
}

void CacheRoute::client_gone(proxy::Exchange& exchange) {
  // Passed by: the child holds the client's own exchange.
  if (exchange.passed_to && exchange.passed_to != this) return exchange.passed_to->client_gone(exchange);
  if (exchange.route_slot == 0) return;
  Held& h = *held_[exchange.route_slot - 1];
  SLUICE_ASSERT(h.outer == &exchange);
  h.let_go = true;
  child_.client_gone(h);
}

}  // namespace sluice::lua
