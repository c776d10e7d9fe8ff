#include "proxy/tls.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "proxy/ascii.h"
#include "proxy/tls_files.h"
#include "proxy/tls_session.h"

namespace sluice::proxy {
namespace {

// With forward secrecy and authenticated encryption only. Those of TLS 1.3 are all of that kind.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr long kSession_s = 3600;                // how long a session may be resumed; keys of tickets live that long
constexpr long kClientChainBytes = 32 * 1024;    // of what a client shows: it is held before anything is known of it
constexpr int kVerifyDepth = 8;
// What each handshake sends: it is held until the client has taken it.
constexpr int kChainBytes = 48 * 1024, kAuthorityBytes = 16 * 1024;
using X509StorePtr = Handle<X509_STORE, X509_STORE_free>;
using DigestPtr = Handle<EVP_MD_CTX, EVP_MD_CTX_free>;
using SessionId = std::array<unsigned char, 32>;

// We speak HTTP/1.1. A client that offers only others is told so: RFC 7301, 3.2.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned int in_size, void*) {
  for (const std::string_view ours : {std::string_view("http/1.1"), std::string_view("http/1.0")})
    for (unsigned int i = 0; i < in_size && i + 1 + in[i] <= in_size; i += 1u + in[i]) {
      if (in[i] != ours.size() || std::memcmp(in + i + 1, ours.data(), ours.size()) != 0) continue;
      *out = in + i + 1;
      *out_size = in[i];
      return SSL_TLSEXT_ERR_OK;
    }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Source: SSL_CTX_set_tlsext_ticket_key_evp_cb(3). AES-256-CBC, then HMAC-SHA-256 over it (RFC 5077, 4).
// Returns 1, or 2 when the client is to get a new ticket; 0: no ticket; -1: no session.
int seal_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int seal) {
  TlsTickets& tickets = static_cast<const Tls*>(SSL_get_ex_data(ssl, 0))->tickets();
  TlsTickets::Key key;
  bool newest = true;
  if (seal) {
    const auto made = tickets.newest();
    if (!made || RAND_bytes(iv, EVP_MAX_IV_LENGTH) != 1) return 0;
    key = *made;
    std::memcpy(name, key.name.data(), key.name.size());
  } else {
    const auto found = tickets.find({reinterpret_cast<const char*>(name), key.name.size()});
    if (!found) return 0;
    key = found->key;
    newest = found->newest;
  }
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
                                   OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_construct_end()};
  const bool ready = EVP_MAC_CTX_set_params(mac, parameters) == 1 &&
                     EVP_CipherInit_ex2(cipher, EVP_aes_256_cbc(), key.cipher.data(), iv, seal, nullptr) == 1;
  OPENSSL_cleanse(&key, sizeof key);
  return ready ? (newest ? 1 : 2) : -1;
}

void hash(EVP_MD_CTX* into, const X509& certificate) {
  SessionId print{};
  unsigned int size = 0;
  if (X509_digest(&certificate, EVP_sha256(), print.data(), &size) == 1) EVP_DigestUpdate(into, print.data(), size);
}

// What one certificate of a listener needs, beside the listener's own rules.
struct Material {
  std::vector<X509Ptr> chain;                    // the certificate first
  KeyPtr key;
};

Result<Material, std::string> read_material(const TlsFile& cert, const TlsFile& key, std::time_t now, std::vector<std::string>& warnings) {
  auto chain = read_certificates(cert);
  if (!chain) return std::move(chain).error();
  auto read = read_key(key);
  if (!read) return std::move(read).error();
  if (X509_check_private_key(chain->front().get(), read->get()) != 1) {
    ERR_clear_error();
    return at(key, key.path + ": not the key of the certificate in " + cert.path);
  }
  int bytes = 0;
  for (const X509Ptr& c : *chain) {
    bytes += i2d_X509(c.get(), nullptr);
    if (std::string w = date_warning(cert, *c, now); !w.empty()) warnings.push_back(std::move(w));
  }
  if (bytes > kChainBytes) return at(cert, cert.path + ": each handshake would send " + std::to_string(bytes) + " bytes of certificates, and 48 KiB are the most");
  return Material{*std::move(chain), *std::move(read)};
}

