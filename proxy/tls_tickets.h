// The keys of session tickets: made in this process, changed every hour, forgotten an hour later.
//
// A ticket is a client's whole session, sealed: whoever has the key reads what TLS 1.2 sessions said. So keys are never
// written anywhere and do not live long. All listeners and generations share them: a reload costs no resumption.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "proxy/loop.h"

namespace sluice::proxy {

// Thread: any; its lock is held for a copy of 80 bytes, in a handshake.
class TlsTickets {
 public:
  static constexpr std::uint64_t kPeriod_us = 3'600'000'000;
  struct Key {
    std::array<unsigned char, 16> name{};        // goes with the ticket, in the clear
    std::array<unsigned char, 32> cipher{}, mac{};
  };
  struct Found {
    Key key;
    bool newest = false;                         // else the client is to get a new ticket
  };

  TlsTickets() : clock_(own_clock_) {}
  explicit TlsTickets(Clock& clock) : clock_(clock) {}
  ~TlsTickets();
  TlsTickets(const TlsTickets&) = delete;
  TlsTickets& operator=(const TlsTickets&) = delete;

  // For a new ticket. Nothing: the system gives no random bytes.
  std::optional<Key> newest();
  // For a ticket that a client shows. Nothing: it is too old, or not ours.
  std::optional<Found> find(std::string_view name);

 private:
  void rotate();
  Clock own_clock_;
  Clock& clock_;
  std::mutex mutex_;
  Key newest_, previous_;                        // guarded by mutex_, as all below
  bool has_newest_ = false, has_previous_ = false;
  std::uint64_t since_us_ = 0;                   // of newest_
};

}  // namespace sluice::proxy
