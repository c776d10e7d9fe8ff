// What one worker has done, readable while it goes on.
#pragma once
#include <atomic>
#include <cstdint>

namespace sluice::proxy {

// Thread: add(), sub() and set() from its worker alone, so that they need no locked instruction; get() from any.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void sub(std::uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) - n, std::memory_order_relaxed); }
  void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Thread: written by its worker, read by any. Aligned so that two workers share no cache line.
struct alignas(64) Counters {
  // Now.
  Counter connections;          // open
  Counter active;               // requests begun and not answered by their route, those without a client included
  Counter outstanding;          // events with owners
  Counter generations;          // of config alive on this worker
  Counter route_slots;          // request contexts made by the newest generation's routes
  Counter route_slots_in_use;
  Counter route_memory_bytes;
  Counter backend_in_flight;    // requests to remote backends
  Counter backends_down;

  // Since the start.
  Counter accepted;             // connections
  Counter requests;             // whole requests, refused ones included
  Counter answers;              // on their way to a socket
  Counter refused_connections;  // over the limit: 503 overload
  Counter accept_failures;      // no descriptor left, say
  Counter refused_requests;     // by the parser or a limit of HTTP
  Counter refused_budget;       // 503 payload_budget
  Counter refused_active;       // 503 overload: active_req_limit or too many events outstanding
  Counter refused_busy;         // 503 store_busy: an owner's inbox was full
  Counter timeouts;             // connections ended or 408 for slowness
  Counter deadlines;            // 504 deadline
  Counter expired;              // answers that came after their client had left or their deadline had passed
  Counter clients_gone;         // connections lost with requests unanswered
  Counter turns;                // of the loop
  // Of remote backends, all together.
  Counter backend_requests;     // begun, those refused at once included
  Counter backend_errors;       // 502 backend: not connected, broken off, not HTTP
  Counter backend_timeouts;     // 504 backend_timeout
  Counter backend_refused;      // at once: the backend is down, or too many requests are under way to it
  Counter backend_retries;      // sent again on another connection
  Counter backend_connects;
  Counter tls_handshakes;       // that ended well
  Counter tls_resumptions;      // of those: by a ticket
  Counter tls_failures;         // handshakes that did not, plain HTTP, records that cannot be read
};

}  // namespace sluice::proxy
