// Every limit and switch, with its default and unit. A config's settings{} and the command line fill one of these.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxy/remote/options.h"
#include "proxy/tls_settings.h"

namespace sluice::proxy {

// Frozen once a generation is built. A setting that the file does not name has its default again after a reload.
// Source: design http.md, "Limits".
struct Settings {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8767;                      // 0: the kernel picks one
  std::string tag;                                // of that listener: what selects its routes; empty: none
  std::optional<TlsSettings> tls;                 // of that listener
  struct Listener {
    std::string host;
    std::uint16_t port = 0;
    std::string tag;
    std::optional<TlsSettings> tls;
    friend bool operator==(const Listener& a, const Listener& b) { return a.host == b.host && a.port == b.port && a.tag == b.tag; }
  };
  std::vector<Listener> more_listeners;           // beyond the first
  std::string listen_place;                       // "FILE:LINE" of what says so, for errors; empty: defaults and flags do
  std::vector<Listener> listeners() const {
    std::vector<Listener> all{{host, port, tag, tls}};
    all.insert(all.end(), more_listeners.begin(), more_listeners.end());
    return all;
  }
  std::uint32_t workers = 0;                      // threads; 0: as many as cores
  std::uint32_t connections = 10'000;             // open at once, whole process
  std::uint32_t active_req_limit = 0;             // requests in routes at once, whole process; 0: none
  std::uint64_t payload_budget_bytes = 64u << 20; // payloads held, whole process
  std::uint32_t head_bytes = 8192;
  std::uint32_t header_count = 100;
  std::uint32_t target_bytes = 4096;
  std::uint64_t body_bytes = 16u << 20;
  std::uint32_t requests_per_connection = 0;      // 0: no limit
  std::uint32_t pipeline = 64;                    // requests in flight per connection
  std::uint32_t head_timeout_ms = 10'000;         // from the head's first byte
  std::uint32_t body_timeout_ms = 10'000;         // grace; then body_rate applies
  std::uint32_t body_rate = 1024;                 // bytes per second at least, after the grace
  std::uint32_t drain_timeout_ms = 10'000;        // the same for an answer to a slow reader
  std::uint32_t drain_rate = 1024;
  std::uint32_t idle_timeout_ms = 60'000;         // between requests
  std::uint32_t request_timeout_ms = 30'000;      // `--timeout-ms`: from the whole request to its answer; 504 deadline
  std::uint64_t lua_memory_bytes = 256u << 20;    // per VM
  std::uint32_t lua_time_ms = 2'000;              // one stretch of Lua without a wait, until it is stopped; 0: for ever
  bool lua_jit = false;
  BackendOptions backend;                         // what pools of remote backends start from: backend_connect_timeout, ...
  bool lua_sandbox = true;                        // false: configs reach files, processes and C code (lua/unsandboxed.h)
  std::string log_level = "info";
  // The control socket's path; a relative one counts from the config's folder. Nothing: beside the config, with the ending
  // .sock; empty: there is none.
  std::optional<std::string> control;
};

}  // namespace sluice::proxy
