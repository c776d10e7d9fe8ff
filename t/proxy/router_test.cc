#include "proxy/router.h"

#include <doctest/doctest.h>

#include <new>
#include <string>
#include <vector>

#include "t/proxy/fakes.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

struct Named final : Route {
  explicit Named(std::string its_name) : name(std::move(its_name)) {}
  void start(Exchange& exchange, const Match& match, Services& services) override {}
  std::string name;
};

struct Table {
  Router router;
  std::vector<std::unique_ptr<Named>> routes;
  Match match;

  Route* route(const std::string& name) {
    routes.push_back(std::make_unique<Named>(name));
    return routes.back().get();
  }
  void add(const std::string& pattern, MethodSet methods = kAllMethods) {
    const auto added = router.add(pattern, methods, route(pattern));
    REQUIRE_MESSAGE(added.has_value(), added.error());
  }
  std::string refused(const std::string& pattern, MethodSet methods = kAllMethods) {
    const auto added = router.add(pattern, methods, route(pattern));
    return added ? "added" : added.error();
  }
  // "PATTERN rest=REST name=value ..." or "none" or "none allow=BITS".
  std::string find(std::string_view path, Method method = Method::get) {
    const Route* found = router.find(method, path, match);
    if (!found) return match.allow == 0 ? "none" : "none allow=" + std::to_string(match.allow);
    std::string out = static_cast<const Named*>(found)->name + " rest=" + std::string(match.rest);
    for (const auto& c : match.captured) out += " " + std::string(c.name) + "=" + std::string(c.value);
    return out;
  }
};

}  // namespace

TEST_CASE("a prefix takes itself and what is below its separator") {
  Table t;
  t.add("/stock");
  CHECK(t.find("/stock") == "/stock rest=");
  CHECK(t.find("/stock/") == "/stock rest=/");
  CHECK(t.find("/stock/views/left") == "/stock rest=/views/left");
  CHECK(t.find("/stocks") == "none");
  CHECK(t.find("/stoc") == "none");
  CHECK(t.find("/") == "none");
  CHECK(t.find("") == "none");
  CHECK(t.find("*") == "none");
}

TEST_CASE("the longest prefix wins, and a shorter one takes what it leaves") {
  Table t;
  t.add("/a");
  t.add("/a/b/c");
  t.add("/");
  CHECK(t.find("/a/b/c/d") == "/a/b/c rest=/d");
  CHECK(t.find("/a/b/x") == "/a rest=/b/x");
  CHECK(t.find("/a/b") == "/a rest=/b");
  CHECK(t.find("/x/y") == "/ rest=/x/y");
  CHECK(t.find("/") == "/ rest=/");
}

TEST_CASE("a pattern is whole and captures what stands at its parameters") {
  Table t;
  t.add("/users/:id");
  t.add("/users/:id/orders/:order");
  t.add("/files/:bucket/*path");
  CHECK(t.find("/users/7") == "/users/:id rest= id=7");
  CHECK(t.find("/users/7/") == "none");
  CHECK(t.find("/users/") == "none");
  CHECK(t.find("/users") == "none");
  CHECK(t.find("/users/7/orders/99") == "/users/:id/orders/:order rest= id=7 order=99");
  CHECK(t.find("/users/7/orders") == "none");
  CHECK(t.find("/files/b/x/y") == "/files/:bucket/*path rest=/x/y bucket=b path=x/y");
  CHECK(t.find("/files/b/") == "/files/:bucket/*path rest=/ bucket=b path=");
  CHECK(t.find("/files/b") == "none");
}

TEST_CASE("the most specific entry wins from the left, and a dead end goes back") {
  Table t;
  t.add("/users/me/profile");
  t.add("/users/:id/orders");
  t.add("/users/:who/orders/:order");
  t.add("/users/*rest");
  CHECK(t.find("/users/me/profile") == "/users/me/profile rest=");
  CHECK(t.find("/users/7/orders") == "/users/:id/orders rest= id=7");
  CHECK(t.find("/users/7/orders/1") == "/users/:who/orders/:order rest= who=7 order=1");
  // "me" leads nowhere for orders: the parameter takes it, and nothing of the attempt is left.
  CHECK(t.find("/users/me/orders") == "/users/:id/orders rest= id=me");
  CHECK(t.find("/users/me/other") == "/users/*rest rest=/me/other rest=me/other");
  CHECK(t.find("/users/7/x") == "/users/*rest rest=/7/x rest=7/x");
}

TEST_CASE("a star without a name captures nothing, and the rest is there") {
  Table t;
  t.add("/p/:a/*");
  CHECK(t.find("/p/1/x/y") == "/p/:a/* rest=/x/y a=1");
}

