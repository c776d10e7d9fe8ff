#include "proxy/module_call.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "proxy/condition.h"
#include "proxy/router.h"
#include "t/proxy/fakes.h"

using namespace sluice;
using namespace sluice::proxy;
using fakes::FakeStore;

namespace {

constexpr std::uint32_t kView = method_bit(Method::get) | method_bit(Method::head) | method_bit(Method::options);
constexpr std::uint32_t kInput = method_bit(Method::post) | method_bit(Method::options);
constexpr std::uint32_t kObject = kView | method_bit(Method::put);

// One request through make_call, and what came of it.
struct Try {
  Try(Method method, std::string_view path) {
    request.method = method;
    request.path = path;
    request.has_length = true;
  }
  Try& header(std::string_view name, std::string_view value) {
    headers.push_back({name, value});
    request.headers = headers;
    return *this;
  }
  Try& body(std::string_view bytes) {
    sent = Buffer::copy(bytes, nullptr);
    request.body = &sent;
    return *this;
  }
  Try& no_length() {
    request.has_length = false;
    return *this;
  }
  Try& on(StorePtr other) {
    store = std::move(other);
    return *this;
  }
  bool ok() { return make_call(call, out, store, request); }
  // The refusal as "STATUS NAME".
  std::string refusal() {
    if (ok()) return "accepted";
    return std::to_string(out.status) + " " + std::string(name(out.error));
  }

  StorePtr store = std::make_shared<FakeStore>("shop");
  ModuleRequest request;
  std::vector<Header> headers;
  Buffer sent;
  Call call;
  Response out;
};

}  // namespace

TEST_CASE("views, inputs and objects become calls of the store") {
  Try view(Method::get, "/views/total");
  REQUIRE(view.ok());
  CHECK(view.call.verb == Verb::view);
  CHECK(view.call.name == "total");
  CHECK(view.call.store == view.store);

  Try head(Method::head, "/views/total");
  REQUIRE(head.ok());
  CHECK(head.call.verb == Verb::view);

  Try input(Method::post, "/inputs/say");
  REQUIRE(input.body("hello").ok());
  CHECK(input.call.verb == Verb::input);
  CHECK(input.call.body.view() == "hello");

  Try show(Method::get, "/objects/a-B_9");
  REQUIRE(show.ok());
  CHECK(show.call.verb == Verb::show);
  CHECK(show.call.name == "a-B_9");

  Try edit(Method::put, "/objects/a");
  REQUIRE(edit.header("If-None-Match", "*").body("x").ok());
  CHECK(edit.call.verb == Verb::edit);
  CHECK(edit.call.condition == Condition::absent);
  CHECK(edit.call.body.view() == "x");

  Try remove(Method::del, "/objects/a");
  REQUIRE(remove.header("if-match", "\"7\"").ok());
  CHECK(remove.call.verb == Verb::remove);
  CHECK(remove.call.condition == Condition::match);
  CHECK(remove.call.revision == 7);
}

TEST_CASE("a call that is used again keeps nothing of the one before") {
  Try t(Method::put, "/objects/a");
  REQUIRE(t.header("If-Match", "\"3\", \"4\"").body("x").ok());
  CHECK(t.call.more.count == 1);
  t.request.method = Method::get;
  REQUIRE(t.ok());
  CHECK(t.call.condition == Condition::none);
  CHECK(t.call.revision == 0);
  CHECK(t.call.more.count == 0);
  CHECK_FALSE(t.call.body);
}

TEST_CASE("paths that are none of the module's are 404 route") {
  for (const char* path : {"", "/", "/views", "/inputs", "/objects", "/view/total", "/views/total/more", "/objects/a/b",
                           "/Views/total", "views/total", "*"}) {
    CAPTURE(path);
    CHECK(Try(Method::get, path).refusal() == "404 route");
  }
  CHECK(Try(Method::get, "/objects/a").on(std::make_shared<FakeStore>("s", false)).refusal() == "404 route");
}

TEST_CASE("keys and names break their rule with 400 request") {
  const std::string longest(64, 'k'), longer(65, 'k');
  CHECK(Try(Method::get, "/objects/" + longest).ok());
  CHECK(Try(Method::get, "/objects/" + longer).refusal() == "400 request");
  for (const char* path : {"/objects/", "/objects/a b", "/objects/a.b", "/objects/\xc3\xa9", "/views/", "/inputs/a+b"}) {
    CAPTURE(path);
    CHECK(Try(Method::get, path).refusal() == "400 request");
  }
}

TEST_CASE("wrong methods are 405 with exactly the right ones, OPTIONS is 204 with the same") {
  struct Case {
    const char* path;
    std::uint32_t allow;
    std::vector<Method> wrong;
  };
  const StorePtr keeps = std::make_shared<FakeStore>("s", true, false);
  for (const Case& c : {Case{"/views/total", kView, {Method::post, Method::put, Method::del, Method::patch}},
                        Case{"/inputs/plus", kInput, {Method::get, Method::head, Method::put, Method::del}},
                        Case{"/objects/a", kObject, {Method::post, Method::patch, Method::del, Method::trace}}}) {
    CAPTURE(c.path);
    for (const Method m : c.wrong) {
      Try t(m, c.path);
      CHECK(t.on(keeps).refusal() == "405 method");
      CHECK(t.out.allow == c.allow);
      CHECK(t.out.no_store);
    }
    Try options(Method::options, c.path);
    CHECK_FALSE(options.on(keeps).ok());
    CHECK(options.out.status == 204);
    CHECK(options.out.allow == c.allow);
    CHECK(options.out.body.size() == 0);
  }
  Try removes(Method::post, "/objects/a");
  CHECK(removes.refusal() == "405 method");
  CHECK(removes.out.allow == (kObject | method_bit(Method::del)));
}

