// What can be set of a remote backend, with defaults. A leaf: settings, configs and the client side all hold one.
#pragma once
#include <cstdint>

namespace sluice::proxy {

// Frozen once a config is read.
struct BackendOptions {
  std::uint32_t connections = 64;             // sockets at most, of each worker; one request at a time on each
  std::uint32_t connect_timeout_ms = 2'000;   // until a request is on a connection, be it made or one that gets free
  std::uint32_t read_timeout_ms = 5'000;      // from the sending of a request to the last byte of its answer
  std::uint32_t idle_timeout_ms = 15'000;     // of a connection without a request
  std::uint32_t failure_limit = 3;            // failed attempts in a row, spread over time, until it is down; 0: never
  std::uint32_t retry_waittime_ms = 3'000;    // the first wait of one that is down
  std::uint32_t flap_time_ms = 10'000;        // one that goes down again so soon waits longer than the last time
  double flap_backoff_ramp = 2;               // how much longer
  std::uint32_t flap_backoff_max_ms = 60'000; // and how long at most
  std::uint32_t depth_limit = 10'000;         // requests waiting or in flight, whole process; 0: none
  std::uint32_t head_bytes = 32u << 10;       // of an answer
  std::uint64_t body_bytes = 16u << 20;
  bool tcp_keepalive = false;
  bool down = false;                          // never connected to: what is asked of it fails
  friend bool operator==(const BackendOptions&, const BackendOptions&) = default;
};

}  // namespace sluice::proxy
