// Certificates and keys as files: read once on control, with errors that name the file, where it is named, and why.
#pragma once
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <ctime>
#include <string>
#include <vector>

#include "proxy/tls_settings.h"
#include "vm/base/handle.h"
#include "vm/base/result.h"

namespace sluice::proxy {

using X509Ptr = Handle<X509, X509_free>;
using KeyPtr = Handle<EVP_PKEY, EVP_PKEY_free>;

// All certificates of a PEM file, in its order; at least one.
// Errors: "PLACE: PATH: why". Thread: control.
Result<std::vector<X509Ptr>, std::string> read_certificates(const TlsFile& file);
// The first private key of a PEM file. Nobody is asked for a password: an encrypted one is an error.
Result<KeyPtr, std::string> read_key(const TlsFile& file);

// What a person should know of a certificate's dates: a sentence, or empty. `file` is where it came from.
std::string date_warning(const TlsFile& file, const X509& certificate, std::time_t now);

// "PLACE: sentence"; the place is left out where there is none.
std::string at(const TlsFile& file, std::string_view sentence);
// What OpenSSL said last, in words, and nothing of it left behind.
std::string openssl_reason();

}  // namespace sluice::proxy
