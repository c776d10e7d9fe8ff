// Which route a method and a path lead to: prefixes, patterns with parameters, methods, a default.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/request.h"
#include "proxy/route.h"
#include "vm/base/result.h"

namespace sluice::proxy {

using MethodSet = std::uint32_t;                           // a bit per Method, as in Response::allow
constexpr MethodSet method_bit(Method m) { return 1u << static_cast<unsigned>(m); }
inline constexpr MethodSet kAllMethods = (1u << kMethods) - 1;

// Routes by method; nullptr where there is none.
// Life: the routes are their owner's (a RouteTable).
struct MethodMap {
  std::array<Route*, kMethods> routes{};
  Route* others = nullptr;                                 // of the methods that `routes` leaves open
  // kAllMethods sets `others`: named methods stay ahead of it.
  void set(MethodSet methods, Route* route);
  // HEAD falls back to GET, then to `others`.
  Route* find(Method method) const;
  // Those that find() would take, and OPTIONS, which every known path answers.
  MethodSet allow() const;
};

// Built on control, then only read. The most specific entry wins, segment by segment from the left: a literal before a
// `:parameter` before `*rest` before a prefix; the path is decided before the method.
// Thread: frozen once built; any then.
class Router {
 public:
  Router();

  // Adds `route` at `pattern` for `methods`; kAllMethods means those that no other add() at this pattern names.
  // Shape:  "/stock" is a prefix: it takes "/stock" and all below "/stock/", and Match::rest is what is behind it.
  //         A pattern with parameters is whole: "/users/:id" takes one more segment, not empty, and nothing below;
  //         "/users/:id/*path" takes all below it, captured as `path` without its first slash, and as Match::rest with
  //         it. `*` alone captures nothing. A slash at the end means nothing for a prefix, and itself for a pattern.
  // Errors: a sentence: a pattern that cannot be read, or one that takes the same paths as an earlier one by the same
  //         method. Nothing is added then.
  Result<void, std::string> add(std::string_view pattern, MethodSet methods, Route* route);

  // For paths that no entry takes: by method (`cmap`), then kAllMethods for the others (`default`).
  void set_fallback(MethodSet methods, Route* route) { fallback_.set(methods, route); }

  // nullptr: `match.allow` says which methods the path has (405), or 0 (404). Never allocates once `match` is warm.
  Route* find(Method method, std::string_view path, Match& match) const;

 private:
  // What ends at a node. Shape: `names` are of the captures from the left; empty ones capture nothing.
  struct Leaf {
    std::string pattern;
    std::vector<std::string> names;
    MethodMap methods;
  };
  struct Child {
    std::string segment;
    std::uint32_t node;
  };
  struct Node {
    std::vector<Child> literals;                           // sorted by segment
    std::uint32_t parameter = 0;                           // a node; 0: none (the root is nobody's child)
    std::int32_t exact = -1, rest = -1, prefix = -1;       // leaves
    std::uint32_t child(std::string_view segment) const;   // 0: none
  };
  struct Found {
    const Leaf* leaf = nullptr;
    std::size_t rest_at = 0;                               // where in the path Match::rest begins
  };

  std::uint32_t literal_child(std::uint32_t node, std::string_view segment);
  Result<void, std::string> put(std::int32_t Node::*place, std::uint32_t node, Leaf leaf);
  // Is what lies at `at` (a slash, or the end) and behind it taken below `node`?
  bool descend(std::uint32_t node, std::string_view path, std::size_t at, Match& match, Found& found) const;

  std::vector<Node> nodes_;                                // [0] is the root
  std::vector<Leaf> leaves_;
  MethodMap fallback_;
};

}  // namespace sluice::proxy
