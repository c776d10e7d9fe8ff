#include "proxy/listen_set.h"

#include <algorithm>
#include <utility>

namespace sluice::proxy {
namespace {

constexpr std::uint64_t kLook_ms = 10;     // until workers that were told have let go

std::string where(const Settings::Listener& l) {
  return (l.host.find(':') == l.host.npos ? l.host : "[" + l.host + "]") + ":" + std::to_string(l.port);
}

// Does nobody but this list have them?
bool let_go(const ListenSet::Place& place) {
  return std::all_of(place.sockets.begin(), place.sockets.end(), [](const ListenSocketPtr& s) { return s.use_count() == 1; });
}

}  // namespace

std::string describe(const ListenSet::Place& place) {
  return place.asked.host + " port " + std::to_string(place.address.port()) +
         (place.asked.tag.empty() ? "" : ", tag " + place.asked.tag) + (place.asked.tls ? ", TLS" : "");
}

Result<ListenSet::Plan, std::string> ListenSet::prepare(const std::vector<Settings::Listener>& wanted, std::size_t workers) const {
  Plan plan;
  plan.places.resize(wanted.size());
  plan.known.resize(wanted.size());
  std::vector<bool> taken(places_.size());
  const auto take = [&](std::size_t to, std::size_t from) {
    taken[from] = true;
    plan.places[to] = places_[from];
    plan.known[to] = places_[from].sockets.front().get();
  };
  const auto same_words = [&](std::size_t i, std::size_t p) {
    return !taken[p] && places_[p].asked.host == wanted[i].host && places_[p].asked.port == wanted[i].port;
  };
  // Those with a port, by their address, which is looked up only for new words. Then those that leave the port to the kernel: with
  // their tag first, so that of two each keeps its own.
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].port == 0) continue;
    for (std::size_t p = 0; p < places_.size() && !plan.known[i]; ++p)
      if (same_words(i, p)) take(i, p);
    if (plan.known[i]) continue;
    Result<Address, std::string> address = find_address(wanted[i].host, wanted[i].port);
    if (!address) return std::move(address).error();
    plan.places[i].address = *address;
    for (std::size_t p = 0; p < places_.size() && !plan.known[i]; ++p)
      if (!taken[p] && places_[p].address == *address) take(i, p);
  }
  for (const bool tagged : {true, false})
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::size_t p = 0; p < places_.size() && wanted[i].port == 0 && !plan.known[i]; ++p)
        if (same_words(i, p) && (!tagged || places_[p].asked.tag == wanted[i].tag)) take(i, p);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].port != 0 || plan.known[i]) continue;
    Result<Address, std::string> address = find_address(wanted[i].host, 0);
    if (!address) return std::move(address).error();
    plan.places[i].address = *address;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Place& place = plan.places[i];
    place.asked = wanted[i];
    place.tls = nullptr;
    place.retire_at_ms = kNever;
    place.left = false;
    const std::size_t missing = workers - std::min(workers, place.sockets.size());
    const auto same_port = [&](const Place& other) { return wanted[i].port != 0 && other.address.port() == wanted[i].port; };
    for (std::size_t o = 0; o < i; ++o)
      if (wanted[i].port != 0 && plan.places[o].address == place.address)
        return "cannot listen on " + where(wanted[i]) + ": it is listened on already, as " + where(wanted[o]);
    // 0.0.0.0 beside 127.0.0.1 is allowed when both are ours.
    const bool share = plan.known[i] != nullptr || std::any_of(places_.begin(), places_.end(), same_port) ||
                       std::any_of(plan.places.begin(), plan.places.begin() + static_cast<std::ptrdiff_t>(i), same_port);
    if (missing == 0) continue;
    auto opened = open_sockets(where(wanted[i]), place.address, missing, share);
    if (!opened) return std::move(opened).error();
    place.sockets.insert(place.sockets.end(), opened->begin(), opened->end());
  }
  return plan;
}

std::vector<std::string> ListenSet::apply(Plan plan, std::uint64_t now_ms) {
  std::vector<std::string> lines;
  std::vector<Place> before = std::exchange(places_, std::move(plan.places));
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto old = std::find_if(before.begin(), before.end(), [&](const Place& p) { return !p.sockets.empty() && p.sockets.front().get() == plan.known[i]; });
    if (old == before.end() || !old->serves() || describe(*old) != describe(places_[i])) lines.push_back("listening on " + describe(places_[i]));
    if (old == before.end()) continue;
    if (!old->serves())
      for (const ListenSocketPtr& s : places_[i].sockets) s->take_new();
    old->sockets.clear();                  // goes on
  }
  for (Place& old : before) {
    if (old.sockets.empty()) continue;
    if (old.serves()) {
      lines.push_back("listening no more on " + describe(old));
      for (const ListenSocketPtr& s : old.sockets) s->refuse_new();
      old.retire_at_ms = now_ms + kRetire_ms;
    }
    places_.push_back(std::move(old));
  }
  return lines;
}

std::vector<Listening> ListenSet::of_worker(std::size_t index, std::size_t workers) const {
  std::vector<Listening> out;
  for (const Place& place : places_)
    for (std::size_t i = index; i < place.sockets.size() && !place.left; i += workers)
      out.push_back({place.sockets[i], place.asked.tag, place.tls});
  return out;
}

void ListenSet::refuse_new() const {
  for (const Place& place : places_)
    for (const ListenSocketPtr& s : place.sockets) s->refuse_new();
}

std::uint64_t ListenSet::next_ms(std::uint64_t now_ms) const {
  std::uint64_t next = kNever;
  for (const Place& place : places_) next = std::min(next, place.left ? now_ms + kLook_ms : place.retire_at_ms);
  return next;
}

bool ListenSet::tick(std::uint64_t now_ms) {
  bool changed = false;
  std::erase_if(places_, [](const Place& place) { return place.left && let_go(place); });
  for (Place& place : places_) {
    if (place.left || now_ms < place.retire_at_ms) continue;
    place.left = changed = true;
  }
  return changed;
}

std::vector<const ListenSet::Place*> ListenSet::places() const {
  std::vector<const Place*> out;
  for (const Place& place : places_)
    if (place.serves()) out.push_back(&place);
  return out;
}

}  // namespace sluice::proxy