TEST_CASE("a name that the module lacks is no known path, whatever the method") {
  CHECK(Try(Method::post, "/views/nothing").refusal() == "404 no_view");
  CHECK(Try(Method::options, "/views/nothing").refusal() == "404 no_view");
  CHECK(Try(Method::get, "/inputs/nothing").refusal() == "404 no_input");
}

TEST_CASE("a body needs a length where one is taken") {
  CHECK(Try(Method::put, "/objects/a").header("If-None-Match", "*").no_length().refusal() == "411 length");
  CHECK(Try(Method::post, "/inputs/say").no_length().refusal() == "411 length");
  CHECK(Try(Method::post, "/inputs/plus").no_length().ok());
  CHECK(Try(Method::del, "/objects/a").header("If-Match", "\"1\"").no_length().ok());
  CHECK(Try(Method::del, "/objects/a").header("If-Match", "\"1\"").body("x").refusal() == "400 body");
}

TEST_CASE("a change of a document needs exactly one condition") {
  const auto put = [](std::vector<Header> headers) {
    Try t(Method::put, "/objects/a");
    for (const Header& h : headers) t.header(h.name, h.value);
    return t.refusal();
  };
  CHECK(put({}) == "428 condition");
  CHECK(put({{"If-None-Match", "*"}}) == "accepted");
  CHECK(put({{"If-Match", "\"1\""}}) == "accepted");
  CHECK(put({{"If-None-Match", "*"}, {"If-Match", "\"1\""}}) == "400 request");
  CHECK(put({{"If-None-Match", "\"1\""}}) == "400 request");
  CHECK(put({{"If-None-Match", "*, \"1\""}}) == "400 request");
  CHECK(put({{"If-Match", "*"}}) == "400 request");
  CHECK(put({{"If-Match", ""}}) == "400 request");
  CHECK(put({{"If-Match", " , ,"}}) == "400 request");
  for (const char* malformed : {"1", "\"1", "1\"", "\"1\" \"2\"", "w/\"1\"", "W/1", "W \"1\"", "\"1\"x", "\"1\", x",
                                "\"a b\"", "\"\x7f\"", "**", "\"1\"; q=1"}) {
    CAPTURE(malformed);
    CHECK(put({{"If-Match", malformed}}) == "400 request");
  }

  CHECK(Try(Method::del, "/objects/a").refusal() == "428 condition");
  CHECK(Try(Method::del, "/objects/a").header("If-None-Match", "*").refusal() == "400 request");
  CHECK(Try(Method::del, "/objects/a").header("If-Match", "*").refusal() == "400 request");
}

TEST_CASE("tags that are none of ours match no revision, the others any of theirs") {
  const auto match = [](const char* value, const char* second = nullptr) {
    Try t(Method::put, "/objects/a");
    t.header("If-Match", value);
    if (second) t.header("If-Match", second);
    REQUIRE(t.ok());
    Event event;
    event.revision = t.call.revision;
    event.more = t.call.more;
    return event;
  };
  for (const char* foreign : {"\"abc\"", "\"0\"", "\"07\"", "\"-1\"", "W/\"7\"", "\"\"", "\"7x\"", "\"+7\"",
                              "\"18446744073709551616\""}) {
    CAPTURE(foreign);
    const Event event = match(foreign);
    CHECK(event.revision == kNoRevision);
    CHECK_FALSE(event.matches(0));
    CHECK_FALSE(event.matches(7));
  }
  CHECK(match("\"7\"").matches(7));
  CHECK(match(" \"abc\" ,, \"7\",").matches(7));
  CHECK_FALSE(match("\"abc\", W/\"7\", \"8\"").matches(7));
  const Event several = match("\"3\", \"5\"", "\"7\"");
  for (const std::uint64_t r : {3, 5, 7}) CHECK(several.matches(r));
  CHECK_FALSE(several.matches(4));
  CHECK_FALSE(several.matches(0));
  CHECK(match("\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\"").matches(8));
  CHECK(Try(Method::put, "/objects/a")
            .header("If-Match", "\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"")
            .refusal() == "400 request");
}

TEST_CASE("what a pool hashes is the key, the first parameter, or the name") {
  const std::vector<Parameter> none, user{{"from", "0"}, {"count", "9"}, {"user", "7"}, {"city", "x"}};
  CHECK(distribution_key("/objects/cart-1", user) == "cart-1");
  CHECK(distribution_key("/views/left", user) == "7");
  CHECK(distribution_key("/inputs/take", user) == "7");
  CHECK(distribution_key("/views/left", none) == "left");
  CHECK(distribution_key("/nothing", user).empty());
}
