// A request from one route to another: what a client's exchange is to the outer one, frozen when it was enqueued.
#pragma once
#include <string>

#include "lua/request_object.h"
#include "proxy/route.h"

namespace sluice::lua {

class Context;
struct Runtime;

// Thread: worker. Life: the Runtime's; recycled when it is answered, whether or not its parent still waits.
class SubExchange final : public proxy::Exchange {
 public:
  explicit SubExchange(Runtime& runtime) : runtime_(runtime) {}

  // Copies what `from` says now. `around` is the client's request, for its address. False: no budget for the body.
  bool freeze(const RequestObject& from, const proxy::Request* around);
  void send(Context& parent, std::uint32_t index, proxy::Route& route, bool behind_write);
  // The parent does not wait any more. May recycle this object.
  void detach();
  // Queued and never sent.
  void drop();

  const proxy::Request& request() const override { return request_; }
  bool gone() const override;
  void answer(proxy::Response& response) override;
  bool behind_write() const override { return behind_write_; }
  void hold_writes(bool held) override;
  std::string_view own_key() const override { return own_key_; }

 private:
  void recycle();

  Runtime& runtime_;
  Context* parent_ = nullptr;
  std::uint32_t index_ = 0;
  proxy::Route* route_ = nullptr;
  bool behind_write_ = false;
  std::string_view own_key_;
  std::string arena_;
  proxy::Request request_;
  proxy::Match match_;
};

}  // namespace sluice::lua
