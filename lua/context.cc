#include "lua/context.h"

#include <utility>

#include "lua/answer.h"
#include "lua/sandbox.h"
#include "lua/sub_exchange.h"
#include "vm/base/check.h"

namespace sluice::lua {
namespace {

constexpr std::uint32_t kWaitTimer = 0, kDeadlineTimer = 1;
// What one request may have left behind in its slot's pools of objects; more is given back.
constexpr std::size_t kKeptObjects = 64;
constexpr std::size_t kKeptBytes = 64 * 1024;
// How many requests, and how many results, one request may have: each keeps its answer until the end.
constexpr std::size_t kMostObjects = 65'536;

std::string take_message(lua_State* L) {
  const char* text = lua_tostring(L, -1);
  std::string message = text ? text : "an error that is not a string";
  lua_pop(L, 1);
  return message;
}

}  // namespace

Context::Context(Fgen& fgen, std::uint32_t index)
    : fgen_(fgen), runtime_(fgen.runtime()), index_(index), queue_(fgen.handles().size()) {
  order_.reserve(queue_.size());
  requests_.reserve(8);
  responses_.reserve(8);
}

// On control, or on a worker that lets a slot go: what Lua still holds of it is told that it is gone.
Context::~Context() {
  if (self_box_) self_box_->object = nullptr;
  if (request_.box) request_.box->object = nullptr;
  lua_State* L = runtime_.vm->main();
  for (auto& r : requests_) {
    r->box->object = nullptr;
    luaL_unref(L, LUA_REGISTRYINDEX, r->ref);
  }
  for (auto& r : responses_) {
    r->box->object = nullptr;
    luaL_unref(L, LUA_REGISTRYINDEX, r->ref);
  }
  for (const QueueSlot& q : queue_) luaL_unref(L, LUA_REGISTRYINDEX, q.callback);
  for (const int ref : {co_ref_, function_ref_, self_ref_, request_.ref}) luaL_unref(L, LUA_REGISTRYINDEX, ref);
}

int Context::build_in_lua(lua_State* L) {
  Context& c = *static_cast<Context*>(lua_touserdata(L, 1));
  lua_settop(L, 0);
  c.renew_coroutine();
  // A box is ours to write to only once the registry holds it: a refused reference leaves it to the collector.
  Box* box = push_box(L, Kind::rctx, &c);
  lua_pushvalue(L, -1);
  c.self_ref_ = luaL_ref(L, LUA_REGISTRYINDEX);
  c.self_box_ = box;
  box = push_box(L, Kind::request, &c.request_);
  c.request_.ref = luaL_ref(L, LUA_REGISTRYINDEX);
  c.request_.box = box;
  lua_rawgeti(L, LUA_REGISTRYINDEX, c.fgen_.generator());
  lua_insert(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, c.fgen_.argument());
  lua_call(L, 2, 1);
  if (!lua_isfunction(L, -1))
    return luaL_error(L, "the generator of route '%s' returned a %s; it returns the function that answers a request",
                      c.fgen_.name().c_str(), luaL_typename(L, -1));
  c.function_ref_ = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

Result<void, std::string> Context::build() {
  phase_ = Phase::setup;
  if (!runtime_.vm->protect(&Context::build_in_lua, this)) return take_message(runtime_.vm->main());
  setup_requests_ = requests_used_;
  setup_responses_ = responses_used_;
  for (auto& r : responses_) r->kept = true;
  phase_ = Phase::idle;
  return {};
}

void Context::renew_coroutine() {
  const Forgive between(*runtime_.vm);
  lua_State* L = runtime_.vm->main();
  lua_checkstack(L, 4);
  luaL_unref(L, LUA_REGISTRYINDEX, co_ref_);
  co_ref_ = LUA_NOREF;
  lua_getfield(L, LUA_REGISTRYINDEX, kRouteCoroutines);
  co_ = lua_newthread(L);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  // The table's keys are weak; this is what holds it.
  lua_pushthread(co_);
  lua_xmove(co_, L, 1);
  co_ref_ = luaL_ref(L, LUA_REGISTRYINDEX);
}

void Context::set_index(std::uint32_t index) {
  index_ = index;
  if (exchange_) exchange_->route_slot = index + 1;
}

std::uint64_t Context::own_bytes() const {
  return sizeof(Context) + queue_.capacity() * sizeof(QueueSlot) + order_.capacity() * sizeof(order_[0]) +
         requests_.capacity() * sizeof(requests_[0]) + requests_.size() * sizeof(RequestObject) +
         responses_.capacity() * sizeof(responses_[0]) + responses_.size() * sizeof(ResponseObject);
}

void Context::start(proxy::Exchange& exchange, const proxy::Match& match) {
  SLUICE_ASSERT(phase_ == Phase::idle);
  const Forgive between(*runtime_.vm);
  exchange_ = &exchange;
  exchange.route_slot = index_ + 1;
  const proxy::Request& request = exchange.request();
  request_.live = &request;
  // An exact pattern has nothing behind it: there the path is the whole one.
  request_.live_path = !match.rest.empty() ? match.rest : match.captured.empty() ? std::string_view("/") : request.path;
  request_.captured.assign(match.captured.begin(), match.captured.end());
  request_.alive = true;
  ++runtime_.slots_in_use;
  lua_rawgeti(co_, LUA_REGISTRYINDEX, function_ref_);
  lua_rawgeti(co_, LUA_REGISTRYINDEX, request_.ref);
  step(1);
}

void Context::step(int arguments) {
  const Forgive between(*runtime_.vm);
  wait_.kind = Wait::Kind::none;
  phase_ = Phase::running;
  const int status = runtime_.vm->resume(co_, arguments);
  if (status == LUA_OK) return finish();
  if (status != LUA_YIELD || wait_.kind == Wait::Kind::none) return fail(status);
  phase_ = Phase::waiting;
  if (gone_ && let_go()) return client_gone();
  if (wait_.timeout_us >= 0)
    wait_timer_ = runtime_.services->start_timer(static_cast<std::uint64_t>(wait_.timeout_us), this, kWaitTimer);
}

void Context::finish() {
  phase_ = Phase::finished;
  std::string why;
  if (!read_answer(co_, out_, why)) {
    runtime_.report(fgen_.name(), why);
    proxy::respond_error(out_, 500, Errc::lua, "the route failed; the server's log says why");
  }
  lua_settop(co_, 0);
  dispatch();   // what was enqueued and not waited for leaves too
  reply();
  release_if_done();
}

void Context::fail(int status) {
  phase_ = Phase::finished;
  lua_State* L = runtime_.vm->main();
  {
    const StackGuard guard(L);
    if (status == LUA_YIELD) lua_pushliteral(L, "the route yielded outside of a wait");
    else lua_pushstring(L, lua_tostring(co_, -1) ? lua_tostring(co_, -1) : "an error that is not a string");
    luaL_traceback(L, co_, lua_tostring(L, -1), 0);
    runtime_.report(fgen_.name(), text_at(L, -1));
  }
  // What was enqueued before the mistake and not sent yet is not sent.
  for (const std::uint32_t i : order_) {
    QueueSlot& q = queue_[i];
    q.state = QueueSlot::State::idle;
    if (q.event) runtime_.services->recycle(std::move(q.event));
    if (q.sub) std::exchange(q.sub, nullptr)->drop();
  }
  order_.clear();
  renew_coroutine();
  // A VM at its limit has not been collected since; the next route would meet the same.
  if (status == LUA_ERRMEM) runtime_.vm->collect_all();
  out_.reset();
  proxy::respond_error(out_, 500, Errc::lua, "the route failed; the server's log says why");
  reply();
  release_if_done();
}

void Context::reply() {
  runtime_.services->stop_timer(deadline_timer_);
  if (!exchange_) return;
  proxy::Exchange& exchange = *std::exchange(exchange_, nullptr);
  // Its request dies with it.
  request_.alive = false;
  answering_ = true;
  exchange.answer(out_);
  answering_ = false;
}

void Context::release_if_done() {
  if (phase_ == Phase::finished && in_flight_ == 0 && order_.empty() && !answering_) release();
}

void Context::release() {
  request_.alive = false;
  request_.live = nullptr;
  resume_asked_ = gone_ = false;
  writes_held_ = 0;
  for (QueueSlot& q : queue_) {
    q.state = QueueSlot::State::idle;
    q.cls = Class::none;
    q.result = nullptr;
    q.store = nullptr;
    q.sub = nullptr;
    q.writes = false;
    q.ticket = {};
  }
  lua_State* L = runtime_.vm->main();
  // One large body must not keep its room for good.
  const auto slim = [](std::string& body) {
    if (body.capacity() > kKeptBytes) body = std::string();
  };
  for (std::size_t i = setup_requests_; i < requests_used_; ++i) {
    requests_[i]->alive = false;
    slim(requests_[i]->body);
  }
  requests_used_ = setup_requests_;
  for (std::size_t i = setup_responses_; i < responses_used_; ++i) {
    ResponseObject& r = *responses_[i];
    r.alive = r.passed_on = r.owned = false;
    if (r.event) runtime_.services->recycle(std::move(r.event));
    r.response.reset();
    slim(r.response.body.text);
  }
  responses_used_ = setup_responses_;
  const auto shrink = [L](auto& list, std::size_t kept) {
    while (list.size() > kept) {
      list.back()->box->object = nullptr;
      luaL_unref(L, LUA_REGISTRYINDEX, list.back()->ref);
      list.pop_back();
    }
  };
  if (requests_.size() > setup_requests_ + kKeptObjects) shrink(requests_, setup_requests_ + kKeptObjects);
  if (responses_.size() > setup_responses_ + kKeptObjects) shrink(responses_, setup_responses_ + kKeptObjects);
  phase_ = Phase::idle;
  --runtime_.slots_in_use;
  fgen_.give_back(*this);
}

bool Context::let_go() const {
  return phase_ == Phase::waiting && exchange_ && proxy::is_safe(exchange_->request().method);
}

void Context::client_gone() {
  gone_ = true;
  if (!let_go()) return;
  abandon();
  out_.reset();
  reply();   // into nothing
  release_if_done();
}

void Context::abandon() {
  runtime_.services->stop_timer(wait_timer_);
  phase_ = Phase::finished;
  for (std::uint32_t i = 0; i < queue_.size(); ++i) {
    QueueSlot& q = queue_[i];
    if (q.state == QueueSlot::State::queued) {
      if (q.event) runtime_.services->recycle(std::move(q.event));
      if (q.sub) std::exchange(q.sub, nullptr)->drop();
    } else if (q.state == QueueSlot::State::in_flight) {
      if (q.sub) std::exchange(q.sub, nullptr)->detach();
      else runtime_.services->forget(q.ticket);
    }
    q.state = QueueSlot::State::idle;
  }
  order_.clear();
  in_flight_ = 0;
  if (writes_held_ > 0 && exchange_) exchange_->hold_writes(false);
  writes_held_ = 0;
  renew_coroutine();   // a suspended one would go on with the old request
}

bool Context::cancelled() const { return gone_ || exchange_ == nullptr || exchange_->gone(); }

void Context::set_deadline(std::uint64_t delay_us) {
  runtime_.services->stop_timer(deadline_timer_);
  deadline_timer_ = runtime_.services->start_timer(delay_us, this, kDeadlineTimer);
}

void Context::timed_out(std::uint32_t tag) {
  if (tag == kDeadlineTimer) {
    deadline_timer_ = {};
    if (phase_ != Phase::waiting) return;
    abandon();
    out_.reset();
    proxy::respond_error(out_, 504, Errc::deadline, "the route's deadline passed");
    reply();
    release_if_done();
    return;
  }
  wait_timer_ = {};
  if (phase_ == Phase::waiting) resume_with(true);
}

bool Context::begin_wait(const Wait& wait) {
  resume_asked_ = false;
  if (wait.kind != Wait::Kind::sleep) dispatch();
  wait_ = wait;
  return satisfied();
}

bool Context::satisfied() {
  switch (wait_.kind) {
    case Wait::Kind::none:
    case Wait::Kind::sleep: return false;
    case Wait::Kind::handle: {
      QueueSlot& q = queue_[wait_.handle];
      if (q.state != QueueSlot::State::done && q.state != QueueSlot::State::idle) {
        return std::exchange(resume_asked_, false);
      }
      q.counted = true;
      return true;
    }
    case Wait::Kind::cond: break;
  }
  if (wait_.wanted == 0) return true;
  const int least = wait_.mode == kWaitFastGood ? static_cast<int>(Class::ok) : wait_.mode;
  for (QueueSlot& q : queue_) {
    if (q.state != QueueSlot::State::done || q.counted) continue;
    q.counted = true;
    if (static_cast<int>(q.cls) < least) continue;
    ++wait_.counted;
    if (wait_.counted >= wait_.wanted) return true;
    if (wait_.mode == kWaitFastGood && q.cls == Class::good) return true;
  }
  if (std::exchange(resume_asked_, false)) return true;
  return in_flight_ == 0;   // nothing is left that could complete
}

int Context::push_wait_result(lua_State* L, bool timed_out) {
  const int before = lua_gettop(L);
  switch (wait_.kind) {
    case Wait::Kind::sleep: lua_pushboolean(L, 1); return 1;
    case Wait::Kind::cond: lua_pushinteger(L, static_cast<lua_Integer>(wait_.counted)); break;
    case Wait::Kind::handle:
      if (queue_[wait_.handle].state == QueueSlot::State::done) {
        push_result(L, wait_.handle);
        lua_settop(L, before + 1);
        return 1;
      }
      lua_pushnil(L);
      break;
    case Wait::Kind::none: return 0;
  }
  if (!timed_out) return 1;
  lua_pushboolean(L, 1);
  return 2;
}

int Context::push_result(lua_State* L, std::uint32_t index) {
  const QueueSlot& q = queue_[index];
  if (q.state != QueueSlot::State::done || q.result == nullptr) {
    lua_pushnil(L);
    lua_pushnil(L);
    return 2;
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, q.result->ref);
  lua_pushinteger(L, static_cast<lua_Integer>(q.cls));
  return 2;
}

void Context::resume_if_due() {
  if (phase_ == Phase::waiting) {
    if (satisfied()) resume_with(false);
  } else {
    release_if_done();
  }
}

void Context::resume_with(bool timed_out) {
  runtime_.services->stop_timer(wait_timer_);
  if (timed_out && wait_.kind != Wait::Kind::sleep && satisfied()) timed_out = false;
  lua_settop(co_, 0);
  step(push_wait_result(co_, timed_out));
}

template <class Object>
Object* Context::take(lua_State* L, std::vector<std::unique_ptr<Object>>& list, std::size_t& used, Kind kind) {
  if (used == list.size()) {
    if (phase_ == Phase::setup && fgen_.objects() != 0 && requests_used_ + responses_used_ >= fgen_.objects())
      return nullptr;
    if (used == kMostObjects) luaL_error(L, "more than %d results in one request", static_cast<int>(kMostObjects));
    // Lua's part first: it may raise, and then nothing of ours is half made.
    luaL_checkstack(L, 3, "too many values");
    Box* box = push_box(L, kind, nullptr);
    const int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    auto made = std::make_unique<Object>();
    made->box = box;
    made->ref = ref;
    box->object = made.get();
    list.push_back(std::move(made));
  }
  Object* object = list[used++].get();
  object->alive = true;
  object->owned = true;
  return object;
}

RequestObject* Context::take_request(lua_State* L) {
  RequestObject* r = take(L, requests_, requests_used_, Kind::request);
  if (r) r->reset_owned();
  return r;
}

ResponseObject* Context::take_response(lua_State* L) {
  ResponseObject* r = take(L, responses_, responses_used_, Kind::response);
  if (r) {
    r->response.reset();
    r->passed_on = false;
    r->elapsed_us = 0;
    r->backend = {};
  }
  return r;
}

ResponseObject* Context::fresh_response(lua_State* L) {
  ResponseObject* r = take_response(L);
  r->owned = false;
  return r;
}

}  // namespace sluice::lua
