// Where the process listens, and how a reload changes that without losing a connection.
//
// What stays in the config keeps its sockets, whatever else of it changes. New addresses are bound in the first phase. An
// address that is gone refuses new connections for half a second, in which those half made are accepted; then its sockets
// close. Sockets are control's and workers': when workers become fewer, those that are left take the others' sockets over.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proxy/listener.h"
#include "proxy/settings.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// Thread: control. Units: times are milliseconds of the monotonic clock.
class ListenSet {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static constexpr std::uint64_t kRetire_ms = 500;   // less than until a client asks again

  // One place as it is to be.
  struct Place {
    Settings::Listener asked;
    std::shared_ptr<const Tls> tls;          // the caller's to set before apply(); null: plain
    Address address;
    std::vector<ListenSocketPtr> sockets;    // at least one per worker
    std::uint64_t retire_at_ms = kNever;     // when the workers are told to let go of it
    bool left = false;                       // they were
    bool serves() const { return retire_at_ms == kNever; }
  };

  // What prepare() has made ready. Dropping it closes what it opened.
  struct Plan {
    std::vector<Place> places;               // in the order that was asked for
    std::vector<const void*> known;          // beside each: the first socket that it had before; null: it is new
  };

  // Phase one: changes nothing that serves. The same address twice, one that cannot be bound: refused.
  // Errors: one sentence with the address and the reason.
  Result<Plan, std::string> prepare(const std::vector<Settings::Listener>& wanted, std::size_t workers) const;

  // Phase two; cannot fail. Lines for the log: what is listened on from now on, and what no more.
  std::vector<std::string> apply(Plan plan, std::uint64_t now_ms);

  // What worker `index` of `workers` accepts on.
  std::vector<Listening> of_worker(std::size_t index, std::size_t workers) const;

  // The end: nothing new is taken any more.
  void refuse_new() const;

  // When tick() has something to do.
  std::uint64_t next_ms(std::uint64_t now_ms) const;
  // True: of_worker() has changed, tell the workers.
  bool tick(std::uint64_t now_ms);

  // Those that serve, in the config's order.
  std::vector<const Place*> places() const;

 private:
  std::vector<Place> places_;                // those that serve first
};

// "127.0.0.1 port 8767, tag admin, TLS".
std::string describe(const ListenSet::Place& place);

}  // namespace sluice::proxy
