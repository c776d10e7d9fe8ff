// A worker's place for routes made from config text: the test answers events, lets time pass and reads answers.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lua/config.h"
#include "proxy/config.h"
#include "proxy/log.h"
#include "proxy/module_call.h"

namespace sluice::lua::harness {

using namespace sluice::proxy;
using sluice::lua::make_config_reader;

class Lines final : public Log {
 public:
  void write(LogLevel level, std::string_view line) override { lines.emplace_back(line); }
  bool takes(LogLevel) const override { return true; }
  void set_level(LogLevel) override {}
  bool has(std::string_view part) const {
    for (const std::string& l : lines)
      if (l.find(part) != l.npos) return true;
    return false;
  }
  std::vector<std::string> lines;
};

class TestStore final : public Store {
 public:
  explicit TestStore(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  bool serves_objects() const override { return true; }
  bool has_remove() const override { return true; }
  std::uint32_t shards() const override { return 1; }
  bool has_view(std::string_view view) const override { return view != "absent"; }
  bool has_input(std::string_view input) const override { return input != "absent"; }
  bool input_takes_body(std::string_view) const override { return true; }
  std::uint64_t changes() const override { return commits; }
  std::uint64_t commits = 1;             // 0: it cannot say

 private:
  const std::string name_;
};

// Answers what a store is asked. Default: 200 "STORE verb NAME fields body".
using Answerer = std::function<void(Event&)>;

class TestServices final : public Services, public Engine {
 public:
  struct Sent {
    EventPtr event;
    Waiter* waiter = nullptr;
    std::uint32_t tag = 0;
    bool forgotten = false;
  };
  struct Timer {
    std::uint64_t at_us = 0;
    Waiter* waiter = nullptr;
    std::uint32_t tag = 0;
  };

  Engine& engine() override { return *this; }
  EventPtr take_event() override {
    if (pool_.empty()) {
      ++made;
      return std::make_unique<Event>();
    }
    EventPtr e = std::move(pool_.back());
    pool_.pop_back();
    return e;
  }
  void recycle(EventPtr event) override {
    event->reset();
    pool_.push_back(std::move(event));
  }
  Ticket submit(EventPtr event, Waiter* waiter, std::uint32_t tag) override {
    sent.push_back({std::move(event), waiter, tag, false});
    return {static_cast<std::uint32_t>(sent.size() - 1), 1, tag};
  }
  void forget(const Ticket& t) override { sent.at(t.slot).forgotten = true; }
  void keep() override { ++kept; }
  void let_go() override { --kept; }
  TimerId start_timer(std::uint64_t delay_us, Waiter* waiter, std::uint32_t tag) override {
    timers.emplace(++last_timer_, Timer{now_us + delay_us, waiter, tag});
    return {last_timer_, 1};
  }
  void stop_timer(TimerId& id) override {
    if (id.generation) timers.erase(id.slot);
    id = {};
  }
  std::uint64_t monotonic_us() override { return now_us; }
  std::uint64_t wall_ms() override { return now_us / 1000; }
  std::uint16_t worker_index() override { return 0; }
  Budget& budget() override { return the_budget; }
  const Settings& settings() override { return the_settings; }

  bool prepare(Event& event, const Call& call) override {
    event.verb = call.verb;
    event.writes = call.verb == Verb::input || call.verb == Verb::edit || call.verb == Verb::remove;
    event.key = call.name;
    event.store = call.store;
    event.body = call.body;
    event.condition = call.condition;
    event.revision = call.revision;
    event.fields.clear();
    for (const Parameter& p : call.query) event.fields.append(event.fields.empty() ? "" : "&").append(p.name).append("=").append(p.value);
    if (call.name != "refused") return true;
    event.answer.status = 404;
    event.answer.error = Errc::no_view;
    event.answer.body.text = "no such view\n";
    return false;
  }
  bool evaluate(Event& event) override {
    if (!(evaluates_if ? evaluates_if(event) : evaluates)) return false;
    ++evaluated;
    answer(event);
    return true;
  }
  void enqueue(EventPtr) override {}
  void flush(const std::function<void(EventPtr)>&) override {}

