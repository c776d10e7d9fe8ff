// The connection's TLS half: ciphertext between the socket and the session, plaintext between the session and the rest.
//
// Plain connections come by here once per read and once per write, for a look at a null pointer. What is sealed and not
// yet taken by the socket is in `wire_`: while there is some, the socket is watched for room, and nothing more is sealed.
#include <sys/socket.h>

#include <cerrno>

#include "proxy/ascii.h"
#include "proxy/connection.h"
#include "proxy/tls_session.h"
#include "proxy/worker_loop.h"

namespace sluice::proxy {
namespace {

constexpr std::uint64_t kFirst_us = 1'000'000;   // for the first request behind a handshake, when the server drains
// What a client that never reads can make us hold: a burst, and answers to its own words (alerts, keys that it has changed).
constexpr std::size_t kMostWire = 2 * TlsSession::kBurstBytes;

static_assert(WorkerLoop::kReadBytes >= TlsSession::kPlainBytes);

// Records of a handshake begin with 22. Letters, and the line ends that some send between requests, are HTTP.
bool looks_like_http(std::string_view bytes) {
  const char c = bytes.front();
  return (c >= 'A' && c <= 'Z') || c == '\r' || c == '\n';
}

}  // namespace

bool Connection::begin_tls(const std::shared_ptr<const Tls>& tls) {
  tls_ = TlsSession::make(tls);
  fresh_tls_ = true;
  greeting_until_us_ = worker_.now_us() + std::uint64_t{worker_.settings().head_timeout_ms} * 1000;
  return tls_ != nullptr;
}

bool Connection::shaking() const { return tls_ && tls_->state() == TlsSession::State::handshake; }

// Its client is about to ask: a drain waits for that, a while.
bool Connection::greeting() const { return tls_ && served_ == 0 && worker_.now_us() < greeting_until_us_; }

Output& Connection::wire() {
  if (!wire_) wire_ = worker_.take_output();
  return *wire_;
}

void Connection::read_tls() {
  const ssize_t got = recv(fd_, worker_.cipher_buffer(), TlsSession::kCipherBytes, 0);
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR) lose();
    return;
  }
  if (got == 0) return ended_by_client();
  const std::string_view cipher(worker_.cipher_buffer(), static_cast<std::size_t>(got));
  if (lingering_) return discard(cipher.size());
  if (fresh_tls_ && looks_like_http(cipher)) return refuse_plain();
  fresh_tls_ = false;

  const bool shook = shaking();
  const std::size_t bytes = tls_->read(cipher, worker_.read_buffer(), wire());
  if (wire_->empty()) worker_.give_back(std::move(wire_));
  if (shook && !shaking()) shaken();
  if (bytes > 0) {
    if (no_more_requests_) discard(bytes);
    else process({worker_.read_buffer(), bytes});
  }
  if (!is_open()) return;
  if (tls_->state() == TlsSession::State::failed || (wire_ && wire_->left() > kMostWire)) return end_tls();
  flush();
}

void Connection::shaken() {
  Counters& counters = worker_.counters();
  if (tls_->state() == TlsSession::State::failed) return;
  counters.tls_handshakes.add();
  if (tls_->resumed()) counters.tls_resumptions.add();
  idle_since_us_ = worker_.now_us();
  greeting_until_us_ = idle_since_us_ + kFirst_us;
}

// Something that is not TLS, or not any more. What it is to hear is sent, and time to read it is given: a close over
// unread bytes would reset the connection, and the alert with it.
void Connection::end_tls() {
  worker_.counters().tls_failures.add();
  if (wire_ && !push_wire()) return lose();
  if (pending_) release_output();
  detach_all();
  stash_.reset();
  shutdown(fd_, SHUT_WR);
  lingering_ = no_more_requests_ = true;
  paused_ = false;
  discarded_ = 0;
  end_since_us_ = worker_.now_us();
  settle();
}

// HTTP in the clear: said so in the clear, as the client cannot read anything else.
void Connection::refuse_plain() {
  worker_.counters().tls_failures.add();
  tls_.reset();
  if (pending_) release_output();     // of one that was refused anyway
  say_and_close(400, Errc::request, "this port speaks TLS: ask it by https");
}

bool Connection::push_wire() {
  while (!wire_->done()) {
    const ssize_t n = wire_->write_to(fd_);
    if (n >= 0) {
      drained_bytes_ += static_cast<std::uint64_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) lose();
    return false;
  }
  worker_.give_back(std::move(wire_));
  return true;
}

// The same as for a plain one: true when all of `pending_` has left.
bool Connection::write_tls() {
  for (;;) {
    if (wire_ && !push_wire()) return false;
    if (shaking()) return false;
    if (pending_->done() && (!closing_ || tls_->closed())) break;
    tls_->write(*pending_, wire());
    // With the last bytes of the last answer, so that they leave together.
    if (closing_ && pending_->done()) tls_->close(*wire_);
    if (tls_->state() == TlsSession::State::failed) {
      lose();
      return false;
    }
  }
  release_output();
  return true;
}

bool Connection::flush_tls() {
  if (wire_ && !pending_) push_wire();
  if (!is_open()) return false;
  // The client's word that it sends no more stands behind its last request, which may wait to be parsed.
  if (paused_ || read_closed_ || tls_->state() != TlsSession::State::ended) return true;
  ended_by_client();
  return false;
}

// Before the socket closes: a client that was told nothing cannot know whether the end was somebody else's doing. Only
// when nothing was cut short.
void Connection::say_farewell() {
  if (wire_ || pending_ || first_) return;
  tls_->close(wire());
  while (!wire_->done() && wire_->write_to(fd_) > 0) {}
}

void Connection::drop_tls() {
  if (shaking()) worker_.counters().tls_failures.add();
  if (wire_) worker_.give_back(std::move(wire_));
  tls_.reset();
}

}  // namespace sluice::proxy
