#include "proxy/router.h"

#include <algorithm>
#include <utility>

namespace sluice::proxy {
namespace {

constexpr std::size_t kPatternBytes = 1024;
constexpr std::size_t kCaptures = 16;

bool is_parameter_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string quoted(std::string_view pattern) { return "`" + std::string(pattern) + "`"; }

}  // namespace

void MethodMap::set(MethodSet methods, Route* route) {
  if (methods == kAllMethods) {
    others = route;
    return;
  }
  for (int m = 0; m < kMethods; ++m)
    if (methods & (1u << m)) routes[static_cast<std::size_t>(m)] = route;
}

Route* MethodMap::find(Method method) const {
  Route* route = routes[static_cast<std::size_t>(method)];
  if (!route && method == Method::head) route = routes[static_cast<std::size_t>(Method::get)];
  return route ? route : others;
}

MethodSet MethodMap::allow() const {
  MethodSet set = 0;
  for (int m = 0; m < kMethods; ++m)
    if (find(static_cast<Method>(m))) set |= 1u << m;
  return set == 0 ? 0 : set | method_bit(Method::options);
}

Router::Router() : nodes_(1) {}

std::uint32_t Router::literal_child(std::uint32_t node, std::string_view segment) {
  const auto before = [](const Child& c, std::string_view s) { return c.segment < s; };
  const auto& children = nodes_[node].literals;
  const auto at = std::lower_bound(children.begin(), children.end(), segment, before);
  if (at != children.end() && at->segment == segment) return at->node;
  const std::ptrdiff_t index = at - children.begin();
  const auto made = static_cast<std::uint32_t>(nodes_.size());
  nodes_.emplace_back();     // moves the nodes: `children` and `at` are gone
  auto& again = nodes_[node].literals;
  again.insert(again.begin() + index, Child{std::string(segment), made});
  return made;
}

Result<void, std::string> Router::put(std::int32_t Node::*place, std::uint32_t node, Leaf leaf) {
  std::int32_t& at = nodes_[node].*place;
  if (at < 0) {
    at = static_cast<std::int32_t>(leaves_.size());
    leaves_.push_back(std::move(leaf));
    return {};
  }
  // The same place again: other methods of the same pattern, or a conflict.
  Leaf& there = leaves_[static_cast<std::size_t>(at)];
  if (there.names != leaf.names)
    return quoted(leaf.pattern) + " takes the same paths as " + quoted(there.pattern);
  if (leaf.methods.others && there.methods.others) return quoted(leaf.pattern) + " is given twice";
  for (std::size_t m = 0; m < kMethods; ++m) {
    if (!leaf.methods.routes[m] || !there.methods.routes[m]) continue;
    const std::string method(sluice::proxy::name(static_cast<Method>(m)));
    return quoted(leaf.pattern) + " is given twice for " + method;
  }
  if (leaf.methods.others) there.methods.others = leaf.methods.others;
  for (std::size_t m = 0; m < kMethods; ++m)
    if (leaf.methods.routes[m]) there.methods.routes[m] = leaf.methods.routes[m];
  return {};
}

Result<void, std::string> Router::add(std::string_view pattern, MethodSet methods, Route* route) {
  if (pattern.empty() || pattern[0] != '/') return "a path starts with `/`: " + quoted(pattern);
  if (pattern.size() > kPatternBytes) return "a path is at most 1024 bytes: " + quoted(pattern.substr(0, 40));

  // Read it whole first, so that a refusal leaves nothing behind.
  struct Segment {
    enum Kind { literal, parameter, rest } kind;
    std::string_view text;
  };
  std::vector<Segment> segments;
  Leaf leaf;
  leaf.pattern = pattern;
  leaf.methods.set(methods, route);
  bool whole = false;
  std::string_view left = pattern.substr(1);
  for (bool more = true; more;) {
    const std::size_t slash = left.find('/');
    more = slash != std::string_view::npos;
    const std::string_view segment = left.substr(0, slash);
    left = more ? left.substr(slash + 1) : std::string_view();
    if (!segment.empty() && (segment[0] == ':' || segment[0] == '*')) {
      const std::string_view name = segment.substr(1);
      const bool rest = segment[0] == '*';
      if (rest && more) return quoted(segment) + " takes all that is left, so it comes last in " + quoted(pattern);
      if (!(rest && name.empty()) && !is_parameter_name(name))
        return "a parameter is called `:name` or `*name`, letters, digits and `_`: " + quoted(segment) + " in " +
               quoted(pattern);
      if (!name.empty() && std::find(leaf.names.begin(), leaf.names.end(), name) != leaf.names.end())
        return quoted(name) + " is twice in " + quoted(pattern);
      if (leaf.names.size() == kCaptures) return "a path has at most 16 parameters: " + quoted(pattern);
      leaf.names.emplace_back(name);
      segments.push_back({rest ? Segment::rest : Segment::parameter, name});
      whole = true;
      continue;
    }
    if (segment.empty() && more) return "an empty segment in " + quoted(pattern);
    if (segment == "." || segment == "..") return "dot segments are never served: " + quoted(pattern);
    segments.push_back({Segment::literal, segment});
  }
  // "/stock/" and "/" as prefixes: the last, empty segment is the separator itself.
  if (!whole && segments.back().text.empty()) segments.pop_back();

  std::uint32_t node = 0;
  for (const Segment& s : segments) {
    if (s.kind == Segment::rest) break;
    if (s.kind == Segment::literal) {
      node = literal_child(node, s.text);
    } else if (nodes_[node].parameter != 0) {
      node = nodes_[node].parameter;
    } else {
      const auto made = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
      nodes_[node].parameter = made;
      node = made;
    }
  }
  if (!whole) {
    if (nodes_[node].rest >= 0)
      return quoted(pattern) + " takes the same paths as " +
             quoted(leaves_[static_cast<std::size_t>(nodes_[node].rest)].pattern);
    return put(&Node::prefix, node, std::move(leaf));
  }
  if (segments.back().kind == Segment::rest) {
    if (nodes_[node].prefix >= 0)
      return quoted(pattern) + " takes the same paths as " +
             quoted(leaves_[static_cast<std::size_t>(nodes_[node].prefix)].pattern);
    return put(&Node::rest, node, std::move(leaf));
  }
  return put(&Node::exact, node, std::move(leaf));
}

std::uint32_t Router::Node::child(std::string_view segment) const {
  constexpr std::size_t few = 8;
  if (literals.size() <= few) {
    // Sizes mostly differ, so this compares the bytes of about one.
    for (const Child& c : literals)
      if (c.segment == segment) return c.node;
    return 0;
  }
  const auto at = std::lower_bound(literals.begin(), literals.end(), segment,
                                   [](const Child& c, std::string_view s) { return c.segment < s; });
  return at != literals.end() && at->segment == segment ? at->node : 0;
}

bool Router::descend(std::uint32_t node, std::string_view path, std::size_t at, Match& match, Found& found) const {
  const Node& here = nodes_[node];
  if (at == path.size()) {
    if (here.exact >= 0) {
      found = {&leaves_[static_cast<std::size_t>(here.exact)], at};
      return true;
    }
  } else {
    const std::size_t begin = at + 1;
    const std::size_t slash = path.find('/', begin);
    const std::size_t end = slash == std::string_view::npos ? path.size() : slash;
    const std::string_view segment = path.substr(begin, end - begin);
    const std::uint32_t child = here.child(segment);
    if (child != 0 && descend(child, path, end, match, found)) return true;
    if (here.parameter != 0 && !segment.empty()) {
      match.captured.push_back({{}, segment});
      if (descend(here.parameter, path, end, match, found)) return true;
      match.captured.pop_back();
    }
    if (here.rest >= 0) {
      match.captured.push_back({{}, path.substr(begin)});
      found = {&leaves_[static_cast<std::size_t>(here.rest)], at};
      return true;
    }
  }
  if (here.prefix >= 0) {
    found = {&leaves_[static_cast<std::size_t>(here.prefix)], at};
    return true;
  }
  return false;
}

Route* Router::find(Method method, std::string_view path, Match& match) const {
  match.captured.clear();
  match.allow = 0;
  match.rest = path;
  Found found;
  if (path.empty() || path[0] != '/' || !descend(0, path, 0, match, found)) {
    match.captured.clear();
    Route* route = fallback_.find(method);
    if (!route) match.allow = fallback_.allow();
    return route;
  }
  match.rest = path.substr(found.rest_at);
  Route* route = found.leaf->methods.find(method);
  if (!route) {
    match.allow = found.leaf->methods.allow();
    match.captured.clear();
    return nullptr;
  }
  // Captures of `*` alone and of nothing else have no name; they are the route's to reach by Match::rest.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < match.captured.size(); ++i) {
    if (found.leaf->names[i].empty()) continue;
    match.captured[kept++] = {found.leaf->names[i], match.captured[i].value};
  }
  match.captured.resize(kept);
  return route;
}

}  // namespace sluice::proxy