  void answer(Event& e) {
    static constexpr const char* kVerbs[] = {"view", "input", "show", "edit", "remove"};
    e.answer.type = ContentType::text;
    e.answer.body.text.assign(e.store->name()).append(" ").append(kVerbs[static_cast<int>(e.verb)]).append(" ").append(e.key);
    if (!e.fields.empty()) e.answer.body.text.append(" ").append(e.fields);
    if (e.body) e.answer.body.text.append(" [").append(e.body.view()).append("]");
    if (answerer) answerer(e);
  }
  // The owner answers the n-th event that was sent.
  void deliver(std::size_t n) {
    EventPtr e = std::move(sent.at(n).event);
    REQUIRE(e != nullptr);
    answer(*e);
    if (sent[n].forgotten) return recycle(std::move(e));
    sent[n].waiter->answered(sent[n].tag, std::move(e));
  }
  void deliver_all() {
    for (std::size_t n = 0; n < sent.size(); ++n)
      if (sent[n].event) deliver(n);
    sent.clear();
  }
  void pass(std::uint64_t us) {
    now_us += us;
    for (;;) {
      auto due = timers.end();
      for (auto i = timers.begin(); i != timers.end(); ++i)
        if (i->second.at_us <= now_us && (due == timers.end() || i->second.at_us < due->second.at_us)) due = i;
      if (due == timers.end()) return;
      const Timer t = due->second;
      timers.erase(due);
      t.waiter->timed_out(t.tag);
    }
  }

  bool evaluates = false;
  std::function<bool(const Event&)> evaluates_if;   // instead, when set
  int evaluated = 0, made = 0, kept = 0;
  Answerer answerer;
  std::uint64_t now_us = 1'000'000;
  std::vector<Sent> sent;
  std::map<std::uint32_t, Timer> timers;
  Budget the_budget{16u << 20};
  Settings the_settings;

 private:
  std::vector<EventPtr> pool_;
  std::uint32_t last_timer_ = 0;
};

class TestExchange final : public Exchange {
 public:
  explicit TestExchange(Method method, std::string path, std::string_view sent = "") : path_(std::move(path)) {
    request_.method = method;
    request_.method_text = name(method);
    const std::size_t at = path_.find('?');
    request_.path = std::string_view(path_).substr(0, at);
    std::string_view query = at == path_.npos ? std::string_view() : std::string_view(path_).substr(at + 1);
    while (!query.empty()) {
      const std::string_view pair = query.substr(0, query.find('&'));
      request_.query.push_back({pair.substr(0, pair.find('=')), pair.substr(pair.find('=') + 1)});
      query.remove_prefix(std::min(query.size(), pair.size() + 1));
    }
    request_.client_ip = "192.0.2.7";
    request_.fd = 42;
    if (!sent.empty()) {
      request_.body = Buffer::copy(sent, nullptr);
      request_.has_length = true;
    }
  }
  const Request& request() const override { return request_; }
  bool gone() const override { return is_gone; }
  void answer(Response& r) override {
    ++times;
    status = r.status;
    error = r.error;
    retry_after_s = r.retry_after_s;
    allow = r.allow;
    headers = r.headers;
    type = r.content_type;
    body = r.body.flat();
    r.reset();
  }
  bool behind_write() const override { return is_behind_write; }
  void hold_writes(bool held) override { holds = held; }

  Request& edit() { return request_; }
  int times = 0;
  std::uint16_t status = 0;
  Errc error = Errc::none;
  std::uint32_t retry_after_s = 0;
  std::uint32_t allow = 0;
  std::string headers, type, body;
  bool is_gone = false, is_behind_write = false, holds = false;

