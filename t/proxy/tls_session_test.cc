#include <doctest/doctest.h>

#include <algorithm>

#include "t/proxy/tls_fixture.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

namespace {

constexpr int kVersions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

std::string taken(Output& wire) {
  std::string out;
  while (!wire.done()) {
    const std::string piece(wire.front());
    out += piece;
    wire.advance(piece.size());
  }
  wire.reset();
  return out;
}

// A session, and what it has read.
struct Server {
  explicit Server(const std::shared_ptr<const Tls>& tls) : session(TlsSession::make(tls)), plain(TlsSession::kPlainBytes, '\0') {}
  void take(std::string_view cipher) { heard.append(plain.data(), session->read(cipher, plain.data(), wire)); }
  void say(std::string_view text) {
    Output from;
    from.append(text);
    while (!from.done()) session->write(from, wire);
  }
  std::unique_ptr<TlsSession> session;
  Output wire;
  std::string heard, plain;
};

// Carries bytes both ways, in pieces of `most`, until both are quiet.
void carry(TlsClient& client, Server& server, std::size_t most = TlsSession::kCipherBytes) {
  for (;;) {
    const std::string there = client.give(), back = taken(server.wire);
    if (there.empty() && back.empty()) return;
    for (std::size_t i = 0; i < there.size(); i += most) server.take(std::string_view(there).substr(i, most));
    for (std::size_t i = 0; i < back.size(); i += most) client.take(std::string_view(back).substr(i, most));
  }
}

std::string long_text(std::size_t bytes) {
  std::string out(bytes, '\0');
  std::uint32_t x = 7;
  for (char& c : out) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  return out;
}

}  // namespace

