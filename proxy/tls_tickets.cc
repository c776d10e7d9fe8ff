#include "proxy/tls_tickets.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <cstring>

namespace sluice::proxy {
namespace {

void forget(TlsTickets::Key& key) { OPENSSL_cleanse(&key, sizeof key); }

bool has_name(const TlsTickets::Key& key, std::string_view name) {
  return name.size() == key.name.size() && std::memcmp(name.data(), key.name.data(), name.size()) == 0;
}

bool make(TlsTickets::Key& key) {
  return RAND_bytes(key.name.data(), static_cast<int>(key.name.size())) == 1 &&
         RAND_priv_bytes(key.cipher.data(), static_cast<int>(key.cipher.size())) == 1 &&
         RAND_priv_bytes(key.mac.data(), static_cast<int>(key.mac.size())) == 1;
}

}  // namespace

TlsTickets::~TlsTickets() {
  forget(newest_);
  forget(previous_);
}

void TlsTickets::rotate() {
  const std::uint64_t now = clock_.monotonic_us();
  if (has_newest_ && now - since_us_ < kPeriod_us) return;
  forget(previous_);
  // Nobody came for a whole period: what was the newest is too old as well.
  has_previous_ = has_newest_ && now - since_us_ < 2 * kPeriod_us;
  if (has_previous_) previous_ = newest_;
  forget(newest_);
  has_newest_ = make(newest_);
  since_us_ = now;
}

std::optional<TlsTickets::Key> TlsTickets::newest() {
  const std::lock_guard lock(mutex_);
  rotate();
  if (!has_newest_) return std::nullopt;
  return newest_;
}

std::optional<TlsTickets::Found> TlsTickets::find(std::string_view name) {
  const std::lock_guard lock(mutex_);
  rotate();
  if (has_newest_ && has_name(newest_, name)) return Found{newest_, true};
  if (has_previous_ && has_name(previous_, name)) return Found{previous_, false};
  return std::nullopt;
}

}  // namespace sluice::proxy