TEST_CASE("methods are looked at after the path; HEAD falls back to GET, others to the rest") {
  Table t;
  t.add("/x", method_bit(Method::get));
  CHECK(t.find("/x", Method::head) == "/x rest=");
  CHECK(t.find("/x", Method::post) ==
        "none allow=" + std::to_string(method_bit(Method::get) | method_bit(Method::head) | method_bit(Method::options)));
  CHECK(t.match.captured.empty());
  const auto added = t.router.add("/x", kAllMethods, t.route("others"));
  REQUIRE(added);
  CHECK(t.find("/x", Method::post) == "others rest=");
  CHECK(t.find("/x", Method::head) == "/x rest=");

  t.add("/y", method_bit(Method::put) | method_bit(Method::head));
  CHECK(t.find("/y", Method::head) == "/y rest=");
  CHECK(t.find("/y") ==
        "none allow=" + std::to_string(method_bit(Method::put) | method_bit(Method::head) | method_bit(Method::options)));
}

TEST_CASE("what no entry takes goes by method, then to the default") {
  Table t;
  t.add("/x");
  t.router.set_fallback(method_bit(Method::post), t.route("posts"));
  CHECK(t.find("/other", Method::post) == "posts rest=/other");
  CHECK(t.find("/other") ==
        "none allow=" + std::to_string(method_bit(Method::post) | method_bit(Method::options)));
  t.router.set_fallback(kAllMethods, t.route("default"));
  CHECK(t.find("/other") == "default rest=/other");
  CHECK(t.find("/other", Method::post) == "posts rest=/other");
  CHECK(t.find("/x/y") == "/x rest=/y");
}

TEST_CASE("patterns that take the same paths are refused and leave the first in force") {
  Table t;
  t.add("/users/:id");
  t.add("/files");
  t.add("/logs/*rest");
  CHECK(t.refused("/users/:name") == "`/users/:name` takes the same paths as `/users/:id`");
  CHECK(t.refused("/users/:id") == "`/users/:id` is given twice");
  CHECK(t.refused("/files/") == "`/files/` is given twice");
  CHECK(t.refused("/files/*all") == "`/files/*all` takes the same paths as `/files`");
  CHECK(t.refused("/logs") == "`/logs` takes the same paths as `/logs/*rest`");
  CHECK(t.find("/users/7") == "/users/:id rest= id=7");

  Table m;
  m.add("/a", method_bit(Method::get));
  m.add("/a", method_bit(Method::post));
  CHECK(m.refused("/a", method_bit(Method::post) | method_bit(Method::put)) == "`/a` is given twice for POST");
  CHECK(m.find("/a", Method::put).starts_with("none"));
}

TEST_CASE("patterns that cannot be read are refused with their reason") {
  Table t;
  CHECK(t.refused("") == "a path starts with `/`: ``");
  CHECK(t.refused("stock") == "a path starts with `/`: `stock`");
  CHECK(t.refused("/a//b") == "an empty segment in `/a//b`");
  CHECK(t.refused("//") == "an empty segment in `//`");
  CHECK(t.refused("/a/../b") == "dot segments are never served: `/a/../b`");
  CHECK(t.refused("/*all/x") == "`*all` takes all that is left, so it comes last in `/*all/x`");
  CHECK(t.refused("/:") == "a parameter is called `:name` or `*name`, letters, digits and `_`: `:` in `/:`");
  CHECK(t.refused("/:a-b") == "a parameter is called `:name` or `*name`, letters, digits and `_`: `:a-b` in `/:a-b`");
  CHECK(t.refused("/:1").starts_with("a parameter is called"));
  CHECK(t.refused("/:a/:a") == "`a` is twice in `/:a/:a`");
  CHECK(t.refused("/" + std::string(1024, 'x')).starts_with("a path is at most 1024 bytes"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += "/:p" + std::to_string(i);
  CHECK(t.refused(many).starts_with("a path has at most 16 parameters"));
  CHECK(t.find("/a") == "none");
}

TEST_CASE("a deep path over a bushy table is found in one walk of its nodes") {
  // Every level offers a literal and a parameter: with a walk that tried both at each level for each path it would be
  // 2^24 steps; a tree has each node once.
  Table t;
  std::string literal, parameter, path;
  for (int i = 0; i < 16; ++i) {
    literal += "/a";
    parameter += "/:p" + std::to_string(i);
    path += "/a";
  }
  t.add(literal + "/end");
  t.add(parameter);
  CHECK(t.find(path + "/end") == literal + "/end rest=");
  CHECK(t.find(path).starts_with(parameter + " rest= p0=a"));
}
