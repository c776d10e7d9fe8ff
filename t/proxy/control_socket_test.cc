#include "proxy/control_socket.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "proxy/log.h"
#include "t/proxy/place.h"
#include "vm/base/json.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

constexpr const char* kNoCommand = "{\"ok\":false,\"error\":\"there is no command `stop`; there are echo, later and watch\"}";

// The control side, and clients of it, in one thread: turn() is one round of the server's loop.
struct World {
  explicit World(std::size_t queue_bytes = 512u << 10) : streams(queue_bytes), control(&streams) {
    auto socket = UnixSocket::open(place.path + "/s", UnixSocket::Kind::stream);
    REQUIRE(socket);
    control.listen(*std::move(socket));
    control.add({"echo", {"text", "list", "n", "on"}, [this](const ControlAsked& asked, Asker to) {
                   std::string out = "\"text\":";
                   append_json_text(out, asked.text("text").value_or("none"));
                   if (const auto n = asked.number("n")) out += ",\"n\":" + std::to_string(static_cast<int>(*n));
                   if (asked.flag("on")) out += ",\"on\":true";
                   if (const auto list = asked.texts("list")) out += ",\"list\":" + std::to_string(list->size());
                   control.answer(to, out);
                 }});
    control.add({"later", {}, [this](const ControlAsked&, Asker to) { waiting.push_back(to); }});
    control.add({"watch", {}, [this](const ControlAsked&, Asker to) {
                   control.watch(to, {Stream::user});
                   control.answer(to);
                 }});
  }
  void turn() {
    std::vector<pollfd> fds;
    control.wait_for(fds);
    REQUIRE(poll(fds.data(), fds.size(), 0) >= 0);
    control.hear(fds.data());
  }
  void turns() {
    for (int i = 0; i < 6; ++i) turn();
  }
  Place place;
  Streams streams;
  ControlSocket control;
  std::vector<Asker> waiting;
};