TEST_CASE("a session speaks both versions, whatever the pieces are that bytes come in") {
  const Materials m;
  const std::string question = long_text(70'000), answer = long_text(150'000);
  for (const int version : kVersions)
    for (const std::size_t most : {std::size_t{1}, std::size_t{5}, std::size_t{1000}, std::size_t{16'389}, TlsSession::kCipherBytes}) {
      CAPTURE(version);
      CAPTURE(most);
      Server server(m.tls());
      TlsClient client({.version = version});
      carry(client, server, most);
      REQUIRE(client.open());
      CHECK(server.session->state() == TlsSession::State::open);
      client.say(question);
      carry(client, server, most);
      CHECK(server.heard == question);
      server.say(answer);
      carry(client, server, most);
      CHECK(client.heard() == answer);
      client.bye();
      carry(client, server, most);
      CHECK(server.session->state() == TlsSession::State::ended);
      server.say("late");                        // a client that sends no more may still read
      server.session->close(server.wire);
      CHECK(server.session->closed());
      carry(client, server, most);
      CHECK(client.error() == "");
    }
}

TEST_CASE("many small pieces of an answer share a record, and a burst is bounded") {
  const Materials m;
  Server server(m.tls());
  TlsClient client({});
  carry(client, server);
  std::vector<std::string> lent(200, std::string(100, 'x'));
  Output from;
  for (const std::string& l : lent) {
    from.append("head ");
    from.lend(l);
  }
  server.session->write(from, server.wire);
  CHECK(from.done());
  CHECK(server.wire.left() < 200 * 105 + 2 * 60);     // two records, not four hundred
  carry(client, server);
  std::string all;
  for (const std::string& l : lent) all += "head " + l;
  CHECK(client.heard() == all);

  const std::string large = long_text(500'000);
  from.reset();
  from.append("h");
  from.lend(large);
  std::string got;
  while (!from.done()) {
    server.session->write(from, server.wire);
    CHECK(server.wire.left() <= TlsSession::kBurstBytes);
    CHECK(server.wire.left() > 0);
    carry(client, server);
    got += client.heard();
  }
  CHECK(got == "h" + large);
}

TEST_CASE("the most that one read takes fits, with a record that had almost come before") {
  const Materials m;
  for (const int version : kVersions) {
    Server server(m.tls());
    TlsClient client({.version = version});
    carry(client, server);
    const std::string text = long_text(16 * 1024 * 8);
    client.say(text);
    std::string cipher = client.give();
    const std::size_t first = 16'400;            // all of the first record but its end, in either version
    server.take(std::string_view(cipher).substr(0, first));
    CHECK(server.heard.empty());
    for (std::size_t at = first; at < cipher.size(); at += TlsSession::kCipherBytes)
      server.take(std::string_view(cipher).substr(at, TlsSession::kCipherBytes));
    CHECK(server.heard == text);
  }
}

TEST_CASE("garbage, a broken record and a record out of its place fail, and say so to the client") {
  const Materials m;
  SUBCASE("garbage") {
    Server server(m.tls());
    server.take(long_text(200));
    CHECK(server.session->state() == TlsSession::State::failed);
    CHECK(server.heard.empty());
  }
  SUBCASE("a bit in a record") {
    for (const int version : kVersions) {
      Server server(m.tls());
      TlsClient client({.version = version});
      carry(client, server);
      client.say("GET / HTTP/1.1\r\n\r\n");
      std::string cipher = client.give();
      cipher[cipher.size() - 3] ^= 1;
      server.take(cipher);
      CHECK(server.session->state() == TlsSession::State::failed);
      CHECK(server.heard.empty());
      carry(client, server);
      CHECK_MESSAGE(client.error().find("bad record mac") != std::string::npos, client.error());
    }
  }
  SUBCASE("the same record twice") {
    Server server(m.tls());
    TlsClient client({});
    carry(client, server);
    client.say("once");
    const std::string cipher = client.give();
    server.take(cipher + cipher);
    CHECK(server.heard == "once");
    CHECK(server.session->state() == TlsSession::State::failed);
  }
  SUBCASE("every byte of a client's hello") {
    TlsClient client({.version = TLS1_2_VERSION, .server_name = "a.example"});
    const std::string hello = client.give();
    for (std::size_t i = 0; i < hello.size(); ++i) {
      Server server(m.tls());
      std::string bent = hello;
      bent[i] ^= 0x55;
      server.take(bent);                         // whatever comes of it: no crash, no leak, nothing read
      CHECK(server.heard.empty());
      CHECK(server.session->state() != TlsSession::State::open);
    }
  }
}

TEST_CASE("one connection's failure leaves nothing behind for another's call") {
  const Materials m;
  Server good(m.tls()), bad(m.tls());
  TlsClient client({});
  carry(client, good);
  bad.take(std::string_view("\x16\x03\x01\x00\x05hello", 10));
  CHECK(bad.session->state() == TlsSession::State::failed);
  client.say("still here");
  carry(client, good);
  CHECK(good.heard == "still here");
  CHECK(good.session->state() == TlsSession::State::open);
}

TEST_CASE("a client's certificate is asked for, verified and named") {
  const Materials m;
  const Identity alice = make_identity({.cn = "alice", .signer = &m.authority});
  const Identity stranger = make_identity({.cn = "alice"});
  const Identity late = make_identity({.cn = "alice", .signer = &m.authority, .from_s = -7200, .to_s = -3600});
  TlsSettings s = m.settings();
  s.client_ca = m.ca;
  const auto meet = [&](TlsSettings::Verify verify, const Identity* identity, int version) {
    s.verify = verify;
    Server server(m.tls(s));
    TlsClient client({.version = version, .identity = identity});
    carry(client, server);
    return server.session->state() == TlsSession::State::open ? std::string(server.session->peer_cn()) : "refused: " + client.error();
  };
  using Verify = TlsSettings::Verify;
  for (const int version : kVersions) {
    CAPTURE(version);
    CHECK(meet(Verify::none, &alice, version) == "");
    CHECK(meet(Verify::optional, &alice, version) == "alice");
    CHECK(meet(Verify::optional, nullptr, version) == "");
    CHECK(meet(Verify::optional, &stranger, version).find("unknown ca") != std::string::npos);
    CHECK(meet(Verify::required, &alice, version) == "alice");
    CHECK(meet(Verify::required, nullptr, version).find(version == TLS1_3_VERSION ? "certificate required" : "handshake failure") != std::string::npos);
    CHECK(meet(Verify::required, &stranger, version).starts_with("refused: "));
    CHECK(meet(Verify::required, &late, version).find("expired") != std::string::npos);
  }
}

TEST_CASE("a name that could be read as another is none") {
  const Materials m;
  TlsSettings s = m.settings();
  s.client_ca = m.ca;
  s.verify = TlsSettings::Verify::required;
  const auto name_of = [&](const IdentityWish& wish) {
    IdentityWish its = wish;
    its.signer = &m.authority;
    const Identity who = make_identity(its);
    Server server(m.tls(s));
    TlsClient client({.identity = &who});
    carry(client, server);
    REQUIRE(server.session->state() == TlsSession::State::open);
    return std::string(server.session->peer_cn());
  };
  CHECK(name_of({.cn = "J\xc3\xbcrgen & co."}) == "J\xc3\xbcrgen & co.");
  CHECK(name_of({.cn = "general", .also_cn = "particular"}) == "particular");
  CHECK(name_of({.cn = std::string("admin\0.evil", 11)}) == "");
  CHECK(name_of({.cn = "line\nbreak"}) == "");
  CHECK(name_of({.cn = ""}) == "");
}

TEST_CASE("sessions are resumed by tickets, the client's name with them; not under other rules or certificates") {
  const Materials m;
  const Identity alice = make_identity({.cn = "alice", .signer = &m.authority});
  TlsSettings s = m.settings();
  s.client_ca = m.ca;
  s.verify = TlsSettings::Verify::optional;
  const auto first = m.tls(s);
  for (const int version : kVersions) {
    CAPTURE(version);
    Server server(first);
    TlsClient client({.version = version, .identity = &alice});
    carry(client, server);
    CHECK_FALSE(server.session->resumed());
    REQUIRE(client.session());
    const auto again = [&](const std::shared_ptr<const Tls>& tls) {
      Server next(tls);
      // OpenSSL's client uses a session of TLS 1.3 once; each time a copy.
      const Handle<SSL_SESSION, SSL_SESSION_free> session(SSL_SESSION_dup(client.session()));
      TlsClient back({.version = version, .identity = &alice, .resume = session.get()});
      carry(back, next);
      REQUIRE(next.session->state() == TlsSession::State::open);
      CHECK(next.session->resumed() == back.resumed());
      return (back.resumed() ? "resumed " : "anew ") + std::string(next.session->peer_cn());
    };
    CHECK(again(first) == "resumed alice");
    CHECK(again(m.tls(s)) == "resumed alice");           // a reload that changed nothing
    TlsSettings other = s;
    other.verify = TlsSettings::Verify::required;
    CHECK(again(m.tls(other)) == "anew alice");
    const Identity else_ca = make_identity({.cn = "another authority", .authority = true});
    other = s;
    other.client_ca = m.folder.file("both.pem", pem_of(*m.authority.certificate) + pem_of(*else_ca.certificate));
    CHECK(again(m.tls(other)) == "anew alice");
    other = s;
    const Identity renewed = make_identity({.cn = "localhost", .signer = &m.authority});
    other.cert = m.folder.file("renewed.pem", pem_of(*renewed.certificate));
    other.key = m.folder.file("renewed-key.pem", pem_of(*renewed.key));
    CHECK(again(m.tls(other)) == "anew alice");
  }
}

TEST_CASE("certificates by the name that is asked for, and the protocol") {
  const Materials m;
  const Identity one = make_identity({.cn = "one", .dns = "one.example", .signer = &m.authority});
  const Identity any = make_identity({.cn = "any", .dns = "*.many.example", .signer = &m.authority});
  TlsSettings s = m.settings();
  s.names.push_back({"one.example", m.folder.file("one.pem", pem_of(*one.certificate)), m.folder.file("one.key", pem_of(*one.key))});
  s.names.push_back({"*.many.example", m.folder.file("any.pem", pem_of(*any.certificate)), m.folder.file("any.key", pem_of(*any.key))});
  const auto tls = m.tls(s);
  const auto cn_for = [&](const char* name) {
    Server server(tls);
    TlsClient client({.server_name = name});
    carry(client, server);
    return client.server_cn();
  };
  CHECK(cn_for(nullptr) == "localhost");
  CHECK(cn_for("one.example") == "one");
  CHECK(cn_for("ONE.Example") == "one");
  CHECK(cn_for("x.many.example") == "any");
  CHECK(cn_for("many.example") == "localhost");
  CHECK(cn_for("x.y.many.example") == "localhost");
  CHECK(cn_for("other.example") == "localhost");

  const auto protocol_of = [&](std::string offered) {
    Server server(tls);
    TlsClient client({.server_name = "one.example", .protocols = std::move(offered)});
    carry(client, server);
    return server.session->state() == TlsSession::State::open ? client.protocol() : client.error();
  };
  CHECK(protocol_of("") == "");
  CHECK(protocol_of("\x02h2\x08http/1.1") == "http/1.1");
  CHECK(protocol_of("\x08http/1.0") == "http/1.0");
  CHECK_MESSAGE(protocol_of("\x02h2").find("no application protocol") != std::string::npos, protocol_of("\x02h2"));
}

TEST_CASE("a client's new keys are taken, and one that only makes keys is bounded by who writes") {
  const Materials m;
  Server server(m.tls());
  TlsClient client({.version = TLS1_3_VERSION});
  carry(client, server);
  client.say("before ");
  client.change_keys();
  client.say("after");
  carry(client, server);
  CHECK(server.heard == "before after");
  server.say("and back");
  carry(client, server);
  CHECK(client.heard() == "and back");
  CHECK(client.error() == "");
}

TEST_CASE("a renegotiation is not begun") {
  const Materials m;
  Server server(m.tls());
  TlsClient client({.version = TLS1_2_VERSION});
  carry(client, server);
  SSL_renegotiate(client.ssl());
  SSL_do_handshake(client.ssl());
  carry(client, server);
  CHECK(client.error() == "no renegotiation");
}
