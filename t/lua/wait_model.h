// The rules of waits in plain words: a model of a route's slot, its queue, its waits and its timers, without Lua, loop or
// store. t/lua/model_test.cc gives it and the real thing the same random programs and the same course of events.
//
// A program is a list of operations; what each one saw is written to a trace, which the program answers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::lua::wait_model {

// One step of a program. `op` is a letter that model_test.cc's Lua knows too; `child`: what a route inside is asked to do.
struct Op {
  char op = 'r';
  int handle = 0;                      // from 1
  std::string key;                     // what is asked: see Asked
  int count = 0, mode = 0;             // of waits; of a callback its class and what it does
  int time_ms = -1;                    // -1: none
  std::vector<int> list;
  std::vector<Op> child;
};
using Program = std::vector<Op>;

// What a handle leads to.
enum class Leads : std::uint8_t { store, route, methods, internal };
struct Handle {
  Leads leads = Leads::store;
  char store = 'a';
  int route = -1;                      // which kind of route
};
using Kinds = std::vector<std::vector<Handle>>;   // of each kind of route its handles

struct Answer {
  int status = 200;
  std::string text;                    // "#error" or "[body]"
  int cls() const { return (status >= 200 && status < 300) || status == 304 ? 3 : status >= 300 && status < 500 ? 2 : 1; }
};

// The client's side of one request.
struct Client {
  bool gone = false, behind_write = false, holds = false;
  int times = 0;
  Answer answer;
};

class Model {
 public:
  explicit Model(const Kinds& kinds) : kinds_(kinds), in_use_(kinds.size()), made_(kinds.size(), 1) {}

  void start(Client& client, const Program& program, bool safe) {
    start_node(program, 0, safe, client.behind_write, &client, nullptr, 0);
  }
  void client_gone(Client& client) {
    client.gone = true;
    for (auto& n : nodes_)
      if (n->client == &client && n->waits_for_answer) return gone(*n);
  }
  // The owner answers what was asked as the n-th, with this status unless its key says another.
  void deliver(std::size_t n, int status) {
    asked_[n].delivered = true;
    const Asked a = asked_[n];
    if (a.forgotten) return;
    const Answer answer = answer_of(a.key, status);
    if (a.internal) return internal_answered(n, answer);
    Slot& s = a.node->slots[a.handle];
    --a.node->in_flight;
    if (s.writes) hold(*a.node, false);
    complete(*a.node, a.handle, answer);
    settle(*a.node);
  }
  void pass(std::uint64_t us) {
    now_us_ += us;
    for (;;) {
      auto due = timers_.end();
      for (auto i = timers_.begin(); i != timers_.end(); ++i)
        if (i->second.at_us <= now_us_ && (due == timers_.end() || i->second.at_us < due->second.at_us)) due = i;
      if (due == timers_.end()) return;
      const Timer t = due->second;
      timers_.erase(due);
      if (t.deadline) deadline_passed(*t.node);
      else if (t.node->phase == Phase::waiting) resume(*t.node, true);
    }
  }
  // Between two stimuli: what is over is forgotten.
  void sweep() {
    std::erase_if(nodes_, [](const auto& n) { return n->phase == Phase::over; });
    if (outstanding() == 0) asked_.clear();
  }

  std::size_t outstanding() const {
    return static_cast<std::size_t>(std::count_if(asked_.begin(), asked_.end(), [](const Asked& a) { return !a.delivered; }));
  }
  std::size_t asked() const { return asked_.size(); }
  bool waits_to_be_delivered(std::size_t n) const { return !asked_[n].delivered; }
  std::size_t timers() const { return timers_.size(); }
  int kept() const { return kept_; }
  int calls() const { return calls_; }
  std::uint32_t slots_in_use() const { return sum(in_use_); }
  std::uint32_t slots() const { return sum(made_); }

