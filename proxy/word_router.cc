#include "proxy/word_router.h"

#include "proxy/module_call.h"

namespace sluice::proxy {

Result<void, std::string> WordRouter::add(std::string_view word, MethodSet methods, Route* route) {
  const std::string quoted = "`" + std::string(word.substr(0, 60)) + "`";
  if (word.empty()) return std::string("a word of the map is empty");
  if (word.find(rule_.stop) != word.npos) return quoted + " has `" + rule_.stop + "` in it, where a word ends";
  MethodMap& there = words_[std::string(word)];
  if (methods == kAllMethods ? there.others != nullptr : false) return quoted + " is given twice";
  for (std::size_t m = 0; methods != kAllMethods && m < kMethods; ++m)
    if ((methods & (1u << m)) && there.routes[m]) return quoted + " is given twice for " + std::string(name(static_cast<Method>(m)));
  there.set(methods, route);
  return {};
}

Route* WordRouter::find(Method method, std::string_view path, Match& match) const {
  match.captured.clear();
  match.rest = path;
  match.allow = 0;
  std::string_view text = rule_.of_key ? distribution_key(path, {}) : path.empty() ? path : path.substr(1);
  const MethodMap* methods = &fallback_;
  if (text.starts_with(rule_.start)) {
    text.remove_prefix(rule_.start.size());
    if (const std::size_t end = text.find(rule_.stop); end != text.npos)
      if (const auto at = words_.find(text.substr(0, end)); at != words_.end()) methods = &at->second;
  }
  Route* route = methods->find(method);
  if (!route) match.allow = methods->allow();
  return route;
}

}  // namespace sluice::proxy
