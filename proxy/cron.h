// What a config does by itself at times, and the events that it then sends to stores.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/request.h"
#include "vm/base/errc.h"

namespace sluice::proxy {

// A module request that nobody's client made. Owns what it carries: it travels to a worker.
struct CronEvent {
  std::string store;
  Method method = Method::post;
  std::string path;                              // "/inputs/NAME", "/views/NAME", "/objects/KEY"
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  bool has_body = false;
};

struct CronAnswer {
  std::uint32_t id = 0;
  std::uint16_t status = 0;
  Errc error = Errc::none;
  std::string body;
};

// The jobs of one config. Units: times are milliseconds of the monotonic clock.
// Thread: control.
class Crons {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  // Sends the event; the answer comes with the number that is returned. 0: too many are under way, or there is no such store.
  using Send = std::function<std::uint32_t(CronEvent)>;
  virtual ~Crons() = default;
  // The config serves from now on. A job that `before`, the config it takes over from, has under the same name and at the
  // same interval keeps its time. `before` may be null.
  virtual void start(std::uint64_t now_ms, const Crons* before, Send send) = 0;
  // No job runs any more, and answers are not heard.
  virtual void stop() = 0;
  // When the next one is due; kNever: none is.
  virtual std::uint64_t next_ms() const = 0;
  struct Ran {
    std::uint32_t runs = 0, failures = 0;
    bool reload_wanted = false;
  };
  // Runs what is due, each once, however often it was missed.
  virtual Ran run(std::uint64_t now_ms) = 0;
  // What heard it is no run, but may fail, or want a reload. Nothing: nobody waits for it.
  virtual std::optional<Ran> answered(const CronAnswer& answer) = 0;
};

}  // namespace sluice::proxy
