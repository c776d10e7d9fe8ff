// Certificates made on the spot, and a client of TLS whose bytes the test carries by hand.
#pragma once
#include <doctest/doctest.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/tls.h"
#include "proxy/tls_files.h"
#include "proxy/tls_session.h"

namespace sluice::proxy::test {

// A key with its certificate. Keys are of P-256: quick to make.
struct Identity {
  KeyPtr key;
  X509Ptr certificate;
};

struct IdentityWish {
  std::string cn = "localhost";
  std::string also_cn{};                         // a second common name
  std::string dns{};                             // subjectAltName
  const Identity* signer = nullptr;              // null: itself
  bool authority = false;
  long from_s = -3600, to_s = 86'400;            // from now
  int rsa_bits = 0;                              // 0: P-256
};

Identity make_identity(const IdentityWish& wish);
std::string pem_of(const X509& certificate);
std::string pem_of(EVP_PKEY& key, const char* password = nullptr);

// A folder of files that goes with the test.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  // Its path. Replaces an older one.
  std::string write(const std::string& name, std::string_view text);
  TlsFile file(const std::string& name, std::string_view text) { return {write(name, text), "t.lua:1"}; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

// A server's files: an authority, and a certificate of it.
struct Materials {
  explicit Materials(const IdentityWish& wish = {});
  TlsSettings settings() const;                  // without client certificates
  std::shared_ptr<const Tls> tls(const TlsSettings& settings) const;
  std::shared_ptr<const Tls> tls() const { return tls(settings()); }

  mutable Folder folder;
  Identity authority, server;
  std::shared_ptr<TlsTickets> tickets = std::make_shared<TlsTickets>();
  TlsFile cert, key, ca;
};

// OpenSSL's own client over two memories.
class TlsClient {
 public:
  struct Wish {
    int version = 0;                             // TLS1_2_VERSION, TLS1_3_VERSION; 0: the newest
    const Identity* identity = nullptr;
    const char* server_name = nullptr;
    std::string protocols{};                     // of ALPN, as on the wire
    SSL_SESSION* resume = nullptr;
    bool checks_server = false;                  // against `authority`
    const Identity* authority = nullptr;
  };
  explicit TlsClient(const Wish& wish);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  void take(std::string_view cipher);            // from the server
  std::string give();                            // for the server: all that is ready
  void say(std::string_view plain);              // once open
  std::string heard();                           // plaintext since the last call
  void bye();                                    // close_notify
  void change_keys();                            // a KeyUpdate that asks for the server's (TLS 1.3)
  bool open() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  bool ended() const { return ended_; }          // the server's close_notify has come
  const std::string& error() const { return error_; }   // what went wrong; the server's alert among it
  bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }
  SSL_SESSION* session() const;                  // the last one that was given; it stays with the client
  std::string server_cn() const;
  std::string protocol() const;
  SSL* ssl() { return ssl_.get(); }

 private:
  static int on_session(SSL* ssl, SSL_SESSION* session);
  void go_on();
  SslContextPtr context_;
  Handle<SSL, SSL_free> ssl_;
  SSL_SESSION* session_ = nullptr;
  std::string heard_, error_;
  bool ended_ = false;
};

}  // namespace sluice::proxy::test
