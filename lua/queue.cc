// The queue of a request context: what is asked is frozen, sent in one batch, and completed once.
#include <utility>

#include "lua/context.h"
#include "lua/sub_exchange.h"
#include "proxy/module_call.h"
#include "vm/base/check.h"

namespace sluice::lua {

std::string_view Context::name_of(std::uint32_t index) const { return target(index).name; }

bool Context::reads_elsewhere(const proxy::Store* store) const {
  if (exchange_ && exchange_->behind_write()) return true;
  if (in_flight_ == 0) return false;
  for (const QueueSlot& q : queue_)
    if (q.state == QueueSlot::State::in_flight && q.writes && (q.store == store || store == nullptr || q.sub)) return true;
  return false;
}

const char* Context::refuse_enqueue(std::uint32_t index) const {
  const QueueSlot::State state = queue_[index].state;
  if (state == QueueSlot::State::queued || state == QueueSlot::State::in_flight)
    return "is in flight: its last result is not in yet";
  return nullptr;
}

void Context::put_in_queue(std::uint32_t index, ResponseObject* result) {
  QueueSlot& q = queue_[index];
  q.result = result;
  q.counted = false;
  q.cls = Class::none;
  q.state = QueueSlot::State::queued;
  order_.push_back(index);
}

void Context::enqueue_module(lua_State* L, const proxy::ModuleRequest& asked, std::string_view own_key,
                             std::uint32_t index) {
  ResponseObject* result = fresh_response(L);
  QueueSlot& q = queue_[index];
  q.sub = nullptr;
  q.answered = true;
  const Target& to = target(index);
  const proxy::StorePtr& store =
      to.store ? to.store
               : to.pool->pick(!own_key.empty() ? own_key : proxy::distribution_key(asked.path, asked.query));
  proxy::Call call;
  if (proxy::make_call(call, result->response, store, asked)) {
    proxy::EventPtr event = runtime_.services->take_event();
    q.answered = !runtime_.services->engine().prepare(*event, call);
    q.writes = event->writes;
    q.store = store.get();
    if (q.answered) result->event = std::move(event);
    else q.event = std::move(event);
  }
  put_in_queue(index, result);
}

void Context::enqueue_refused(lua_State* L, std::uint32_t index, std::uint16_t status, Errc error, const char* line,
                              std::uint32_t allow) {
  ResponseObject* result = fresh_response(L);
  QueueSlot& q = queue_[index];
  q.sub = nullptr;
  q.answered = true;
  proxy::respond_error(result->response, status, error, line);
  result->response.allow = allow;
  put_in_queue(index, result);
}

void Context::enqueue_route(lua_State* L, const RequestObject& request, std::uint32_t index) {
  const Target& to = target(index);
  const proxy::Route* route = to.kind == Target::Kind::route ? to.route : to.methods.find(request.its_method());
  if (route == nullptr)
    return enqueue_refused(L, index, 405, Errc::method, "no route takes that method here", to.methods.allow());
  ResponseObject* result = fresh_response(L);
  if (runtime_.free_subs.empty()) {
    runtime_.subs.push_back(std::make_unique<SubExchange>(runtime_));
    runtime_.free_subs.reserve(runtime_.subs.size());
    runtime_.free_subs.push_back(runtime_.subs.back().get());
  }
  SubExchange* sub = runtime_.free_subs.back();
  runtime_.free_subs.pop_back();
  QueueSlot& q = queue_[index];
  q.answered = !sub->freeze(request, exchange_ ? &exchange_->request() : nullptr);
  if (q.answered) {
    sub->drop();
    sub = nullptr;
    proxy::respond_error(result->response, 503, Errc::payload_budget, "no room for the body now");
  }
  q.sub = sub;
  put_in_queue(index, result);
}

void Context::enqueue(lua_State* L, const RequestObject& request, std::uint32_t index) {
  const Target& to = target(index);
  if (to.kind == Target::Kind::route || to.kind == Target::Kind::methods) return enqueue_route(L, request, index);
  if (!request.owned) return enqueue_module(L, proxy::module_request(*request.live, request.live_path), {}, index);
  // Views of what is asked; prepare() copies what it keeps.
  runtime_.query.clear();
  runtime_.headers.clear();
  for (std::size_t i = 0; i < request.query_count; ++i)
    runtime_.query.push_back({request.query[i].name, request.query[i].value});
  for (std::size_t i = 0; i < request.header_count; ++i)
    runtime_.headers.push_back({request.headers[i].name, request.headers[i].value});
  proxy::Buffer body;
  if (request.has_body && !request.body.empty()) {
    body = proxy::Buffer::copy(request.body, &runtime_.services->budget());
    if (!body) return enqueue_refused(L, index, 503, Errc::payload_budget, "no room for the body now", 0);
  }
  enqueue_module(L,
                 {.method = request.method, .path = request.path, .query = runtime_.query, .headers = runtime_.headers,
                  .body = &body, .has_length = true},
                 request.own_key, index);
}

void Context::dispatch() {
  // Callbacks run in here, and child routes; neither can enqueue (may_ask), so the order stands still.
  dispatching_ = true;
  for (std::size_t i = 0; i < order_.size(); ++i) send(order_[i]);
  order_.clear();
  dispatching_ = false;
}

void Context::send(std::uint32_t index) {
  QueueSlot& q = queue_[index];
  q.sent_us = runtime_.services->monotonic_us();
  if (q.answered) return complete(index);
  if (q.sub) {
    q.state = QueueSlot::State::in_flight;
    q.writes = false;
    const Target& to = target(index);
    proxy::Route& route = to.kind == Target::Kind::route ? *to.route : *to.methods.find(q.sub->request().method);
    const bool behind = reads_elsewhere(nullptr);
    ++in_flight_;
    q.sub->send(*this, index, route, behind);
    return;
  }
  if (!q.writes && !reads_elsewhere(q.store) && runtime_.services->engine().evaluate(*q.event)) {
    q.result->event = std::move(q.event);
    return complete(index);
  }
  q.state = QueueSlot::State::in_flight;
  ++in_flight_;
  if (q.writes) hold_writes(true);
  q.ticket = runtime_.services->submit(std::move(q.event), this, index);
}

void Context::hold_writes(bool held) {
  writes_held_ += held ? 1u : ~0u;
  if (exchange_ && writes_held_ == (held ? 1u : 0u)) exchange_->hold_writes(held);
}

void Context::sub_holds_writes(std::uint32_t index, bool held) {
  queue_[index].writes = held;
  hold_writes(held);
}

void Context::answered(std::uint32_t tag, proxy::EventPtr event) {
  QueueSlot& q = queue_[tag];
  SLUICE_ASSERT(q.state == QueueSlot::State::in_flight);
  --in_flight_;
  if (q.writes) hold_writes(false);
  q.result->event = std::move(event);
  complete(tag);
  resume_if_due();
}

void Context::sub_answered(std::uint32_t index, proxy::Response& response) {
  QueueSlot& q = queue_[index];
  SLUICE_ASSERT(q.state == QueueSlot::State::in_flight);
  q.sub = nullptr;
  --in_flight_;
  // It answered before its writes were in: as a client does not wait for them then, neither does who asked.
  if (std::exchange(q.writes, false)) hold_writes(false);
  swap(q.result->response, response);
  complete(index);
  resume_if_due();
}

void Context::complete(std::uint32_t index) {
  QueueSlot& q = queue_[index];
  q.state = QueueSlot::State::done;
  const std::string_view remote = q.result->event ? std::string_view() : q.result->response.backend;
  q.result->backend = remote.empty() ? name_of(index) : remote;
  q.result->elapsed_us = runtime_.services->monotonic_us() - q.sent_us;
  q.cls = class_of(q.result->status());
  if (q.callback != LUA_NOREF) run_callback(q);
}

void Context::run_callback(QueueSlot& slot) {
  lua_State* L = runtime_.callbacks;
  const StackGuard guard(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, slot.callback);
  lua_rawgeti(L, LUA_REGISTRYINDEX, slot.result->ref);
  lua_rawgeti(L, LUA_REGISTRYINDEX, request_.ref);
  if (!runtime_.vm->call(L, 2, 2)) {
    runtime_.report(fgen_.name(), text_at(L, -1));
    return;
  }
  if (lua_type(L, -2) == LUA_TNUMBER) {
    const double n = lua_tonumber(L, -2);
    if (n == 1 || n == 2 || n == 3) slot.cls = static_cast<Class>(static_cast<int>(n));
  }
  if (lua_toboolean(L, -1)) resume_asked_ = true;
}

}  // namespace sluice::lua