// Who signs clients' certificates.
struct ClientAuthority {
  X509StorePtr store;
  std::vector<X509Ptr> certificates;
};

Result<ClientAuthority, std::string> read_authority(const TlsFile& file, std::time_t now, std::vector<std::string>& warnings) {
  ClientAuthority out;
  if (file.path.empty()) return out;
  auto read = read_certificates(file);
  if (!read) return std::move(read).error();
  out.certificates = *std::move(read);
  out.store.reset(X509_STORE_new());
  int bytes = 0;
  for (const X509Ptr& c : out.certificates) {
    bytes += i2d_X509_NAME(X509_get_subject_name(c.get()), nullptr);
    if (X509_STORE_add_cert(out.store.get(), c.get()) != 1) return at(file, file.path + ": " + openssl_reason());
    if (std::string w = date_warning(file, *c, now); !w.empty()) warnings.push_back(std::move(w));
  }
  if (bytes > kAuthorityBytes) return at(file, file.path + ": each handshake would send " + std::to_string(bytes) + " bytes of authorities' names, and 16 KiB are the most");
  return out;
}

// The list of ciphers, of which OpenSSL wants those of TLS 1.3 apart.
Result<void, std::string> set_ciphers(SSL_CTX* context, const TlsSettings& settings) {
  std::string older, newer;
  for (std::string_view rest = settings.ciphers; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(": ,"), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.empty()) continue;
    std::string& to = word.starts_with("TLS_") ? newer : older;
    if (!to.empty()) to += ':';
    to += word;
  }
  if (!newer.empty() && SSL_CTX_set_ciphersuites(context, newer.c_str()) != 1)
    return at(settings.cert, "`ciphers`: \"" + newer + "\": " + openssl_reason());
  if (!older.empty() && SSL_CTX_set_cipher_list(context, older.c_str()) != 1)
    return at(settings.cert, "`ciphers`: \"" + older + "\": " + openssl_reason());
  if (older.empty() && SSL_CTX_set_cipher_list(context, kCiphers) != 1)
    return at(settings.cert, "this OpenSSL has none of our ciphers: " + openssl_reason());
  return {};
}

