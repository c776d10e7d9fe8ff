#include "proxy/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

namespace sluice::proxy {
namespace {

constexpr std::size_t kRecord = 16 * 1024;
constexpr int kMostName = 256;

// The subject's common name, the most particular one where there are several (RFC 6125, 2.3.1). Empty: none, or one that
// could be read as another: with control bytes, or too long.
std::string common_name(const X509& certificate) {
  X509_NAME* const subject = X509_get_subject_name(&certificate);
  int found = -1;
  for (int i = -1; (i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) >= 0;) found = i;
  if (found < 0) return {};
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, found)));
  std::string out;
  if (size > 0 && size <= kMostName) out.assign(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
  if (size >= 0) OPENSSL_free(text);
  if (std::any_of(out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) out.clear();
  return out;
}

}  // namespace

std::unique_ptr<TlsSession> TlsSession::make(std::shared_ptr<const Tls> tls) {
  ERR_clear_error();
  std::unique_ptr<TlsSession> made(new TlsSession(std::move(tls)));
  made->ssl_.reset(SSL_new(made->tls_->context()));
  BIO* const bio = made->ssl_ ? BIO_new(made->tls_->bio_method()) : nullptr;
  if (!bio) {
    ERR_clear_error();
    return nullptr;
  }
  BIO_set_data(bio, made.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(made->ssl_.get(), bio, bio);       // takes it
  SSL_set_ex_data(made->ssl_.get(), 0, const_cast<Tls*>(made->tls_.get()));
  SSL_set_accept_state(made->ssl_.get());
  return made;
}

TlsSession::~TlsSession() { ERR_clear_error(); }

BioMethodPtr TlsSession::make_bio_method() {
  BioMethodPtr method(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "sluice connection"));
  BIO_meth_set_read(method.get(), take_in);
  BIO_meth_set_write(method.get(), put_out);
  BIO_meth_set_ctrl(method.get(), control);
  return method;
}

int TlsSession::take_in(BIO* bio, char* to, int size) {
  TlsSession& me = *static_cast<TlsSession*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (me.in_.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const std::size_t n = std::min(me.in_.size(), static_cast<std::size_t>(size));
  std::memcpy(to, me.in_.data(), n);
  me.in_.remove_prefix(n);
  return static_cast<int>(n);
}

int TlsSession::put_out(BIO* bio, const char* from, int size) {
  TlsSession& me = *static_cast<TlsSession*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (me.out_ && size > 0) me.out_->append({from, static_cast<std::size_t>(size)});
  return size;
}

long TlsSession::control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP) return 1;
  if (command == BIO_CTRL_PENDING) return static_cast<long>(static_cast<TlsSession*>(BIO_get_data(bio))->in_.size());
  return 0;
}

std::size_t TlsSession::read(std::string_view cipher, char* plain, Output& wire) {
  SLUICE_ASSERT(cipher.size() <= kCipherBytes);
  in_ = cipher;
  out_ = &wire;
  if (state_ == State::handshake) shake();
  std::size_t had = 0;
  while (state_ == State::open && had < kPlainBytes) {
    ERR_clear_error();
    std::size_t n = 0;
    const int result = SSL_read_ex(ssl_.get(), plain + had, kPlainBytes - had, &n);
    if (result == 1) {
      had += n;
      continue;
    }
    if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) break;
    fail(result);
  }
  // What comes behind a close_notify, or a failure, nobody reads.
  SLUICE_ASSERT(in_.empty() || state_ == State::ended || state_ == State::failed);
  in_ = {};
  out_ = nullptr;
  return had;
}

void TlsSession::shake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    state_ = State::open;
    if (!note_peer()) state_ = State::failed;
    return;
  }
  if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) fail(result);
}

// False: a session is resumed whose certificate has run out since.
bool TlsSession::note_peer() {
  if (SSL_get_verify_mode(ssl_.get()) == SSL_VERIFY_NONE) return true;
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (!certificate || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return true;
  if (resumed() && X509_cmp_time(X509_get0_notAfter(certificate), nullptr) < 0) return false;
  peer_cn_ = common_name(*certificate);
  return true;
}

void TlsSession::fail(int result) {
  state_ = SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN ? State::ended : State::failed;
  ERR_clear_error();
}

void TlsSession::write(Output& from, Output& wire) {
  SLUICE_ASSERT(state_ == State::open || state_ == State::ended);
  out_ = &wire;
  const std::uint64_t most = wire.left() + kBurstBytes;
  while (state_ != State::failed && !from.done() && wire.left() + kRecord < most) {
    const std::string_view front = from.front();
    if (front.size() >= kRecord || front.size() == from.left()) {
      const std::size_t n = std::min(front.size(), kRecord);
      seal(front.substr(0, n));
      from.advance(n);
      continue;
    }
    // Several pieces in one record.
    std::array<char, kRecord> together;
    std::size_t n = 0;
    while (n < kRecord && !from.done()) {
      const std::string_view piece = from.front().substr(0, kRecord - n);
      std::memcpy(together.data() + n, piece.data(), piece.size());
      n += piece.size();
      from.advance(piece.size());
    }
    seal({together.data(), n});
  }
  out_ = nullptr;
}

void TlsSession::seal(std::string_view plain) {
  ERR_clear_error();
  std::size_t n = 0;
  const int result = SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &n);
  if (result == 1 && n == plain.size()) return;
  state_ = State::failed;
  ERR_clear_error();
}

void TlsSession::close(Output& wire) {
  if (closed_ || (state_ != State::open && state_ != State::ended)) return;
  closed_ = true;
  out_ = &wire;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());                      // sends; nobody waits for the client's
  ERR_clear_error();
  out_ = nullptr;
}

}  // namespace sluice::proxy
