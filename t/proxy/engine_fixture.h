// Real stores in a folder of their own, real modules, and a thread of the test's in the place of a worker.
#pragma once
#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine/control.h"

namespace sluice::proxy {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-engine-XXXXXX").string();
    SLUICE_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string write(std::string_view name, std::string_view text) const {
    const std::string path = *this / name;
    std::FILE* f = std::fopen(path.c_str(), "wb");
    SLUICE_CHECK(f != nullptr);
    SLUICE_CHECK(std::fwrite(text.data(), 1, text.size(), f) == text.size());
    std::fclose(f);
    return path;
  }

 private:
  std::string path_;
};

// The clock and the disk as the test wants them.
struct World {
  std::atomic<std::uint64_t> wall_ms{1'700'000'000'000};
  std::atomic<int> before_commit{0};                     // errno of the next commits, 0: none
  std::atomic<store::Faults::Commit> commit{store::Faults::Commit::none};
  std::atomic<bool> hold{false};                         // commits wait while it is set
  std::atomic<int> commits{0};
  bool timers = true;                                    // run by themselves

  EngineOptions options() {
    EngineOptions o;
    o.context = this;
    o.wall_ms = [](void* w) { return static_cast<World*>(w)->wall_ms.load(); };
    o.timers = timers;
    o.store.map_bytes = std::uint64_t{1} << 32;          // what a thread sanitizer has room for
    o.store.grow_bytes = std::uint64_t{1} << 20;
    o.store.any_filesystem = true;
    o.store.faults.context = this;
    o.store.faults.before_commit = [](void* context) {
      auto* w = static_cast<World*>(context);
      w->commits.fetch_add(1);
      w->commits.notify_all();
      w->hold.wait(true);
      return w->before_commit.load();
    };
    o.store.faults.commit = [](void* w) { return static_cast<World*>(w)->commit.load(); };
    return o;
  }
  void let_go() {
    hold.store(false);
    hold.notify_all();
  }
};

struct Bench {
  explicit Bench(std::initializer_list<std::pair<const char*, const char*>> modules, std::uint32_t shards = 1)
      : control(make_engine(world.options())) {
    engine = control->worker(0, results);
    for (const auto& [name, text] : modules) {
      StoreSpec spec;
      spec.name = name;
      spec.module_path = folder.write(std::string(name) + ".aup", text);
      spec.path = folder / (std::string(name) + ".db");
      spec.shards = shards;
      specs.push_back(spec);
    }
  }
  ~Bench() {
    world.let_go();
    // As a worker that goes on draining until the engine has stopped.
    set.reset();
    engine.reset();
    control->stop();
  }

  // Empty, or why not.
  std::string load() {
    auto plan = control->prepare(specs);
    if (!plan) return plan.error();
    set = control->apply(std::move(*plan));
    return {};
  }
  StorePtr store(std::string_view name = {}) const { return name.empty() ? set->stores.front() : set->find(name); }

  static Call call(Verb verb, std::string_view name) {
    Call c;
    c.verb = verb;
    c.name = name;
    return c;
  }
  // Sends without waiting. False: it was answered at once, and `last` has it.
  bool send(Call c, std::uint32_t tag = 0, bool here = false) {
    if (!c.store) c.store = store();
    auto event = std::make_unique<Event>();
    event->ticket.tag = tag;
    if (!engine->prepare(*event, c) || (here && engine->evaluate(*event))) {
      last = std::move(event);
      return false;
    }
    engine->enqueue(std::move(event));
    return true;
  }
  void flush() {
    engine->flush([this](EventPtr e) { refused.push_back(std::move(e)); });
  }
  // The next `n` answers, in the order they came.
  std::vector<EventPtr> wait(std::size_t n) {
    std::vector<EventPtr> got;
    while (got.size() < n) {
      results.drain([&](EventPtr&& e) { got.push_back(std::move(e)); });
      if (got.size() < n) results.wake().wait(-1);
    }
    return got;
  }
  // One call from asking to its answer: by its owner, or `here`, on a snapshot when that may be.
  const Answer& ask(Call c, bool here = false) {
    evaluated = here;
    if (send(std::move(c), 0, here)) {
      evaluated = false;
      flush();
      last = std::move(wait(1).front());
    } else {
      flush();
    }
    return last->answer;
  }
  std::string text() const {
    const Body& body = last->answer.body;
    if (!body.loan) return std::string(body.flat());
    std::string all;
    for (const std::string_view piece : body.pieces) all.append(piece);
    return all;
  }
  std::string view(std::string_view name, bool here = true) {
    ask(call(Verb::view, name), here);
    return text();
  }
  const Answer& post(std::string_view name, std::vector<Parameter> query = {}, std::string_view body = {}) {
    Call c = call(Verb::input, name);
    c.query = query;
    if (!body.empty()) c.body = Buffer::copy(body, nullptr);
    return ask(std::move(c));
  }
  static Call edit(std::string_view key, std::uint64_t revision, std::string_view body) {
    Call c = call(Verb::edit, key);
    c.condition = revision == 0 ? Condition::absent : Condition::match;
    c.revision = revision;
    c.body = Buffer::copy(body, nullptr);
    return c;
  }
  const Answer& put(std::string_view key, std::uint64_t revision, std::string_view body) {
    return ask(edit(key, revision, body));
  }
  const Answer& get(std::string_view key, bool here = true) { return ask(call(Verb::show, key), here); }
  const Answer& remove(std::string_view key, std::uint64_t revision) {
    Call c = call(Verb::remove, key);
    c.condition = Condition::match;
    c.revision = revision;
    return ask(std::move(c));
  }

  Folder folder;
  World world;
  Inbox<EventPtr> results{"worker.0.results", 200'000};
  std::unique_ptr<EngineControl> control;
  std::unique_ptr<Engine> engine;
  std::vector<StoreSpec> specs;
  std::shared_ptr<const StoreSet> set;
  EventPtr last;
  std::vector<EventPtr> refused;
  bool evaluated = false;
};

}  // namespace sluice::proxy