Result<SslContextPtr, std::string> make_context(const TlsSettings& settings, const TlsFile& cert, Material material,
                                                const ClientAuthority& authority, const SessionId& id) {
  SslContextPtr made(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const c = made.get();
  if (!c) return at(cert, "no TLS: " + openssl_reason());
  SSL_CTX_set_min_proto_version(c, settings.least == TlsSettings::Version::tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  // An idle connection then holds no room for records.
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_dh_auto(c, 1);
  SSL_CTX_set_max_cert_list(c, kClientChainBytes);
  if (auto set = set_ciphers(c, settings); !set) return std::move(set).error();

  if (SSL_CTX_use_certificate(c, material.chain.front().get()) != 1) return at(cert, cert.path + ": " + openssl_reason());
  for (std::size_t i = 1; i < material.chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(c, material.chain[i].get()) != 1) return at(cert, cert.path + ": " + openssl_reason());
  if (SSL_CTX_use_PrivateKey(c, material.key.get()) != 1) return at(cert, cert.path + ": " + openssl_reason());

  if (settings.verify != TlsSettings::Verify::none) {
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | (settings.verify == TlsSettings::Verify::required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
    SSL_CTX_set_verify_depth(c, kVerifyDepth);
    SSL_CTX_set1_cert_store(c, authority.store.get());
    for (const X509Ptr& a : authority.certificates)
      if (SSL_CTX_add_client_CA(c, a.get()) != 1) return at(settings.client_ca, settings.client_ca.path + ": " + openssl_reason());
  }

  // Sessions live in clients' tickets alone. One of other certificates or other rules is not resumed: else a client whose
  // authority was taken away would come in by what it was once.
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(c, kSession_s);
  SSL_CTX_set_session_id_context(c, id.data(), static_cast<unsigned int>(id.size()));
  SSL_CTX_set_tlsext_ticket_key_evp_cb(c, seal_ticket);
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, nullptr);
  return made;
}

}  // namespace

Result<Tls::Made, std::string> Tls::make(const TlsSettings& settings, std::shared_ptr<TlsTickets> tickets, std::time_t now) {
  Made made;
  const std::shared_ptr<Tls> tls(new Tls(std::move(tickets)));
  tls->bio_method_ = TlsSession::make_bio_method();

  auto authority = read_authority(settings.client_ca, now, made.warnings);
  if (!authority) return std::move(authority).error();
  auto own = read_material(settings.cert, settings.key, now, made.warnings);
  if (!own) return std::move(own).error();
  std::vector<Material> others;
  for (const TlsSettings::Named& n : settings.names) {
    auto its = read_material(n.cert, n.key, now, made.warnings);
    if (!its) return std::move(its).error();
    // Of "*.example.com" some name stands for all.
    const std::string asked = n.name.starts_with("*.") ? "x" + n.name.substr(1) : n.name;
    if (X509_check_host(its->chain.front().get(), asked.data(), asked.size(), 0, nullptr) != 1)
      made.warnings.push_back(at(n.cert, n.cert.path + ": the certificate does not name " + n.name));
    others.push_back(*std::move(its));
  }
  ERR_clear_error();

  SessionId id{};
  const DigestPtr digest(EVP_MD_CTX_new());
  EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr);
  const unsigned char rules[] = {static_cast<unsigned char>(settings.verify), static_cast<unsigned char>(settings.least)};
  EVP_DigestUpdate(digest.get(), rules, sizeof rules);
  for (const X509Ptr& c : authority->certificates) hash(digest.get(), *c);
  hash(digest.get(), *own->chain.front());
  for (const Material& m : others) hash(digest.get(), *m.chain.front());
  EVP_DigestFinal_ex(digest.get(), id.data(), nullptr);

  auto context = make_context(settings, settings.cert, *std::move(own), *authority, id);
  if (!context) return std::move(context).error();
  tls->context_ = *std::move(context);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const TlsSettings::Named& n = settings.names[i];
    auto its = make_context(settings, n.cert, std::move(others[i]), *authority, id);
    if (!its) return std::move(its).error();
    tls->named_.push_back({n.name.starts_with("*.") ? n.name.substr(1) : n.name, *std::move(its)});
  }
  if (!tls->named_.empty()) {
    // What SSL_CTX_set_tlsext_servername_callback() is, without its cast.
    SSL_CTX_callback_ctrl(tls->context_.get(), SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, reinterpret_cast<void (*)()>(on_server_name));
    SSL_CTX_set_tlsext_servername_arg(tls->context_.get(), tls.get());
  }
  ERR_clear_error();
  made.tls = tls;
  return made;
}

int Tls::on_server_name(SSL* ssl, int*, void* self) {
  const char* const asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (!asked) return SSL_TLSEXT_ERR_NOACK;
  SSL_CTX* const found = static_cast<const Tls*>(self)->find_named(asked);
  if (!found) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_SSL_CTX(ssl, found);
  return SSL_TLSEXT_ERR_OK;
}

SSL_CTX* Tls::find_named(std::string_view name) const {
  for (const Named& n : named_)
    if (equal_text(n.name, name)) return n.context.get();
  const std::size_t dot = name.find('.');
  if (dot == 0 || dot == name.npos) return nullptr;
  for (const Named& n : named_)
    if (n.name.front() == '.' && equal_text(n.name, name.substr(dot))) return n.context.get();
  return nullptr;
}

}  // namespace sluice::proxy
