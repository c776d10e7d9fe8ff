// What a config says of one listener's TLS: names of files and choices, nothing read yet.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::proxy {

// A file that the config names. Shape: `place` is where it does so ("sluice.lua:3"), for errors; a flag's is its name.
struct TlsFile {
  std::string path;                              // empty: none
  std::string place;
  friend bool operator==(const TlsFile&, const TlsFile&) = default;
};

struct TlsSettings {
  // none: clients are not asked; optional: what a client shows has to be good; required: it has to show one.
  enum class Verify : std::uint8_t { none, optional, required };
  enum class Version : std::uint8_t { tls12, tls13 };
  // A certificate for clients that ask for that name (SNI). Shape: lower case; "*.example.com" is one label more.
  struct Named {
    std::string name;
    TlsFile cert, key;
    friend bool operator==(const Named&, const Named&) = default;
  };
  TlsFile cert, key;                             // PEM: the certificate and those behind it; the key of the first
  TlsFile client_ca;                             // PEM: who signs clients' certificates
  Verify verify = Verify::none;
  Version least = Version::tls12;
  std::string ciphers;                           // OpenSSL's list; empty: our own. Names with TLS_ are of 1.3
  std::vector<Named> names;
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

}  // namespace sluice::proxy
