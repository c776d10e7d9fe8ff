#include <doctest/doctest.h>

#include "t/proxy/fake_routes.h"
#include "t/proxy/tls_fixture.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

namespace {

std::string error_of(const Materials& m, const TlsSettings& s) {
  auto made = Tls::make(s, m.tickets, std::time(nullptr));
  return made ? "" : made.error();
}

std::vector<std::string> warnings_of(const Materials& m, const TlsSettings& s) {
  auto made = Tls::make(s, m.tickets, std::time(nullptr));
  REQUIRE_MESSAGE(made, (made ? std::string() : made.error()));
  return made->warnings;
}

}  // namespace

TEST_CASE("what is wrong with a file is said with its place, its path and the reason") {
  const Materials m;
  const TlsSettings good = m.settings();
  CHECK(error_of(m, good) == "");
  const Identity other = make_identity({});
  const auto with_cert = [&](std::string_view text) {
    TlsSettings s = good;
    s.cert = m.folder.file("x.pem", text);
    return error_of(m, s);
  };
  const auto with_key = [&](std::string_view text) {
    TlsSettings s = good;
    s.key = m.folder.file("x.key", text);
    return error_of(m, s);
  };
  const auto has = [](const std::string& all, std::string_view piece) {
    CHECK_MESSAGE(all.find(piece) != std::string::npos, all);
    CHECK_MESSAGE(all.starts_with("t.lua:1: /tmp/"), all);
  };
  TlsSettings missing = good;
  missing.cert.path += ".not-there";
  has(error_of(m, missing), "No such file");
  missing = good;
  missing.key.path = missing.key.path.substr(0, missing.key.path.rfind('/'));
  CHECK(error_of(m, missing).starts_with("t.lua:1: "));   // a folder
  has(with_cert(""), "no certificate is in it");
  has(with_cert("some text\n"), "no certificate is in it");
  has(with_cert(pem_of(*other.key)), "no certificate is in it");
  const std::string pem = pem_of(*m.server.certificate);
  has(with_cert(pem + "-----BEGIN CERTIFICATE-----\nMIIB!!!\n-----END CERTIFICATE-----\n"), "certificate 2 of it cannot be read: ");
  has(with_cert(pem.substr(0, pem.size() / 2)), "certificate 1 of it cannot be read: ");
  has(with_key(""), "no private key is in it");
  has(with_key(pem), "no private key is in it");
  has(with_key(pem_of(*other.key)), "not the key of the certificate in /tmp/");
  has(with_key(pem_of(*m.server.key, "password")), "encrypted");
  std::string broken = pem_of(*m.server.key);
  broken[60] = broken[60] == 'A' ? 'B' : 'A';
  broken[61] = '!';
  has(with_key(broken), "cannot be read: ");
  TlsSettings ca = good;
  ca.verify = TlsSettings::Verify::required;
  ca.client_ca = m.folder.file("ca2.pem", "nothing");
  has(error_of(m, ca), "no certificate is in it");
  const Identity weak = make_identity({.rsa_bits = 1024});
  TlsSettings small = good;
  small.cert = m.folder.file("weak.pem", pem_of(*weak.certificate));
  small.key = m.folder.file("weak.key", pem_of(*weak.key));
  has(error_of(m, small), "ee key too small");
  std::string many = pem, authorities;
  while (many.size() < 90'000) many += pem;
  has(with_cert(many), " bytes of certificates, and 48 KiB are the most");
  for (int i = 0; i < 60; ++i) authorities += pem_of(*make_identity({.cn = std::string(60, 'x') + std::to_string(i), .also_cn = std::string(64, 'y'), .dns = "", .authority = true}).certificate);
  while (authorities.size() < 200'000) authorities += authorities;
  ca.client_ca = m.folder.file("many.pem", authorities);
  has(error_of(m, ca), " bytes of authorities' names, and 16 KiB are the most");
  TlsSettings ciphers = good;
  ciphers.ciphers = "NO-SUCH-CIPHER";
  CHECK(error_of(m, ciphers) == "t.lua:1: `ciphers`: \"NO-SUCH-CIPHER\": no cipher match");
  ciphers.ciphers = "TLS_NO_SUCH";
  CHECK(error_of(m, ciphers).starts_with("t.lua:1: `ciphers`: \"TLS_NO_SUCH\": "));
  ciphers.ciphers = "TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256";
  CHECK(error_of(m, ciphers) == "");
  TlsSettings named = good;
  named.names.push_back({"a.example", m.cert, m.folder.file("x.key", pem_of(*other.key))});
  has(error_of(m, named), "not the key of the certificate in");
}

TEST_CASE("a certificate out of date, or not for its name, is a warning") {
  const Materials fresh;
  CHECK(warnings_of(fresh, fresh.settings()).empty());
  const Materials late({.from_s = -7 * 86'400, .to_s = -86'400});
  const auto one = warnings_of(late, late.settings());
  REQUIRE(one.size() == 1);
  CHECK_MESSAGE(one[0].find("cert.pem: the certificate has expired on 20") != std::string::npos, one[0]);
  CHECK(one[0].starts_with("t.lua:1: "));
  const Materials early({.from_s = 86'400, .to_s = 2 * 86'400});
  const auto two = warnings_of(early, early.settings());
  REQUIRE(two.size() == 1);
  CHECK_MESSAGE(two[0].find("not valid before 20") != std::string::npos, two[0]);
  const Materials named({.dns = "*.example.com"});
  TlsSettings s = named.settings();
  s.names.push_back({"www.example.com", named.cert, named.key});
  s.names.push_back({"*.example.com", named.cert, named.key});
  CHECK(warnings_of(named, s).empty());
  s.names.push_back({"example.org", named.cert, named.key});
  const auto three = warnings_of(named, s);
  REQUIRE(three.size() == 1);
  CHECK_MESSAGE(three[0].ends_with("cert.pem: the certificate does not name example.org"), three[0]);
}

TEST_CASE("tickets' keys change every hour and are good for one more") {
  FakeClock clock;
  TlsTickets tickets(clock);
  const auto name = [](const TlsTickets::Key& k) { return std::string(k.name.begin(), k.name.end()); };
  const TlsTickets::Key first = *tickets.newest();
  CHECK(name(*tickets.newest()) == name(first));
  CHECK(tickets.find(name(first))->newest);
  CHECK_FALSE(tickets.find("some other name"));
  CHECK_FALSE(tickets.find(std::string(16, 'x')));
  clock.now_us += TlsTickets::kPeriod_us - 1;
  CHECK(tickets.find(name(first))->newest);
  clock.now_us += 1;
  const TlsTickets::Key second = *tickets.newest();
  CHECK(name(second) != name(first));
  CHECK(second.cipher != first.cipher);
  CHECK(second.mac != first.mac);
  CHECK_FALSE(tickets.find(name(first))->newest);
  CHECK(tickets.find(name(first))->key.cipher == first.cipher);
  clock.now_us += TlsTickets::kPeriod_us;
  CHECK_FALSE(tickets.find(name(first)));
  CHECK_FALSE(tickets.find(name(second))->newest);
  clock.now_us += 2 * TlsTickets::kPeriod_us;    // nobody came for two hours
  CHECK_FALSE(tickets.find(name(second)));
}

TEST_CASE("a ticket of an older key is taken and renewed; of one that is forgotten it is not") {
  const Materials m;
  FakeClock clock;
  const auto tickets = std::make_shared<TlsTickets>(clock);
  auto made = Tls::make(m.settings(), tickets, std::time(nullptr));
  REQUIRE(made);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto meet = [&](TlsClient& client) {
      const auto session = TlsSession::make(made->tls);
      Output wire;
      std::string plain(TlsSession::kPlainBytes, '\0');
      for (int i = 0; i < 6; ++i) {
        session->read(client.give(), plain.data(), wire);
        client.take(wire.front());
        wire.reset();
      }
      REQUIRE(session->state() == TlsSession::State::open);
      return session->resumed();
    };
    TlsClient first({.version = version});
    CHECK_FALSE(meet(first));
    REQUIRE(first.session());
    clock.now_us += TlsTickets::kPeriod_us;
    TlsClient second({.version = version, .resume = first.session()});
    CHECK(meet(second));
    REQUIRE(second.session());                   // a new ticket, of the newest key
    clock.now_us += TlsTickets::kPeriod_us;
    TlsClient third({.version = version, .resume = first.session()});
    CHECK_FALSE(meet(third));
    TlsClient fourth({.version = version, .resume = second.session()});
    CHECK(meet(fourth));
  }
}
