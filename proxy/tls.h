// One listener's TLS, ready for handshakes: certificates, who may come, and how records are kept.
//
// Made on control from a config's files, frozen, and shared by all workers; each reload makes a new one, and a connection
// keeps the one that it began with.
#pragma once
#include <openssl/ssl.h>

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/tls_settings.h"
#include "proxy/tls_tickets.h"
#include "vm/base/handle.h"
#include "vm/base/result.h"

namespace sluice::proxy {

using SslContextPtr = Handle<SSL_CTX, SSL_CTX_free>;
using BioMethodPtr = Handle<BIO_METHOD, BIO_meth_free>;

// Thread: frozen once made, then any.
class Tls {
 public:
  struct Made {
    std::shared_ptr<const Tls> tls;
    std::vector<std::string> warnings;           // certificates out of date, or not for the name they are given for
  };
  // Reads all files. `now` is what certificates' dates are compared with.
  // Errors: "PLACE: sentence": a file that cannot be read, a key of another certificate, a list of ciphers with nothing in it.
  // Thread: control.
  static Result<Made, std::string> make(const TlsSettings& settings, std::shared_ptr<TlsTickets> tickets, std::time_t now);

  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // For TlsSession.
  SSL_CTX* context() const { return context_.get(); }
  const BIO_METHOD* bio_method() const { return bio_method_.get(); }
  TlsTickets& tickets() const { return *tickets_; }

 private:
  struct Named {
    std::string name;                            // "example.com", or ".example.com" for "*.example.com"
    SslContextPtr context;
  };
  explicit Tls(std::shared_ptr<TlsTickets> tickets) : tickets_(std::move(tickets)) {}
  static int on_server_name(SSL* ssl, int* alert, void* self);
  SSL_CTX* find_named(std::string_view name) const;

  std::shared_ptr<TlsTickets> tickets_;
  BioMethodPtr bio_method_;
  SslContextPtr context_;
  std::vector<Named> named_;
};

}  // namespace sluice::proxy
