#include "proxy/crew.h"

#include <spdlog/fmt/fmt.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "vm/base/check.h"

namespace sluice::proxy {
namespace {

constexpr std::size_t kWorkerDescriptors = 8;   // of each worker: its loop and its inboxes
constexpr std::size_t kSpareDescriptors = 64;   // for the connections that others accept meanwhile

// Whether so many more can be opened. libevent ends the process when it cannot.
bool descriptors_left(std::size_t count) {
  std::vector<int> opened;
  while (opened.size() < count) {
    const int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0) break;
    opened.push_back(fd);
  }
  for (const int fd : opened) close(fd);
  return opened.size() == count;
}

}  // namespace

std::vector<std::uint16_t> Crew::indices(std::uint16_t wanted) const {
  std::vector<std::uint16_t> all;
  for (std::uint16_t i = 0; i < std::max<std::size_t>(wanted, members_.size()); ++i)
    if (i < wanted || members_[i].state == State::serves || members_[i].state == State::leaves) all.push_back(i);
  return all;
}

void Crew::make_room(std::uint16_t wanted, const std::function<void()>& wait) {
  // Those have nothing left to do: their last word is on its way.
  for (std::uint16_t i = 0; i < wanted && i < members_.size(); ++i)
    while (members_[i].state == State::ends) wait();
}

Result<void, std::string> Crew::check_descriptors(std::uint16_t wanted) const {
  std::size_t missing = 0;
  for (std::uint16_t i = 0; i < wanted; ++i)
    if (i >= members_.size() || members_[i].state == State::none) ++missing;
  if (missing == 0) return {};
  if (descriptors_left(kWorkerDescriptors * missing + (members_.empty() ? 0 : kSpareDescriptors))) return {};
  return fmt::format("no descriptors are left for {} threads; raise the limit (ulimit -n)", missing);
}

void Crew::install(std::uint16_t wanted, std::vector<Generation> generations, const ListeningOf& listening, std::uint64_t wall_ms) {
  const std::vector<std::uint16_t> all = indices(wanted);
  SLUICE_CHECK(all.size() == generations.size());
  if (members_.size() < wanted) members_.resize(wanted);
  // Engines first: a store that answers knows every worker.
  std::vector<std::unique_ptr<Engine>> engines(wanted);
  for (std::uint16_t i = 0; i < wanted; ++i) {
    Member& m = members_[i];
    if (m.worker) continue;
    if (!counters_[i]) {
      counters_[i] = std::make_unique<Counters>();
      counted_.store(static_cast<std::uint16_t>(i + 1), std::memory_order_release);
    }
    m.worker = std::make_unique<Worker>(i, limits_, news_, *counters_[i]);
    engines[i] = engine_.worker(i, m.worker->results());
  }
  for (std::size_t n = 0; n < all.size(); ++n) {
    const std::uint16_t i = all[n];
    Member& m = members_[i];
    const bool serves = i < wanted;
    std::vector<Listening> its = serves ? listening(i) : std::vector<Listening>();
    m.sent = generations[n].number;
    generations_.given(m.sent, wall_ms);
    if (m.state == State::none) {
      m.drained = false;
      m.worker->start(std::move(engines[i]), std::move(its), std::move(generations[n]));
    } else {
      // There is room: at most one generation is on its way to a worker, as reloads wait for the last to be taken over.
      SLUICE_CHECK(m.worker->install(std::move(generations[n]), std::move(its), !serves).has_value());
    }
    m.state = serves ? State::serves : State::leaves;
  }
  size_.store(wanted, std::memory_order_relaxed);
}

void Crew::listen(const ListeningOf& listening) {
  for (std::uint16_t i = 0; i < size(); ++i) SLUICE_CHECK(members_[i].worker->listen(listening(i)).has_value());
}

bool Crew::switching() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) {
    return (m.state == State::serves || m.state == State::leaves) && m.taken != m.sent;
  });
}

void Crew::hear(const News& news) {
  Member& m = members_[news.worker];
  switch (news.kind) {
    case News::Kind::installed: m.taken = news.generation.number; return;
    case News::Kind::retired: generations_.returned(news.generation.number); return;
    case News::Kind::held: generations_.answered(news); return;
    case News::Kind::drained:
      // An older word than the last generation is of a worker that was taken back.
      if (news.generation.number != m.sent) return;
      m.drained = true;
      if (m.state != State::leaves) return;
      m.state = State::ends;
      m.worker->end();
      return;
    case News::Kind::ended:
      generations_.ended(news.worker);
      if (m.state == State::ends) finish(news.worker);
      return;
    case News::Kind::answered: return;
  }
}

// Of one that has left and said that it ended: it has no more to say.
void Crew::finish(std::uint16_t index) {
  Member& m = members_[index];
  m.worker->join();
  m.worker.reset();
  m.state = State::none;
  Counters& c = *counters_[index];
  for (Counter* now : {&c.route_slots, &c.route_slots_in_use, &c.route_memory_bytes}) now->set(0);
}

void Crew::report(Generations::Hear hear) {
  std::vector<std::uint16_t> asked = indices(0);
  if (asked.empty()) return hear({});
  const std::uint64_t number = generations_.ask(asked, std::move(hear));
  for (const std::uint16_t i : asked)
    if (!members_[i].worker->report(number)) generations_.ended(i);
}

void Crew::drain(const std::function<void()>& wait) {
  const std::vector<std::uint16_t> all = indices(0);
  for (const std::uint16_t i : all) {
    members_[i].drained = false;
    members_[i].worker->drain();
  }
  while (std::any_of(all.begin(), all.end(), [this](std::uint16_t i) { return members_[i].worker && members_[i].state != State::ends && !members_[i].drained; })) wait();
}

void Crew::end() {
  for (Member& m : members_)
    if (m.worker && m.state != State::ends) m.worker->end();
  for (Member& m : members_)
    if (m.worker) m.worker->join();
}

std::uint64_t Crew::sum(Counter Counters::*counter) const {
  std::uint64_t n = 0;
  const std::uint16_t count = counted_.load(std::memory_order_acquire);
  for (std::uint16_t i = 0; i < count; ++i) n += (counters_[i].get()->*counter).get();
  return n;
}

}  // namespace sluice::proxy
