// Random route programs against the plain model of the wait rules (wait_model.h): the same answers, callbacks, timers,
// holds and slots after each event, and nothing left behind.
//
// Several requests run at once; routes ask stores, each other (three deep), by method, and all stores by name; answers come
// in any order or in place, time passes, clients leave. A difference prints the program and its seed:
//   SLUICE_MODEL_SEED=N SLUICE_MODEL_PROGRAMS=1 lua_test -tc='*the plain model*'
#include <cstdlib>
#include <random>

#include "t/lua/harness.h"
#include "t/lua/wait_model.h"

using namespace sluice::lua::harness;
using sluice::lua::wait_model::Client;
using sluice::lua::wait_model::Handle;
using sluice::lua::wait_model::Kinds;
using sluice::lua::wait_model::Leads;
using sluice::lua::wait_model::Model;
using sluice::lua::wait_model::Op;
using sluice::lua::wait_model::Program;

namespace {

// Kinds of route: 0 the outermost, 1 in the middle, 2 a leaf. Lua below makes the same.
const Kinds kKinds = {
    {{Leads::store, 'a'}, {Leads::store, 'b'}, {Leads::store, 'a'}, {Leads::route, 0, 1}, {Leads::route, 0, 2}, {Leads::methods, 0, 2}, {Leads::internal}},
    {{Leads::store, 'a'}, {Leads::store, 'b'}, {Leads::store, 'a'}, {Leads::route, 0, 2}, {Leads::route, 0, 2}},
    {{Leads::store, 'a'}, {Leads::store, 'b'}, {Leads::store, 'a'}},
};

constexpr std::string_view kRoutes = R"lua(
function sluice_config_pools()
  return { a = sluice.store { name = "a", module = "m", path = "a" }, b = sluice.store { name = "b", module = "m", path = "b" } }
end
local calls = 0
local function text(res) return res:status() .. (res:error() ~= "none" and "#" .. res:error() or "[" .. res:body() .. "]") end

local function make(kinds, targets)
  local g = sluice.funcgen_new()
  local h, number = {}, {}
  for i, t in ipairs(targets) do h[i] = g:new_handle(t) number[h[i]] = i end
  g:ready { f = function(rctx)
    local out, callbacks
    for i = 1, #h do
      rctx:handle_set_cb(h[i], function(res)
        calls = calls + 1
        out[#out + 1] = "<" .. i .. ":" .. res:status() .. ">"
        local c = callbacks[i]
        if not c then return end
        if c.does == 2 then error("a callback that fails") end
        return c.class, c.does == 1 and sluice.WAIT_RESUME or nil
      end)
    end
    local function made(i, key, program)
      if kinds[i] == "route" then return rctx:request_new(key == "P" and "POST" or "GET", "/"):set_query("p", program) end
      local write = key == "w" or key == "x"
      return rctx:request_new(write and "POST" or "GET", kinds[i] .. (write and "/inputs/" .. (key == "x" and "refused" or "say")
        or "/objects/" .. (key == "r" and "refused" or key)))
    end
    local asks = {
      enqueue = function(i, key, program, n)
        if n % 2 == 0 and kinds[i] == "" then
          if key == "w" or key == "x" then return rctx:post(h[i], key == "x" and "refused" or "say") end
          return rctx:get(h[i], key == "r" and "refused" or key)
        end
        local r = made(i, key, program)
        rctx:enqueue(r, h[i])
        r:set_path("/edited"):set_query("p", "z0()")        -- what was enqueued is frozen
      end,
      wait = function(i, key, program, n, t)
        if n % 2 == 0 and kinds[i] == "" then
          if key == "w" or key == "x" then return rctx:post_and_wait(h[i], key == "x" and "refused" or "say", nil, nil, t) end
          return rctx:get_and_wait(h[i], key == "r" and "refused" or key, t)
        end
        return rctx:enqueue_and_wait(made(i, key, program), h[i], t)
      end }
    local function seen(res, class) return res and res:status() .. ":" .. class .. text(res):sub(4) or "-" end
    local function waited(ok, res, late)
      if not ok then return "!" end
      return res and "h" .. text(res) or late and "hL" or "hN"
    end
    return function(r)
      out, callbacks = {}, {}
      local program, at = r:query("p"), 1
      while true do
        local op, args, child, after = program:match("^(%a)([^(]*)(%b())()", at)
        if not op then break end
        at = after
        child = child:sub(2, -2)
        local a = {}
        for word in args:gmatch("[^,]+") do a[#a + 1] = tonumber(word) or word end
        local function seconds(n) return n >= 0 and n / 1000 or nil end
        local function list(from) local l = {} for i = from, #a do l[#l + 1] = h[a[i]] end return l end
        local s
        if op == "e" then s = pcall(asks.enqueue, a[1], a[2], child, at) and "e" or "!"
        elseif op == "l" then s = pcall(rctx.enqueue, rctx, made(1, a[1], child), list(2)) and "l" or "!"
        elseif op == "q" then s = waited(pcall(asks.wait, a[1], a[2], child, at, seconds(a[3])))
        elseif op == "h" then s = waited(pcall(rctx.wait_handle, rctx, h[a[1]], seconds(a[2])))
        elseif op == "w" then
          local n, late = rctx:wait_cond(a[1], a[2], seconds(a[3]))
          s = "w" .. n .. (late and "L" or "")
        elseif op == "s" then s = rctx:sleep(seconds(a[1])) and "s"
        elseif op == "d" then rctx:deadline(seconds(a[1]))
        elseif op == "c" then callbacks[a[1]] = { class = a[2], does = a[3] }
        elseif op == "r" then s = "r" .. seen(rctx:result(h[a[1]]))
        elseif op == "b" then s = "b" .. seen(rctx:best_result(list(1)))
        elseif op == "x" then s = "x" .. seen(rctx:worst_result(list(1)))
        elseif op == "g" then
          s = "g" .. (rctx:res_good(h[a[1]]) and 1 or 0) .. (rctx:res_ok(h[a[1]]) and 1 or 0) .. (rctx:res_any(h[a[1]]) and 1 or 0)
        elseif op == "k" then s = "k" .. (rctx:cancelled() and 1 or 0)
        elseif op == "n" then s = "n" .. calls
        elseif op == "z" then error("the program says so")
        elseif op == "y" then return true
        elseif op == "p" then
          local res = rctx:result(h[a[1]])
          if res then return res end
          s = "p"
        end
        out[#out + 1] = s
      end
      return table.concat(out)
    end
  end }
  return g
end

function sluice_config_routes(conf)
  local leaf = make({ "", "", "" }, { conf.a, conf.b, conf.a })
  local middle = make({ "", "", "", "route", "route" }, { conf.a, conf.b, conf.a, leaf, leaf })
  sluice.attach(sluice.ANY, make({ "", "", "", "route", "route", "route", "/a" },
    { conf.a, conf.b, conf.a, middle, leaf, sluice.methods { GET = leaf }, sluice.internal }))
end
)lua";

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class T, std::size_t N>
  T of(const T (&list)[N]) { return list[below(static_cast<int>(N))]; }

 private:
  std::mt19937_64 random_;
};

constexpr int kTimes[] = {0, 1, 2, 5, 10, 50, 200};
constexpr int kStatus[] = {200, 200, 201, 304, 302, 404, 409, 503, 500};

int time_or_none(Draw& d) { return d.one_in(2) ? -1 : d.of(kTimes); }

Program random_program(Draw& d, int kind, int most) {
  Program p;
  const auto& handles = kKinds[static_cast<std::size_t>(kind)];
  const int count = static_cast<int>(handles.size());
  const auto some_list = [&](int most_of_it) {
    std::vector<int> list;
    for (int n = 1 + d.below(most_of_it); n > 0; --n) list.push_back(1 + d.below(count));
    return list;
  };
  const auto some_key = [&](Leads leads) -> std::string {
    if (leads == Leads::route || leads == Leads::methods) return d.one_in(3) ? "P" : "G";
    static constexpr const char* kKeys[] = {"d", "d", "d", "s200", "s200", "s404", "s503", "w", "w", "r", "x"};
    return d.of(kKeys);
  };
  for (int n = 1 + d.below(most); n > 0; --n) {
    static constexpr char kOps[] = {'e', 'e', 'e', 'e', 'e', 'e', 'l', 'q', 'q', 'q', 'w', 'w', 'w', 'w', 'h', 'h', 's', 'c', 'c',
                                    'r', 'r', 'b', 'x', 'g', 'k', 'n', 'd', 'z', 'y', 'p'};
    Op op;
    op.op = d.of(kOps);
    // What ends or shortens a program is rarer.
    if ((op.op == 'z' || op.op == 'y' || op.op == 'd') && !d.one_in(3)) op.op = 'e';
    op.handle = 1 + d.below(count);
    const Handle& to = handles[static_cast<std::size_t>(op.handle) - 1];
    switch (op.op) {
      case 'q': op.time_ms = time_or_none(d); [[fallthrough]];
      case 'e':
        op.key = some_key(to.leads);
        if (to.route > 0) op.child = random_program(d, to.route, kind == 0 && to.route == 1 ? 7 : 5);
        break;
      case 'l': {
        op.key = some_key(Leads::store);
        for (const int h : some_list(3))
          if (handles[static_cast<std::size_t>(h) - 1].leads == Leads::store) op.list.push_back(h);
        break;
      }
      case 'w': op.count = d.below(5); op.mode = 1 + d.below(4); op.time_ms = time_or_none(d); break;
      case 'h': op.time_ms = time_or_none(d); break;
      case 's': op.time_ms = d.of(kTimes); break;
      case 'd': op.time_ms = d.of(kTimes) * 4; break;
      case 'c': op.count = d.below(5); op.mode = d.below(3); break;
      case 'b': case 'x': op.list = some_list(4); break;
      default: break;
    }
    p.push_back(std::move(op));
  }
  return p;
}

std::string text_of(const Program& p) {
  std::string out;
  const auto number = [](int n) { return std::to_string(n); };
  for (const Op& op : p) {
    out += op.op;
    std::string args;
    switch (op.op) {
      case 'e': args = number(op.handle) + "," + op.key; break;
      case 'q': args = number(op.handle) + "," + op.key + "," + number(op.time_ms); break;
      case 'l': args = op.key; break;
      case 'w': args = number(op.count) + "," + number(op.mode) + "," + number(op.time_ms); break;
      case 'h': args = number(op.handle) + "," + number(op.time_ms); break;
      case 's': case 'd': args = number(op.time_ms); break;
      case 'c': args = number(op.handle) + "," + number(op.count) + "," + number(op.mode); break;
      case 'r': case 'g': case 'p': args = number(op.handle); break;
      default: break;
    }
    for (const int h : op.list) args.append(args.empty() ? "" : ",").append(number(h));
    out.append(args).append("(").append(text_of(op.child)).append(")");
  }
  return out;
}

// One request, in both worlds.
struct Pair {
  Program program;
  std::unique_ptr<TestExchange> real;
  Client model;
  bool safe = true;
  Route* route = nullptr;
};

std::string text_of(const TestExchange& x) {
  return x.error == sluice::Errc::none ? "[" + x.body + "]" : "#" + std::string(sluice::name(x.error));
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Both at every step alike. False: they are not, and doctest has heard of it.
class Course {
 public:
  Course(World& w, Model& m, Draw& d) : w_(w), m_(m), d_(d) {
    w.services.evaluates_if = in_place;
    w.services.answerer = [this](Event& e) {
      e.answer.status = static_cast<std::uint16_t>(in_place(e) ? std::stoi(e.key.substr(1)) : status_);
      e.answer.body.text = "=" + std::to_string(e.answer.status);
    };
  }

  bool run() {
    const int many = 1 + d_.below(4);
    for (int i = 0; i < many; ++i) {
      auto p = std::make_unique<Pair>();
      p->program = random_program(d_, 0, 12);
      p->safe = !d_.one_in(3);
      p->model.behind_write = d_.one_in(6);
      p->real = std::make_unique<TestExchange>(p->safe ? Method::get : Method::post, "/?p=" + text_of(p->program));
      p->real->is_behind_write = p->model.behind_write;
      pairs_.push_back(std::move(p));
    }
    std::size_t started = 0;
    for (int step = 0; step < 3000; ++step) {
      const int what = d_.below(12);
      if (started < pairs_.size() && what < 3) {
        Pair& p = *pairs_[started++];
        w_.start(*p.real);
        p.route = w_.route;
        m_.start(p.model, p.program, p.safe);
      } else if (what < 8 && m_.outstanding() > 0) {
        deliver();
      } else if (what == 8 && started > 0 && d_.one_in(4)) {
        Pair& p = *pairs_[static_cast<std::size_t>(d_.below(static_cast<int>(started)))];
        if (p.real->times == 0 && !p.real->is_gone) {
          p.real->is_gone = true;
          p.route->client_gone(*p.real);
          m_.client_gone(p.model);
        }
      } else if (what == 9) {
        w_.table->idle();
      } else if (what >= 10 || m_.outstanding() == 0) {
        const auto us = static_cast<std::uint64_t>(d_.of(kTimes)) * 1000;
        w_.services.pass(us);
        m_.pass(us);
      }
      if (!alike()) return false;
      m_.sweep();
      if (m_.asked() == 0) w_.services.sent.clear();
      if (started == pairs_.size() && m_.outstanding() == 0 && m_.timers() == 0 && m_.slots_in_use() == 0) return over();
    }
    FAIL_CHECK("a program does not end");
    return false;
  }

 private:
  static bool in_place(const Event& e) { return e.key[0] == 's' && e.key != "say"; }
  void deliver() {
    std::size_t n = 0;
    auto skip = static_cast<std::size_t>(d_.below(static_cast<int>(m_.outstanding())));
    while (!m_.waits_to_be_delivered(n) || skip-- > 0) ++n;
    status_ = d_.of(kStatus);
    w_.services.deliver(n);
    m_.deliver(n, status_);
  }
  bool alike() {
    bool good = true;
    const auto same = [&](const auto& real, const auto& model, const std::string& what) {
      CAPTURE(what);
      CHECK(real == model);
      good = good && real == model;
    };
    for (const auto& p : pairs_) {
      CAPTURE(text_of(p->program));
      same(p->real->times, p->model.times, "answers");
      if (p->model.times == 0) same(p->real->holds, p->model.holds, "holds writes");
      else if (p->model.answer.status != 0) {
        same(static_cast<int>(p->real->status), p->model.answer.status, "status");
        same(text_of(*p->real), p->model.answer.text, "answer");
      }
      if (!good) return false;
    }
    std::size_t under_way = 0;
    for (const auto& s : w_.services.sent) under_way += s.event != nullptr;
    same(under_way, m_.outstanding(), "events under way");
    same(w_.services.timers.size(), m_.timers(), "timers");
    same(w_.services.kept, m_.kept(), "routes inside under way");
    same(w_.table->slots_in_use(), m_.slots_in_use(), "slots in use");
    // Those that nobody needed for a minute are gone.
    same(w_.table->slots() <= m_.slots() && w_.table->slots() >= m_.slots_in_use(), true, "slots made");
    return good;
  }
  bool over() {
    for (const auto& p : pairs_) CHECK(p->real->times == 1);
    return true;
  }

  World& w_;
  Model& m_;
  Draw& d_;
  int status_ = 200;                   // of what is delivered now
  std::vector<std::unique_ptr<Pair>> pairs_;
};

}  // namespace

TEST_CASE("random programs do what the plain model of the wait rules says, and leave nothing behind") {
  const std::uint64_t seed = number_from("SLUICE_MODEL_SEED", 20260607), programs = number_from("SLUICE_MODEL_PROGRAMS", 4000);
  World w(kRoutes, false);
  Model m(kKinds);
  for (std::uint64_t i = 0; i < programs; ++i) {
    CAPTURE(seed + i);
    Draw d(seed + i);
    Course course(w, m, d);
    if (!course.run()) return;
    w.log.lines.clear();
  }
  for (int i = 0; i < 300; ++i) w.table->idle();
  CHECK(w.table->memory_bytes() < (4u << 20));
  CHECK(w.services.the_budget.held() == 0);
}
