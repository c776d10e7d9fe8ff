// The command line, as data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/settings.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// What flags say over what the file says, at start and after each reload.
struct Overrides {
  std::optional<std::string> host;
  std::optional<std::uint16_t> port;
  std::optional<std::uint32_t> threads;
  std::optional<std::uint64_t> budget_bytes;
  std::optional<std::uint32_t> connections;
  std::optional<std::uint32_t> timeout_ms;
  std::optional<std::string> tls_cert, tls_key;   // both or neither: of the first listener
  std::optional<std::string> control;          // absolute
  void apply(Settings& settings) const;
};

// Shape: exactly one of `config` and `module` is set; `store` goes with `module`.
struct Options {
  std::string config;
  std::string module;
  std::string store;
  std::string test_control;   // the socket's path; empty: none
  bool check = false;
  bool explain = false;   // a check that prints the routes
  bool allow_destroy = false;
  Overrides overrides;
};

// Why the process ends before it began.
struct Stop {
  int code = 0;          // 0: it was asked for help or its version; 2: it was used wrongly
  std::string out;       // for standard output
  std::string error;     // for standard error; one line
};

// `arguments` without the program's name.
Result<Options, Stop> read_options(const std::vector<std::string>& arguments, std::string_view version);

// "1048576", "64KiB", "64MiB", "2GiB"; also "64kB", "64MB", "2GB" in thousands. Nothing: not a size, or beyond 64 bits.
std::optional<std::uint64_t> find_size(std::string_view text);

}  // namespace sluice::proxy