 private:
  enum class Phase : std::uint8_t { running, waiting, finished, over };
  enum class State : std::uint8_t { idle, queued, in_flight, done };
  struct Node;
  struct Slot {
    State state = State::idle;
    Answer answer;
    int cls = 0;
    bool counted = false, writes = false;
    std::string key;
    Program program;                   // of a route inside
    Node* child = nullptr;
    std::size_t internal = 0;          // 1 + its place in asked_
    int callback_class = 0, callback_does = 0;   // does: 1 resumes, 2 fails
  };
  struct Wait {
    char kind = 0;                     // c, h, s
    int wanted = 0, mode = 1, handle = 0, counted = 0;
  };
  struct Node {
    Program program;
    std::size_t at = 0;
    int kind = 0;
    bool safe = true, behind = false, is_gone = false, waits_for_answer = true, resume_asked = false;
    Client* client = nullptr;
    Node* parent = nullptr;            // nullptr with no client: nobody waits any more
    int parent_handle = 0;
    Phase phase = Phase::running;
    bool answering = false;
    std::vector<Slot> slots;           // from 1
    std::vector<int> order;
    int in_flight = 0, held = 0;
    Wait wait;
    Op waiting_op;
    std::uint64_t wait_timer = 0, deadline_timer = 0;
    std::string trace;
  };
  // One event on its way to a store.
  struct Asked {
    Node* node = nullptr;
    int handle = 0;
    std::string key;
    bool delivered = false, forgotten = false, internal = false, safe = true;
  };
  struct Timer {
    std::uint64_t at_us = 0;
    Node* node = nullptr;
    bool deadline = false;
  };

  static std::uint32_t sum(const std::vector<std::uint32_t>& all) {
    std::uint32_t n = 0;
    for (const auto x : all) n += x;
    return n;
  }
  // Keys: "sNNN" is answered in place when no write is before it, with NNN; "w" writes; "r" and "x" are refused before they
  // are sent, a read and a write; any other is a read that its owner answers.
  static bool writes(const std::string& key) { return key == "w"; }
  static bool refused(const std::string& key) { return key == "r" || key == "x"; }
  static Answer answer_of(const std::string& key, int status) {
    const int its = key[0] == 's' ? std::stoi(key.substr(1)) : status;
    return {its, "[=" + std::to_string(its) + "]"};
  }
  static const Answer& refusal() {
    static const Answer a{404, "#no_view"};
    return a;
  }

  std::uint64_t start_timer(Node& n, int ms, bool is_deadline) {
    timers_[++last_timer_] = {now_us_ + static_cast<std::uint64_t>(ms) * 1000, &n, is_deadline};
    return last_timer_;
  }
  void stop_timer(std::uint64_t& id) {
    if (id) timers_.erase(id);
    id = 0;
  }

  Node& start_node(const Program& program, int kind, bool safe, bool behind, Client* client, Node* parent, int handle) {
    nodes_.push_back(std::make_unique<Node>());
    Node& n = *nodes_.back();
    n.program = program;
    n.kind = kind;
    n.safe = safe;
    n.behind = behind;
    n.client = client;
    n.parent = parent;
    n.parent_handle = handle;
    n.slots.resize(kinds_[static_cast<std::size_t>(kind)].size() + 1);
    auto& used = in_use_[static_cast<std::size_t>(kind)];
    ++used;
    made_[static_cast<std::size_t>(kind)] = std::max(made_[static_cast<std::size_t>(kind)], used);
    if (parent) parent->slots[static_cast<std::size_t>(handle)].child = &n;
    run(n);
    return n;
  }

  const Handle& handle(const Node& n, int h) const {
    return kinds_[static_cast<std::size_t>(n.kind)][static_cast<std::size_t>(h) - 1];
  }

