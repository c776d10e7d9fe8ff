// Plays requests to a module over a store in memory, and answers each as the server would over HTTP.
//
// Requests go through the server's own parser, the same checks of names, queries and bodies, the same machine; only the
// store is another. Each request is a burst of its own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine.h"
#include "proxy/engine/served.h"
#include "tools/calls.h"
#include "tools/http_call.h"
#include "tools/memory_store.h"

namespace sluice::tools {

// Thread: one.
class Player {
 public:
  // Errors: why `on start` failed, one sentence.
  static Result<std::unique_ptr<Player>, std::string> make(std::unique_ptr<const vm::Module> module,
                                                           std::uint64_t clock_ms = 0);

  // Never goes back: an earlier time changes nothing.
  void set_clock(std::uint64_t ms) { now_ms_ = std::max(now_ms_, ms); }

  // One request, as bytes of HTTP.
  Answer ask(std::string_view method, std::string_view target, const Headers& headers, std::string_view body);
  // Runs a timer now. `found` false: the module has none of that name.
  Answer fire(std::string_view timer, bool& found);

  const vm::Module& module() const { return *served_->module; }
  MemoryStore& store() { return store_; }
  std::uint64_t seq() const { return seq_; }            // events that have changed the store
  // The most that the last request used of what the bound of its function allows; bytes are charged beside the bound.
  std::uint64_t fuel_used() const { return fuel_used_; }
  std::uint64_t fuel_bound() const { return fuel_bound_; }

 private:
  enum class Ran : std::uint8_t { fault, silent, replied };

  Player(proxy::ServedPtr served, std::uint64_t clock_ms);
  std::string start();
  void apply(proxy::Event& event);
  void apply_view(proxy::Event& event);
  void apply_input(proxy::Event& event);
  void apply_object(proxy::Event& event);
  Ran run(const proxy::Served::Input& in, const vm::Handler* handler, proxy::Event& event, bool object);
  void answer_reply(const vm::Reply& reply, const proxy::Served::Input& in, proxy::Event& event);
  std::size_t fields_of(const proxy::Served::Input& in, const proxy::Event& event);
  vm::Event asked(std::size_t fields) const;

  proxy::ServedPtr served_;
  proxy::StorePtr named_;                     // what make_call asks about the store
  MemoryStore store_;
  vm::Machine machine_;
  std::vector<vm::Value> fields_;
  std::uint64_t now_ms_, seq_ = 0;
  std::uint64_t fuel_used_ = 0, fuel_bound_ = 0;
  bool own_words_ = true;
};

}  // namespace sluice::tools
