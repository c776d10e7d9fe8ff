// One request to a backend, from a route's start() to its answer: all that it needs by itself, so that its sender may leave.
#pragma once
#include <cstdint>
#include <string>

#include "proxy/buffer.h"
#include "proxy/response.h"
#include "proxy/route.h"

namespace sluice::proxy {

class BackendClient;
class BackendConnection;

// Thread: worker. Life: pooled by BackendClients; `index` names it to the exchange (route_slot - 1).
struct BackendCall {
  enum class State : std::uint8_t { free, waiting, sent };
  State state = State::free;
  bool head_request = false;
  bool may_repeat = false;                    // doing it twice is doing it once
  bool repeated = false;                      // it is under way for the second time
  bool on_trial = false;                      // it finds out whether the backend is well again
  bool in_depth = false;                      // it is counted there
  std::uint32_t index = 0;
  Exchange* exchange = nullptr;               // nullptr: nobody waits for it any more
  BackendClient* client = nullptr;
  BackendConnection* connection = nullptr;    // while sent
  BackendCall* previous = nullptr;            // while waiting
  BackendCall* next = nullptr;
  std::uint64_t deadline_us = 0;              // waiting: to be sent; sent: to be answered
  std::string head;
  Buffer body;
  Response response;
};

}  // namespace sluice::proxy