  // Runs until it waits or is finished.
  void run(Node& n) {
    n.phase = Phase::running;
    while (n.at < n.program.size()) {
      const Op& op = n.program[n.at++];
      switch (op.op) {
        case 'e': n.trace += enqueue(n, op.handle, op) ? "e" : "!"; break;
        case 'l': n.trace += enqueue_list(n, op) ? "l" : "!"; break;
        case 'q':
          if (!enqueue(n, op.handle, op)) n.trace += "!";
          else if (!wait(n, op, {'h', 0, 0, op.handle, 0})) return;
          break;
        case 'h':
          if (n.slots[static_cast<std::size_t>(op.handle)].state == State::idle) n.trace += "!";
          else if (!wait(n, op, {'h', 0, 0, op.handle, 0})) return;
          break;
        case 'w': if (!wait(n, op, {'c', op.count, op.mode, 0, 0})) return; break;
        case 's': if (!wait(n, op, {'s', 0, 0, 0, 0})) return; break;
        case 'd':
          stop_timer(n.deadline_timer);
          n.deadline_timer = start_timer(n, op.time_ms, true);
          break;
        case 'c':
          n.slots[static_cast<std::size_t>(op.handle)].callback_class = op.count;
          n.slots[static_cast<std::size_t>(op.handle)].callback_does = op.mode;
          break;
        case 'r': n.trace += "r" + result_text(n, op.handle); break;
        case 'b': n.trace += "b" + result_text(n, pick(n, op.list, true)); break;
        case 'x': n.trace += "x" + result_text(n, pick(n, op.list, false)); break;
        case 'g': {
          const Slot& s = n.slots[static_cast<std::size_t>(op.handle)];
          const int cls = s.state == State::done ? s.cls : 0;
          n.trace += std::string("g") + (cls >= 3 ? "1" : "0") + (cls >= 2 ? "1" : "0") + (cls >= 1 ? "1" : "0");
          break;
        }
        case 'k': n.trace += cancelled(n) ? "k1" : "k0"; break;
        case 'n': n.trace += "n" + std::to_string(calls_); break;
        case 'z': return failed(n);
        case 'y': return finish(n, {500, "#lua"});
        case 'p':
          if (const Slot& s = n.slots[static_cast<std::size_t>(op.handle)]; s.state == State::done) return finish(n, s.answer);
          n.trace += "p";
          break;
        default: n.trace += "?"; break;
      }
    }
    finish(n, {200, "[" + n.trace + "]"});
  }

  bool busy(const Node& n, int h) const {
    const State s = n.slots[static_cast<std::size_t>(h)].state;
    return s == State::queued || s == State::in_flight;
  }
  bool enqueue(Node& n, int h, const Op& op) {
    if (busy(n, h)) return false;
    Slot& s = n.slots[static_cast<std::size_t>(h)];
    s.state = State::queued;
    s.counted = s.writes = false;
    s.cls = 0;
    s.key = op.key;
    s.program = op.child;
    n.order.push_back(h);
    return true;
  }
  // All or none.
  bool enqueue_list(Node& n, const Op& op) {
    for (std::size_t i = 0; i < op.list.size(); ++i)
      if (busy(n, op.list[i]) || std::count(op.list.begin(), op.list.end(), op.list[i]) > 1) return false;
    for (const int h : op.list) enqueue(n, h, op);
    return true;
  }

  // True: it is over at once, and what it gave is in the trace.
  bool wait(Node& n, const Op& op, Wait w) {
    n.resume_asked = false;
    n.waiting_op = op;
    if (w.kind != 's') dispatch(n);
    n.wait = w;
    if (satisfied(n)) {
      n.trace += wait_text(n, false);
      return true;
    }
    n.phase = Phase::waiting;
    if (op.time_ms >= 0) n.wait_timer = start_timer(n, op.time_ms, false);
    return false;
  }
  bool satisfied(Node& n) {
    Wait& w = n.wait;
    if (w.kind == 's') return false;
    if (w.kind == 'h') {
      Slot& s = n.slots[static_cast<std::size_t>(w.handle)];
      if (s.state == State::done || s.state == State::idle) return s.counted = true;
      return std::exchange(n.resume_asked, false);
    }
    if (w.wanted == 0) return true;
    // Results that no wait has taken yet are taken in the order of the handles, until the wait is over.
    for (Slot& s : n.slots) {
      if (s.state != State::done || s.counted) continue;
      s.counted = true;
      if (s.cls < (w.mode == 4 ? 2 : w.mode)) continue;
      if (++w.counted == w.wanted || (w.mode == 4 && s.cls == 3)) return true;
    }
    return std::exchange(n.resume_asked, false) || n.in_flight == 0;
  }
  std::string wait_text(Node& n, bool late) {
    switch (n.wait.kind) {
      case 's': return "s";
      case 'c': return "w" + std::to_string(n.wait.counted) + (late ? "L" : "");
      default: break;
    }
    const Slot& s = n.slots[static_cast<std::size_t>(n.wait.handle)];
    return s.state == State::done ? "h" + std::to_string(s.answer.status) + s.answer.text : late ? "hL" : "hN";
  }
  void resume(Node& n, bool late) {
    stop_timer(n.wait_timer);
    if (late && n.wait.kind != 's' && satisfied(n)) late = false;
    n.trace += wait_text(n, late);
    run(n);
  }
  void settle(Node& n) {
    if (n.phase == Phase::waiting) {
      if (satisfied(n)) resume(n, false);
    } else {
      release_if_done(n);
    }
  }

