#include "proxy/generations.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace sluice::proxy {
namespace {

std::string counted(std::uint64_t n, const char* one, const char* many) { return fmt::format("{} {}", n, n == 1 ? one : many); }

std::string describe(const GenerationReport::Part& part) {
  const HeldGeneration& h = part.held;
  std::string text = fmt::format("worker {}: ", part.worker) + counted(h.exchanges, "request", "requests");
  if (!h.oldest.empty()) text += fmt::format(" ({}, {:.1f} s)", h.oldest, static_cast<double>(h.oldest_us) / 1e6);
  if (h.events) text += ", " + counted(h.events, "event", "events");
  if (h.kept) text += ", " + counted(h.kept, "route behind its answer", "routes behind their answers");
  if (h.slots) text += fmt::format(", {} of {}", h.slots_in_use, counted(h.slots, "slot", "slots"));
  if (h.memory_bytes) text += fmt::format(", {} KiB of Lua", h.memory_bytes / 1024);
  return text;
}

}  // namespace

std::string describe(const GenerationReport& r, std::uint64_t now_ms) {
  std::string text = fmt::format("generation {}, since {} s{}", r.number, (now_ms - std::min(now_ms, r.since_ms)) / 1000, r.serves ? ", serves" : "");
  for (std::size_t i = 0; i < r.parts.size(); ++i) text += (i == 0 ? ": " : "; ") + describe(r.parts[i]);
  return text;
}

void Generations::given(std::uint64_t number, std::uint64_t now_ms) {
  Alive& alive = list_[number];
  if (alive.workers++ == 0) alive.since_ms = now_ms;
  alive_.set(list_.size());
}

void Generations::returned(std::uint64_t number) {
  const auto at = list_.find(number);
  if (at == list_.end() || --at->second.workers > 0) return;
  list_.erase(at);
  alive_.set(list_.size());
}

std::uint64_t Generations::oldest_held_since_ms() const {
  // The one after it took its place.
  return list_.size() < 2 ? 0 : std::next(list_.begin())->second.since_ms;
}

std::uint64_t Generations::ask(std::vector<std::uint16_t> workers, Hear hear) {
  asked_.emplace(++asks_, Asked{std::move(workers), {}, std::move(hear)});
  return asks_;
}

void Generations::answered(const News& news) {
  const auto at = asked_.find(news.asked);
  if (at == asked_.end()) return;
  for (const HeldGeneration& held : news.held) {
    std::vector<GenerationReport>& found = at->second.found;
    auto report = std::find_if(found.begin(), found.end(), [&](const GenerationReport& r) { return r.number == held.number; });
    if (report == found.end()) {
      const auto alive = list_.find(held.number);
      report = found.insert(found.end(), {held.number, alive == list_.end() ? 0 : alive->second.since_ms, false, {}});
    }
    report->parts.push_back({news.worker, held});
  }
  heard_from(at, news.worker);
}

void Generations::ended(std::uint16_t worker) {
  for (auto at = asked_.begin(); at != asked_.end();) heard_from(at++, worker);
}

void Generations::heard_from(std::map<std::uint64_t, Asked>::iterator at, std::uint16_t worker) {
  std::erase(at->second.waiting, worker);
  if (!at->second.waiting.empty()) return;
  Asked done = std::move(at->second);
  asked_.erase(at);
  std::sort(done.found.begin(), done.found.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  for (GenerationReport& r : done.found) {
    r.serves = r.number == newest();
    std::sort(r.parts.begin(), r.parts.end(), [](const auto& a, const auto& b) { return a.worker < b.worker; });
  }
  done.hear(done.found);
}

}  // namespace sluice::proxy