class Client {
 public:
  explicit Client(World& w) : w_(w) {
    auto fd = connect_unix(w.place.path + "/s");
    REQUIRE(fd);
    fd_ = *fd;
    fcntl(fd_, F_SETFL, O_NONBLOCK);
    w.turn();
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void send(std::string_view bytes) {
    REQUIRE(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    w_.turns();
  }
  void end_sending() {
    shutdown(fd_, SHUT_WR);
    w_.turns();
  }
  // What is there; "<end>" behind it when the connection is over.
  std::string heard() {
    std::string out;
    char bytes[65'536];
    for (;;) {
      const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
      if (n < 0) return out;
      if (n == 0) return out + "<end>";
      out.append(bytes, static_cast<std::size_t>(n));
      w_.turn();
    }
  }
  std::string ask(std::string_view line) {
    send(std::string(line) + "\n");
    std::string answer = heard();
    REQUIRE_FALSE(answer.empty());
    CHECK(answer.back() == '\n');
    answer.pop_back();
    return answer;
  }

 private:
  World& w_;
  int fd_ = -1;
};

}  // namespace

TEST_CASE("a command is a line, in any pieces, and its answer is a line") {
  World w;
  Client c(w);
  CHECK(c.ask(R"({"do":"echo","text":"a \"word\"\u00e9","n":-3,"on":true,"list":["a","b"]})") == "{\"ok\":true,\"text\":\"a \\\"word\\\"\xc3\xa9\",\"n\":-3,\"on\":true,\"list\":2}");
  for (const char piece : std::string_view("{\"do\" :\"ec")) c.send({&piece, 1});
  CHECK(c.heard().empty());
  c.send("ho\"}\n");
  CHECK(c.heard() == "{\"ok\":true,\"text\":\"none\"}\n");
  c.send("\n \r\n{\"do\":\"echo\",\"n\":1}\r\n{\"do\":\"echo\",\"n\":2}\n{\"do\":");
  CHECK(c.heard() == "{\"ok\":true,\"text\":\"none\",\"n\":1}\n{\"ok\":true,\"text\":\"none\",\"n\":2}\n");
  c.send("\"stop\"}\n");
  CHECK(c.heard() == std::string(kNoCommand) + "\n");
}

TEST_CASE("what is no command is refused with what one is, and the next one is served") {
  World w;
  Client c(w);
  const std::string example = "{\"ok\":false,\"error\":\"a command is a line with a JSON object, such as {\\\"do\\\":\\\"stats\\\"}\"}";
  for (const char* wrong : {"reload", "[]", "[\"do\"]", "{", "{\"do\":\"echo\"", "{\"do\":\"echo\"}}", "7", "\"do\"", "{\"do\":\"\xff\"}", "\x01\x02"})
    CHECK(c.ask(wrong) == example);
  c.send(std::string_view("{\"do\":\"ec\0ho\"}\n", 15));
  CHECK(c.heard() == example + "\n");
  for (const char* wrong : {"{}", "{\"do\":7}", "{\"do\":\"\"}", "{\"echo\":true}"})
    CHECK(c.ask(wrong) == "{\"ok\":false,\"error\":\"a command says what in \\\"do\\\", such as {\\\"do\\\":\\\"stats\\\"}\"}");
  CHECK(c.ask("{\"do\":\"echo\",\"txt\":\"x\"}") == "{\"ok\":false,\"error\":\"echo takes text, list, n and on, not `txt`\"}");
  CHECK(c.ask("{\"do\":\"watch\",\"x\":1}") == "{\"ok\":false,\"error\":\"watch takes no arguments, not `x`\"}");
  CHECK(c.ask("{\"do\":\"echo\",\"text\":7,\"n\":\"1\",\"on\":1,\"list\":[1]}") == "{\"ok\":true,\"text\":\"none\"}");
  CHECK(c.ask("{\"do\":\"echo\"}") == "{\"ok\":true,\"text\":\"none\"}");
}

TEST_CASE("a line that is too long is refused and ends the connection; the longest is served") {
  World w;
  Client c(w);
  const std::string longest = "{\"do\":\"echo\",\"text\":\"" + std::string(16'384 - 24, 'x') + "\"}\n";
  REQUIRE(longest.size() == 16'384);
  c.send(longest);
  CHECK(c.heard().size() > 16'000);
  c.send(std::string(16'384, 'x'));
  CHECK(c.heard() == "{\"ok\":false,\"error\":\"a line has at most 16384 bytes\"}\n<end>");
}

TEST_CASE("an answer may come later; then the client's next command begins, and others go on meanwhile") {
  World w;
  Client a(w), b(w);
  a.send("{\"do\":\"later\"}\n{\"do\":\"echo\",\"n\":2}\n");
  CHECK(a.heard().empty());
  CHECK(b.ask("{\"do\":\"echo\",\"n\":1}") == "{\"ok\":true,\"text\":\"none\",\"n\":1}");
  REQUIRE(w.waiting.size() == 1);
  w.control.refuse(w.waiting[0], "not \"today\"", "\"generation\":3");
  w.control.answer(w.waiting[0], "\"n\":9");     // a second one is nobody's
  CHECK(a.heard() == "{\"ok\":false,\"error\":\"not \\\"today\\\"\",\"generation\":3}\n{\"ok\":true,\"text\":\"none\",\"n\":2}\n");
}

TEST_CASE("who has gone is forgotten; who only sends no more is answered, then closed") {
  World w;
  {
    Client gone(w);
    gone.send("{\"do\":\"later\"}\n");
  }
  w.turns();
  Client next(w);                                // in the place of the one that left
  next.send("{\"do\":\"later\"}\n");
  REQUIRE(w.waiting.size() == 2);
  w.control.answer(w.waiting[0], "\"n\":1");
  CHECK(next.heard().empty());
  next.end_sending();
  CHECK(next.heard().empty());
  w.control.answer(w.waiting[1], "\"n\":2");
  CHECK(next.heard() == "{\"ok\":true,\"n\":2}\n<end>");
  Client half(w);
  half.send("{\"do\":\"echo\"}\n{\"do\":\"ech");
  half.end_sending();
  CHECK(half.heard() == "{\"ok\":true,\"text\":\"none\"}\n<end>");
}

TEST_CASE("a client that asks and never reads is not served for ever") {
  World w;
  Client c(w);
  int answered = 0;
  w.control.add({"big", {}, [&](const ControlAsked&, Asker to) {
                   ++answered;
                   w.control.answer(to, "\"text\":\"" + std::string(50'000, 'x') + "\"");
                 }});
  std::string many;
  for (int i = 0; i < 200; ++i) many += "{\"do\":\"big\"}\n";
  c.send(many);
  w.turns();
  CHECK(answered < 20);
  std::string all;
  for (int i = 0; i < 1000 && answered < 200; ++i) all += c.heard(), w.turn();
  for (int i = 0; i < 20; ++i) all += c.heard(), w.turn();
  CHECK(answered == 200);
  CHECK(std::count(all.begin(), all.end(), '\n') == 200);
}

TEST_CASE("there are at most 64 clients; one more is told so") {
  World w;
  std::vector<std::unique_ptr<Client>> all;
  for (int i = 0; i < 64; ++i) all.push_back(std::make_unique<Client>(w));
  Client more(w);
  CHECK(more.heard() == "{\"ok\":false,\"error\":\"there are 64 clients already\"}\n<end>");
  CHECK(all[63]->ask("{\"do\":\"echo\"}") == "{\"ok\":true,\"text\":\"none\"}");
  all.pop_back();
  w.turns();
  Client again(w);
  CHECK(again.ask("{\"do\":\"echo\"}") == "{\"ok\":true,\"text\":\"none\"}");
}

TEST_CASE("who watches gets lines between answers; nothing is said when nobody does") {
  World w;
  const auto say = [&w](const char* text) { w.streams.say(Stream::user, LogLevel::info, 0, {{"text", text}}); };
  say("before");
  {
    Client a(w), b(w);
    CHECK(a.ask("{\"do\":\"watch\"}") == "{\"ok\":true}");
    CHECK(w.streams.watched(Stream::user));
    CHECK_FALSE(w.streams.watched(Stream::requests));
    say("one");
    w.turns();
    CHECK(json_text(a.heard(), "/text") == "one");
    CHECK(b.heard().empty());
    CHECK(a.ask("{\"do\":\"echo\"}") == "{\"ok\":true,\"text\":\"none\"}");
    // One that sends no more goes on watching.
    a.end_sending();
    say("two");
    w.turns();
    CHECK(json_text(a.heard(), "/text") == "two");
  }
  w.turns();
  CHECK_FALSE(w.streams.watched(Stream::user));
}

TEST_CASE("a watcher that does not read loses lines, is told how many, and costs no more than its room") {
  World w;
  Client slow(w), quick(w);
  slow.ask("{\"do\":\"watch\"}");
  quick.ask("{\"do\":\"watch\"}");
  const std::string text(200, 'x');
  std::size_t said = 0, read = 0, lost_by_quick = 0;
  std::string whole;
  const auto count = [](const std::string& lines, std::size_t& n, std::size_t& lost) {
    for (std::size_t at = 0, end = 0; (end = lines.find('\n', at)) != lines.npos; at = end + 1) {
      const std::string_view line = std::string_view(lines).substr(at, end - at);
      if (const auto dropped = json_number(line, "/dropped")) lost += static_cast<std::size_t>(*dropped);
      else if (json_text(line, "/text")) ++n;
    }
  };
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 100; ++i, ++said) w.streams.say(Stream::user, LogLevel::info, 0, {{"text", text}});
    w.turn();
    whole += quick.heard();
  }
  whole += quick.heard();
  count(whole, read, lost_by_quick);
  CHECK(read == said);
  CHECK(lost_by_quick == 0);
  std::string late;
  for (int i = 0; i < 200; ++i) late += slow.heard(), w.turn();
  w.streams.say(Stream::user, LogLevel::info, 0, {{"text", "last"}});
  w.turns();
  late += slow.heard();
  std::size_t got = 0, lost = 0;
  count(late, got, lost);
  CHECK(lost > 0);
  CHECK(got + lost == said + 1);
  CHECK(late.find("\"text\":\"last\"") != std::string::npos);
}

TEST_CASE("where the socket is") {
  CHECK(control_path(std::nullopt, "conf/shop.lua") == "conf/shop.sock");
  CHECK(control_path(std::nullopt, "shop.lua") == "shop.sock");
  CHECK(control_path(std::nullopt, "conf.d/shop") == "conf.d/shop.sock");
  CHECK(control_path(std::nullopt, ".shop") == ".shop.sock");
  CHECK(control_path("run/s", "/etc/shop.lua") == "/etc/run/s");
  CHECK(control_path("run/s", "shop.lua") == "run/s");
  CHECK(control_path("/run/s", "/etc/shop.lua") == "/run/s");
  CHECK(control_path("", "/etc/shop.lua").empty());
}