  // A read is not answered in place while a write of its route, or of one that it asked, or before it on its connection
  // may still change its store.
  bool elsewhere(const Node& n, char store) const {
    if (n.behind) return true;
    for (std::size_t h = 1; h < n.slots.size(); ++h) {
      const Slot& s = n.slots[h];
      if (s.state != State::in_flight || !s.writes) continue;
      const Handle& to = handle(n, static_cast<int>(h));
      if (store == 0 || to.leads != Leads::store || to.store == store) return true;
    }
    return false;
  }
  void dispatch(Node& n) {
    for (std::size_t i = 0; i < n.order.size(); ++i) send(n, n.order[i]);
    n.order.clear();
  }
  void send(Node& n, int h) {
    Slot& s = n.slots[static_cast<std::size_t>(h)];
    const Handle& to = handle(n, h);
    if (to.leads == Leads::store) {
      if (refused(s.key)) return complete(n, h, refusal());
      s.writes = writes(s.key);
      if (s.key[0] == 's' && !elsewhere(n, to.store)) return complete(n, h, answer_of(s.key, 200));
      s.state = State::in_flight;
      ++n.in_flight;
      if (s.writes) hold(n, true);
      asked_.push_back({&n, h, s.key, false, false, false, !s.writes});
      return;
    }
    if (to.leads == Leads::methods && s.key == "P") return complete(n, h, {405, "#method"});
    const bool behind = elsewhere(n, 0);
    s.state = State::in_flight;
    s.writes = false;
    ++n.in_flight;
    ++kept_;
    if (to.leads != Leads::internal) {
      start_node(s.program, to.route, s.key == "G", behind, nullptr, &n, h);
      return;
    }
    if (refused(s.key)) return sub_answered(&n, h, refusal());
    if (s.key[0] == 's' && !behind) return sub_answered(&n, h, answer_of(s.key, 200));
    asked_.push_back({&n, h, s.key, false, false, true, !writes(s.key)});
    s.internal = asked_.size();
    if (writes(s.key)) sub_holds(&n, h, true);
  }
  void internal_answered(std::size_t at, const Answer& answer) {
    const Asked a = asked_[at];
    if (a.node && writes(a.key)) sub_holds(a.node, a.handle, false);
    sub_answered(a.node, a.handle, answer);
  }

  void hold(Node& n, bool held) {
    n.held += held ? 1 : -1;
    if (n.held != (held ? 1 : 0)) return;
    tell_held(n, held);
  }
  void tell_held(Node& n, bool held) {
    if (!n.waits_for_answer) return;
    if (n.client) n.client->holds = held;
    else sub_holds(n.parent, n.parent_handle, held);
  }
  void sub_holds(Node* parent, int h, bool held) {
    if (!parent) return;
    parent->slots[static_cast<std::size_t>(h)].writes = held;
    hold(*parent, held);
  }

  void complete(Node& n, int h, const Answer& answer) {
    Slot& s = n.slots[static_cast<std::size_t>(h)];
    s.state = State::done;
    s.answer = answer;
    s.cls = answer.cls();
    s.child = nullptr;
    s.internal = 0;
    ++calls_;
    n.trace += "<" + std::to_string(h) + ":" + std::to_string(answer.status) + ">";
    if (s.callback_does == 2) return;
    if (s.callback_class >= 1 && s.callback_class <= 3) s.cls = s.callback_class;
    if (s.callback_does == 1) n.resume_asked = true;
  }
  void sub_answered(Node* parent, int h, const Answer& answer) {
    --kept_;
    if (!parent) return;
    Slot& s = parent->slots[static_cast<std::size_t>(h)];
    --parent->in_flight;
    if (std::exchange(s.writes, false)) hold(*parent, false);
    complete(*parent, h, answer);
    settle(*parent);
  }

