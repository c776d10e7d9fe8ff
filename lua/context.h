// A request context: one slot of a function generator, with its coroutine, its queue and its objects.
//
// It is always in one phase: setup (the generator runs), idle (in the free list), running (its coroutine has the
// thread), waiting (suspended in one of our waits), finished (the route has returned; events are still under way).
// Only `waiting` is ever resumed, and only from the loop or from a completion; a completion inside dispatch() finds the
// phase `running` and is merely noted, so nothing is resumed inside itself.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lua/fgen.h"
#include "lua/request_object.h"
#include "lua/response_object.h"
#include "proxy/module_call.h"

namespace sluice::lua {

enum class Phase : std::uint8_t { setup, idle, running, waiting, finished };

struct Wait {
  enum class Kind : std::uint8_t { none, cond, handle, sleep };
  Kind kind = Kind::none;
  int mode = 1;                        // Class numbers, or kWaitFastGood
  std::uint32_t wanted = 0, counted = 0;
  std::uint32_t handle = 0;
  std::int64_t timeout_us = -1;        // -1: none
};

// One handle's place in the queue.
struct QueueSlot {
  enum class State : std::uint8_t { idle, queued, in_flight, done };
  State state = State::idle;
  Class cls = Class::none;
  bool counted = false;                // a wait_cond has taken it into account
  bool answered = false;               // queued, but refused before it was sent: `result` says how
  bool writes = false;                 // a write to `store`, or a route with a write of its own in flight
  const proxy::Store* store = nullptr; // of the event in flight
  proxy::EventPtr event;               // while queued
  SubExchange* sub = nullptr;          // of a route, queued or in flight
  proxy::Ticket ticket;
  std::uint64_t sent_us = 0;
  ResponseObject* result = nullptr;
  int callback = LUA_NOREF;
};

// Thread: worker (control while it is built and destroyed). Life: its Fgen's.
class Context final : private proxy::Waiter {
 public:
  Context(Fgen& fgen, std::uint32_t index);
  ~Context() override;

  // Runs the generator. Errors: Lua's sentence.
  Result<void, std::string> build();

  void start(proxy::Exchange& exchange, const proxy::Match& match);
  // Its client has gone, or its parent does not wait any more.
  void client_gone();
  bool let_go() const;                 // may its request be dropped half done?

  // For the Lua methods, on the running coroutine. The enqueues may raise for memory, on the state given: no other is
  // inside a protected call then.
  const char* refuse_enqueue(std::uint32_t index) const;   // why not, as the end of a sentence; nullptr: it may be
  void enqueue(lua_State* L, const RequestObject& request, std::uint32_t index);
  // To a store or pool, what a shorthand says. `own_key`: of a pool, or empty.
  void enqueue_module(lua_State* L, const proxy::ModuleRequest& asked, std::string_view own_key, std::uint32_t index);
  void enqueue_refused(lua_State* L, std::uint32_t index, std::uint16_t status, Errc error, const char* line,
                       std::uint32_t allow);
  void dispatch();
  // True when `wait` has nothing to wait for; else the coroutine yields and step() takes it from there.
  bool begin_wait(const Wait& wait);
  int push_wait_result(lua_State* L, bool timed_out);
  int push_result(lua_State* L, std::uint32_t index);
  // nullptr: the limit of objects is reached (setup only).
  RequestObject* take_request(lua_State* L);
  ResponseObject* take_response(lua_State* L);
  void set_deadline(std::uint64_t delay_us);
  bool cancelled() const;

  // Of a child route: its answer.
  void sub_answered(std::uint32_t index, proxy::Response& response);
  void sub_holds_writes(std::uint32_t index, bool held);
  bool reads_elsewhere(const proxy::Store* store) const;   // must a read of it queue behind a write?

  Fgen& fgen() { return fgen_; }
  Runtime& runtime() { return runtime_; }
  Phase phase() const { return phase_; }
  // May it enqueue and wait now? Not while its queue is being sent: then callbacks and other routes run.
  bool may_ask() const { return phase_ == Phase::running && !dispatching_; }
  lua_State* coroutine() const { return co_; }
  std::vector<QueueSlot>& queue() { return queue_; }
  RequestObject& request() { return request_; }
  std::uint32_t in_flight() const { return in_flight_; }
  std::uint32_t queued() const { return static_cast<std::uint32_t>(order_.size()); }
  const Target& target(std::uint32_t index) const { return *fgen_.handles()[index]; }
  // Where it stands among its generator's slots; trim() moves them.
  std::uint32_t index() const { return index_; }
  void set_index(std::uint32_t index);
  // What it takes: in the VM as its generator measured it, and its objects in C++ as they were built.
  std::uint64_t bytes() const { return bytes_; }
  void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }
  std::uint64_t own_bytes() const;

 private:
  static int build_in_lua(lua_State* L);
  void answered(std::uint32_t tag, proxy::EventPtr event) override;
  void timed_out(std::uint32_t tag) override;

  void renew_coroutine();
  void step(int arguments);
  void resume_if_due();
  void resume_with(bool timed_out);
  bool satisfied();
  void finish();
  void fail(int status);
  void reply();                                  // out_ goes to the exchange
  void abandon();                                // forgets all that is under way; the coroutine is given up
  void release_if_done();
  void release();
  void enqueue_route(lua_State* L, const RequestObject& request, std::uint32_t index);
  void put_in_queue(std::uint32_t index, ResponseObject* result);
  void send(std::uint32_t index);
  void complete(std::uint32_t index);
  void run_callback(QueueSlot& slot);
  void hold_writes(bool held);
  std::string_view name_of(std::uint32_t index) const;
  ResponseObject* fresh_response(lua_State* L);
  template <class Object>
  Object* take(lua_State* L, std::vector<std::unique_ptr<Object>>& list, std::size_t& used, Kind kind);

  Fgen& fgen_;
  Runtime& runtime_;
  std::uint32_t index_;
  std::uint64_t bytes_ = 0;
  Phase phase_ = Phase::setup;
  bool resume_asked_ = false;                    // by a callback
  bool answering_ = false, gone_ = false, dispatching_ = false;
  lua_State* co_ = nullptr;
  int co_ref_ = LUA_NOREF, function_ref_ = LUA_NOREF, self_ref_ = LUA_NOREF;
  Box* self_box_ = nullptr;
  proxy::Exchange* exchange_ = nullptr;          // until answered
  std::vector<QueueSlot> queue_;
  std::vector<std::uint32_t> order_;             // queued handles, as they were enqueued
  std::uint32_t in_flight_ = 0, writes_held_ = 0;
  Wait wait_;
  proxy::TimerId wait_timer_, deadline_timer_;
  proxy::Response out_;
  RequestObject request_;
  // What setup took stays; what a request took goes back when it is released.
  std::vector<std::unique_ptr<RequestObject>> requests_;
  std::vector<std::unique_ptr<ResponseObject>> responses_;
  std::size_t requests_used_ = 0, responses_used_ = 0, setup_requests_ = 0, setup_responses_ = 0;
};

void register_context(lua_State* L);             // the methods of rctx

}  // namespace sluice::lua
