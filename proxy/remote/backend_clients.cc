#include "proxy/remote/backend_clients.h"

#include <sys/random.h>

#include <algorithm>

#include "vm/base/check.h"

namespace sluice::proxy {
namespace {
constexpr std::size_t kKeptHead = 16 * 1024;
}  // namespace

BackendClients::BackendClients(WorkerLoop& worker) : worker_(worker), random_(0x9e3779b97f4a7c15) {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed && seed != 0) random_ = seed;
}

BackendClients::~BackendClients() = default;

BackendClient& BackendClients::take(const BackendPtr& backend) {
  for (const auto& c : clients_)
    if (&c->backend() == backend.get()) {
      ++c->holders;
      return *c;
    }
  clients_.push_back(std::make_unique<BackendClient>(*this, backend));
  clients_.back()->holders = 1;
  return *clients_.back();
}

void BackendClients::give_back(BackendClient& client) {
  SLUICE_ASSERT(client.holders > 0);
  if (--client.holders > 0) return;
  std::erase_if(clients_, [&client](const auto& c) { return c.get() == &client; });
}

BackendCall& BackendClients::take_call() {
  if (free_calls_.empty()) {
    calls_.push_back(std::make_unique<BackendCall>());
    calls_.back()->index = static_cast<std::uint32_t>(calls_.size() - 1);
    free_calls_.reserve(calls_.size());
    return *calls_.back();
  }
  BackendCall& call = *free_calls_.back();
  free_calls_.pop_back();
  return call;
}

void BackendClients::release(BackendCall& call) {
  call.state = BackendCall::State::free;
  call.head_request = call.may_repeat = call.repeated = call.on_trial = call.in_depth = false;
  call.exchange = nullptr;
  call.client = nullptr;
  call.connection = nullptr;
  if (call.head.capacity() > kKeptHead) std::string().swap(call.head);
  else call.head.clear();
  call.body.reset();
  call.response.reset();
  free_calls_.push_back(&call);
}

// Source: xorshift64, Marsaglia 2003.
double BackendClients::chance() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<double>(random_ >> 11) / 9007199254740992.0;
}

}  // namespace sluice::proxy