  void finish(Node& n, Answer answer) {
    n.phase = Phase::finished;
    dispatch(n);
    reply(n, answer);
    release_if_done(n);
  }
  void failed(Node& n) {
    n.phase = Phase::finished;
    for (const int h : n.order) n.slots[static_cast<std::size_t>(h)].state = State::idle;
    n.order.clear();
    reply(n, {500, "#lua"});
    release_if_done(n);
  }
  void reply(Node& n, const Answer& answer) {
    stop_timer(n.deadline_timer);
    if (!std::exchange(n.waits_for_answer, false)) return;
    n.answering = true;
    if (n.client) {
      ++n.client->times;
      n.client->answer = answer;
    } else {
      sub_answered(n.parent, n.parent_handle, answer);
    }
    n.answering = false;
  }
  void release_if_done(Node& n) {
    if (n.phase != Phase::finished || n.in_flight > 0 || !n.order.empty() || n.answering) return;
    n.phase = Phase::over;
    --in_use_[static_cast<std::size_t>(n.kind)];
  }

  bool cancelled(const Node& n) const {
    if (n.is_gone || !n.waits_for_answer) return true;
    if (n.client) return n.client->gone;
    return n.parent == nullptr || cancelled(*n.parent);
  }
  void gone(Node& n) {
    n.is_gone = true;
    if (n.phase != Phase::waiting || !n.safe) return;
    abandon(n);
    reply(n, {0, ""});
    release_if_done(n);
  }
  void deadline_passed(Node& n) {
    n.deadline_timer = 0;
    if (n.phase != Phase::waiting) return;
    abandon(n);
    reply(n, {504, "#deadline"});
    release_if_done(n);
  }
  void abandon(Node& n) {
    stop_timer(n.wait_timer);
    n.phase = Phase::finished;
    for (std::size_t h = 1; h < n.slots.size(); ++h) {
      Slot& s = n.slots[h];
      const bool under_way = s.state == State::in_flight;
      s.state = State::idle;
      if (!under_way) continue;
      if (Node* child = std::exchange(s.child, nullptr)) {
        child->parent = nullptr;
        gone(*child);
        continue;
      }
      for (Asked& a : asked_) {
        if (a.node != &n || a.handle != static_cast<int>(h) || a.delivered || a.forgotten) continue;
        a.node = nullptr;
        // What goes through a route in C++ is let go like any route: a write runs on.
        if (!a.internal || a.safe) a.forgotten = true;
        if (a.internal && a.safe) --kept_;
      }
    }
    n.order.clear();
    n.in_flight = 0;
    if (std::exchange(n.held, 0) > 0) tell_held(n, false);
  }

  int pick(const Node& n, const std::vector<int>& list, bool best) const {
    int chosen = 0, its = 0;
    for (const int h : list) {
      const Slot& s = n.slots[static_cast<std::size_t>(h)];
      if (s.state != State::done) continue;
      const bool better = best ? its != 3 && s.cls >= its : s.cls <= its;
      if (chosen != 0 && !better) continue;
      chosen = h;
      its = s.cls;
    }
    return chosen;
  }
  std::string result_text(const Node& n, int h) const {
    if (h == 0) return "-";
    const Slot& s = n.slots[static_cast<std::size_t>(h)];
    if (s.state != State::done) return "-";
    return std::to_string(s.answer.status) + ":" + std::to_string(s.cls) + s.answer.text;
  }

  const Kinds& kinds_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Asked> asked_;
  std::map<std::uint64_t, Timer> timers_;
  std::uint64_t last_timer_ = 0, now_us_ = 0;
  int kept_ = 0, calls_ = 0;
  std::vector<std::uint32_t> in_use_, made_;
};

}  // namespace sluice::lua::wait_model
