// TLS of one connection, as bytes in and bytes out: it knows no socket and never waits.
//
// What comes from the socket goes in whole, in pieces of any size; what is to go to the socket is appended to an Output. So
// a call never has to be made again with the same arguments, and nothing is kept here but what OpenSSL keeps: a record that
// has come in part. Between records that is nothing (SSL_MODE_RELEASE_BUFFERS).
#pragma once
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/output.h"
#include "proxy/tls.h"

namespace sluice::proxy {

// Thread: worker.
class TlsSession {
 public:
  // Units: bytes of ciphertext that one read() takes at most, so that what it says fits kPlainBytes also when the
  // greater part of a record was here already.
  static constexpr std::size_t kCipherBytes = 44 * 1024, kPlainBytes = 64 * 1024;
  // Units: bytes of ciphertext that one write() makes at most: three whole records, which an Output keeps room for.
  static constexpr std::size_t kBurstBytes = 3 * (16 * 1024 + 512);

  enum class State : std::uint8_t {
    handshake,
    open,
    ended,        // the client has said that it sends no more; answers may still go
    failed,       // the handshake, or a record: nothing more can be said but what is in `wire`
  };

  // nullptr: no memory for it.
  static std::unique_ptr<TlsSession> make(std::shared_ptr<const Tls> tls);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  State state() const { return state_; }
  // Takes all of `cipher` (up to kCipherBytes), puts what it says at `plain` (room for kPlainBytes) and returns how much
  // that was. What the handshake answers, and alerts, go to `wire`.
  std::size_t read(std::string_view cipher, char* plain, Output& wire);
  // Seals what `from` has to write, up to kBurstBytes, into `wire`. Only while open or ended.
  void write(Output& from, Output& wire);
  // Says that nothing more comes (close_notify), once.
  void close(Output& wire);
  bool closed() const { return closed_; }

  // Of a client's certificate that was asked for and is good: its common name; else empty. Known once it is open.
  std::string_view peer_cn() const { return peer_cn_; }
  bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

  // How OpenSSL reaches read() and write(); one is enough for all sessions of a Tls.
  static BioMethodPtr make_bio_method();

 private:
  explicit TlsSession(std::shared_ptr<const Tls> tls) : tls_(std::move(tls)) {}
  static int take_in(BIO* bio, char* to, int size);
  static int put_out(BIO* bio, const char* from, int size);
  static long control(BIO* bio, int command, long number, void* pointer);
  void shake();
  bool note_peer();
  void fail(int result);
  void seal(std::string_view plain);

  const std::shared_ptr<const Tls> tls_;      // before what was made of it
  Handle<SSL, SSL_free> ssl_;
  std::string_view in_;                       // what is left of read()'s `cipher`
  Output* out_ = nullptr;                     // during a call
  std::string peer_cn_;
  State state_ = State::handshake;
  bool closed_ = false;
};

}  // namespace sluice::proxy
