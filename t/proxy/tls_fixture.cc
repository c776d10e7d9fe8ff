#include "t/proxy/tls_fixture.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <fstream>

namespace sluice::proxy::test {
namespace {

std::string text_of(BIO* bio) {
  char* at = nullptr;
  const long n = BIO_get_mem_data(bio, &at);
  std::string out(at, static_cast<std::size_t>(n));
  BIO_free(bio);
  return out;
}

void add_name(X509* certificate, const std::string& cn) {
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(cn.data()), static_cast<int>(cn.size()), -1, 0);
}

void add_extension(X509* certificate, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const e = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  REQUIRE(e);
  X509_add_ext(certificate, e, -1);
  X509_EXTENSION_free(e);
}

}  // namespace

Identity make_identity(const IdentityWish& wish) {
  unsigned char serial[4] = {};
  RAND_bytes(serial, sizeof serial);
  Identity out;
  out.key.reset(wish.rsa_bits ? EVP_RSA_gen(static_cast<unsigned int>(wish.rsa_bits)) : EVP_EC_gen("P-256"));
  out.certificate.reset(X509_new());
  X509* const c = out.certificate.get();
  X509_set_version(c, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(c), (serial[0] & 0x7f) << 24 | serial[1] << 16 | serial[2] << 8 | serial[3]);
  X509_gmtime_adj(X509_getm_notBefore(c), wish.from_s);
  X509_gmtime_adj(X509_getm_notAfter(c), wish.to_s);
  if (!wish.cn.empty()) add_name(c, wish.cn);
  if (!wish.also_cn.empty()) add_name(c, wish.also_cn);
  X509_set_issuer_name(c, X509_get_subject_name(wish.signer ? wish.signer->certificate.get() : c));
  X509_set_pubkey(c, out.key.get());
  if (wish.authority) add_extension(c, NID_basic_constraints, "critical,CA:TRUE");
  if (!wish.dns.empty()) add_extension(c, NID_subject_alt_name, "DNS:" + wish.dns);
  REQUIRE(X509_sign(c, wish.signer ? wish.signer->key.get() : out.key.get(), EVP_sha256()) > 0);
  return out;
}

std::string pem_of(const X509& certificate) {
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, &certificate);
  return text_of(bio);
}

std::string pem_of(EVP_PKEY& key, const char* password) {
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PKCS8PrivateKey(bio, &key, password ? EVP_aes_128_cbc() : nullptr, password, password ? static_cast<int>(std::string_view(password).size()) : 0, nullptr, nullptr);
  return text_of(bio);
}

Folder::Folder() {
  char name[] = "/tmp/sluice-tls-XXXXXX";
  REQUIRE(mkdtemp(name));
  path_ = name;
}

Folder::~Folder() {
  for (const std::string& f : files_) unlink(f.c_str());
  rmdir(path_.c_str());
}

std::string Folder::write(const std::string& name, std::string_view text) {
  std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  files_.push_back(path);
  return path;
}

Materials::Materials(const IdentityWish& wish)
    : authority(make_identity({.cn = "test authority", .authority = true})), server() {
  IdentityWish its = wish;
  its.signer = &authority;
  server = make_identity(its);
  cert = folder.file("cert.pem", pem_of(*server.certificate) + pem_of(*authority.certificate));
  key = folder.file("key.pem", pem_of(*server.key));
  ca = folder.file("ca.pem", pem_of(*authority.certificate));
}

TlsSettings Materials::settings() const {
  TlsSettings s;
  s.cert = cert;
  s.key = key;
  return s;
}

std::shared_ptr<const Tls> Materials::tls(const TlsSettings& settings) const {
  auto made = Tls::make(settings, tickets, std::time(nullptr));
  REQUIRE_MESSAGE(made, (made ? std::string() : made.error()));
  return made->tls;
}

TlsClient::TlsClient(const Wish& wish) : context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX* const c = context_.get();
  if (wish.version) {
    SSL_CTX_set_min_proto_version(c, wish.version);
    SSL_CTX_set_max_proto_version(c, wish.version);
  }
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(c, on_session);
  if (wish.identity) {
    REQUIRE(SSL_CTX_use_certificate(c, wish.identity->certificate.get()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(c, wish.identity->key.get()) == 1);
  }
  if (wish.authority) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(c), wish.authority->certificate.get());
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  }
  ssl_.reset(SSL_new(c));
  SSL_set_ex_data(ssl_.get(), 0, this);
  // What SSL_set_tlsext_host_name() is, without its cast.
  if (wish.server_name)
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(wish.server_name));
  if (!wish.protocols.empty())
    SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(wish.protocols.data()), static_cast<unsigned int>(wish.protocols.size()));
  if (wish.resume) SSL_set_session(ssl_.get(), wish.resume);
  SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl_.get());
  go_on();
}

TlsClient::~TlsClient() {
  // Or OpenSSL takes it for a cut, and its session for one that is not to be resumed.
  SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_SESSION_free(session_);
}

SSL_SESSION* TlsClient::session() const {
  // A ticket that TLS 1.2 renews comes without a call.
  return session_ || SSL_version(ssl_.get()) == TLS1_3_VERSION ? session_ : SSL_get_session(ssl_.get());
}

int TlsClient::on_session(SSL* ssl, SSL_SESSION* session) {
  TlsClient& me = *static_cast<TlsClient*>(SSL_get_ex_data(ssl, 0));
  SSL_SESSION_free(me.session_);
  me.session_ = session;
  return 1;                                      // kept
}

void TlsClient::go_on() {
  if (!error_.empty() || ended_) return;
  char piece[16384];
  std::size_t n = 0;
  for (;;) {
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), piece, sizeof piece, &n);
    if (result == 1) {
      heard_.append(piece, n);
      continue;
    }
    const int why = SSL_get_error(ssl_.get(), result);
    if (why == SSL_ERROR_ZERO_RETURN) ended_ = true;
    else if (why != SSL_ERROR_WANT_READ) error_ = openssl_reason();
    return;
  }
}

void TlsClient::take(std::string_view cipher) {
  if (!cipher.empty()) BIO_write(SSL_get_rbio(ssl_.get()), cipher.data(), static_cast<int>(cipher.size()));
  go_on();
}

std::string TlsClient::give() {
  std::string out(BIO_ctrl_pending(SSL_get_wbio(ssl_.get())), '\0');
  if (!out.empty()) BIO_read(SSL_get_wbio(ssl_.get()), out.data(), static_cast<int>(out.size()));
  return out;
}

void TlsClient::say(std::string_view plain) {
  if (!plain.empty()) REQUIRE(SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())) == static_cast<int>(plain.size()));
}

std::string TlsClient::heard() { return std::exchange(heard_, {}); }
void TlsClient::bye() { SSL_shutdown(ssl_.get()); }
void TlsClient::change_keys() {
  REQUIRE(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED) == 1);
  SSL_do_handshake(ssl_.get());
}

std::string TlsClient::server_cn() const {
  X509* const c = SSL_get0_peer_certificate(ssl_.get());
  char text[200] = "";
  if (c) X509_NAME_get_text_by_NID(X509_get_subject_name(c), NID_commonName, text, sizeof text);
  return text;
}

std::string TlsClient::protocol() const {
  const unsigned char* at = nullptr;
  unsigned int n = 0;
  SSL_get0_alpn_selected(ssl_.get(), &at, &n);
  return {reinterpret_cast<const char*>(at), n};
}

}  // namespace sluice::proxy::test
