#include "proxy/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

#include "vm/base/read_file.h"

namespace sluice::proxy {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
using BioPtr = Handle<BIO, BIO_free>;

// A server's start cannot wait for somebody to type.
int no_password(char*, int, int, void*) { return -1; }

bool ended_there() {
  const unsigned long e = ERR_peek_last_error();
  return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

Result<std::string, std::string> text_of(const TlsFile& file) {
  auto text = read_file(file.path, kMostBytes);
  if (!text) return Result<std::string, std::string>::failure(at(file, text.error()));
  return text;
}

}  // namespace

std::string at(const TlsFile& file, std::string_view sentence) {
  return (file.place.empty() ? std::string() : file.place + ": ").append(sentence);
}

std::string openssl_reason() {
  const unsigned long e = ERR_peek_last_error();
  const char* const words = e ? ERR_reason_error_string(e) : nullptr;
  std::string out = words ? words : "OpenSSL does not say why";
  ERR_clear_error();
  return out;
}

Result<std::vector<X509Ptr>, std::string> read_certificates(const TlsFile& file) {
  auto text = text_of(file);
  if (!text) return std::move(text).error();
  ERR_clear_error();
  const BioPtr bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  std::vector<X509Ptr> all;
  while (bio) {
    X509Ptr one(PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr));
    if (!one) break;
    all.push_back(std::move(one));
  }
  if (ended_there() && !all.empty()) {
    ERR_clear_error();
    return all;
  }
  if (ended_there()) {
    ERR_clear_error();
    return at(file, file.path + ": no certificate is in it (PEM: -----BEGIN CERTIFICATE-----)");
  }
  return at(file, file.path + ": certificate " + std::to_string(all.size() + 1) + " of it cannot be read: " + openssl_reason());
}

Result<KeyPtr, std::string> read_key(const TlsFile& file) {
  auto text = text_of(file);
  if (!text) return std::move(text).error();
  ERR_clear_error();
  const BioPtr bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  KeyPtr key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr) : nullptr);
  const bool there = text->find("PRIVATE KEY-----") != std::string::npos, encrypted = text->find("ENCRYPTED") != std::string::npos;
  OPENSSL_cleanse(text->data(), text->size());
  if (key) return key;
  if (encrypted) {
    ERR_clear_error();
    return at(file, file.path + ": the key is encrypted, and nobody is there to be asked for its password");
  }
  if (!there) {
    ERR_clear_error();
    return at(file, file.path + ": no private key is in it (PEM: -----BEGIN PRIVATE KEY-----)");
  }
  return at(file, file.path + ": the key cannot be read: " + openssl_reason());
}

std::string date_warning(const TlsFile& file, const X509& certificate, std::time_t now) {
  const ASN1_TIME* const from = X509_get0_notBefore(&certificate);
  const ASN1_TIME* const to = X509_get0_notAfter(&certificate);
  const auto day = [](const ASN1_TIME* time) {
    std::tm t{};
    std::array<char, 16> text{};
    if (ASN1_TIME_to_tm(time, &t) != 1) return std::string("an unknown day");
    return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &t));
  };
  if (X509_cmp_time(to, &now) < 0) return at(file, file.path + ": the certificate has expired on " + day(to));
  if (X509_cmp_time(from, &now) > 0) return at(file, file.path + ": the certificate is not valid before " + day(from));
  return {};
}

}  // namespace sluice::proxy