 private:
  const std::string path_;
  Request request_;
};

// A config file in a folder of its own, removed with it.
class TempFile {
 public:
  explicit TempFile(std::string_view text) {
    char folder[] = "/tmp/sluice-lua-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    folder_ = folder;
    add("t.lua", text);
  }
  ~TempFile() {
    for (const std::string& f : files_) unlink(f.c_str());
    rmdir(folder_.c_str());
  }
  void add(const std::string& file, std::string_view text) {
    const std::string path = folder_ + "/" + file;
    std::FILE* f = std::fopen(path.c_str(), "wb");
    REQUIRE(f != nullptr);
    std::fwrite(text.data(), 1, text.size(), f);
    std::fclose(f);
    files_.push_back(path);
  }
  std::string path() const { return folder_ + "/t.lua"; }

 private:
  std::string folder_;
  std::vector<std::string> files_;
};

inline std::shared_ptr<const StoreSet> stores_of(const Config& config) {
  auto set = std::make_shared<StoreSet>();
  for (const StoreSpec& s : config.stores()) set->stores.push_back(std::make_shared<TestStore>(s.name));
  return set;
}

inline constexpr std::string_view kStores =
    "stores { a = { module = 'm', path = 'da' }, b = { module = 'm', path = 'db' }, c = { module = 'm', path = 'dc' } } ";

// A worker with the routes of a config.
struct World {
  explicit World(std::string_view text, bool with_stores = true)
      : file((with_stores ? std::string(kStores) : std::string()) + std::string(text)), reader(make_config_reader(&log)) {
    auto read = reader->read(file.path());
    if (!read) FAIL(read.error());
    config = *read;
    auto made = config->make_routes(stores_of(*config), 0);
    if (!made) FAIL(made.error());
    table = std::move(*made);
    table->attach(services);
  }
  ~World() {
    CHECK(table->slots_in_use() == 0);
    CHECK(services.kept == 0);
  }

  // Starts a request; it may be answered on return.
  std::unique_ptr<TestExchange> begin(Method method, std::string path, std::string body = "") {
    auto x = std::make_unique<TestExchange>(method, std::move(path), std::move(body));
    start(*x);
    return x;
  }
  void start(TestExchange& x) {
    route = table->find(x.request().method, x.request().path, match);
    REQUIRE(route != nullptr);
    route->start(x, match, services);
  }
  std::unique_ptr<TestExchange> get(std::string path) {
    auto x = begin(Method::get, std::move(path));
    for (int i = 0; i < 1000 && x->times == 0 && !services.sent.empty(); ++i) services.deliver_all();
    services.deliver_all();
    CHECK(x->times == 1);
    return x;
  }

  Lines log;
  TempFile file;
  std::unique_ptr<ConfigReader> reader;
  std::shared_ptr<const Config> config;
  TestServices services;
  std::unique_ptr<RouteTable> table;
  Match match;
  Route* route = nullptr;
};

// route_lua at "/" over the stores a, b and c, with `body` as the request's function and `setup` before it.
inline std::string route(std::string_view body, std::string_view setup = "", std::string_view children = "a = 'a', b = 'b', c = 'c'") {
  return "routes { map = { ['/'] = route_lua { children = { " + std::string(children) + " }, f = function(rctx, h) " +
         std::string(setup) + " return function(r) " + std::string(body) + " end end } } }";
}

// The error that a config of this text gives, in either stage; empty: none.
inline std::string error_of(std::string_view text) {
  const TempFile file(text);
  auto reader = make_config_reader(nullptr);
  auto read = reader->read(file.path());
  std::string why;
  if (!read) {
    why = read.error();
  } else if ((*read)->has_routes()) {
    auto made = (*read)->make_routes(stores_of(**read), 0);
    if (!made) why = made.error();
  }
  // The folder's name is chance.
  const std::size_t slash = why.rfind("t.lua");
  for (std::size_t at = why.find("/tmp/"); at != why.npos && slash != why.npos; at = why.find("/tmp/")) why.erase(at, why.find("t.lua", at) - at);
  return why;
}

}  // namespace sluice::lua::harness
