#include "vm/explain.h"

#include <algorithm>

namespace sluice::vm {

std::string grouped(std::uint64_t n, std::size_t width) {
  std::string out = std::to_string(n);
  for (std::size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, 1, ',');
  if (out.size() < width) out.insert(0, width - out.size(), ' ');
  return out;
}

std::string explain(std::string_view file, const Module& module) {
  std::vector<std::size_t> shown;
  for (const Handler& handler : module.handlers) shown.push_back(handler.function);
  for (const View& view : module.views) {
    shown.push_back(view.function);
    if (view.where) shown.push_back(*view.where);
    for (const ViewCell& cell : view.cells) shown.push_back(cell.function);
  }
  std::size_t longest = 0;
  for (const std::size_t i : shown) longest = std::max(longest, module.functions[i].name.size());

  std::string out;
  for (const std::size_t i : shown) {
    const Function& function = module.functions[i];
    const Facts& facts = module.facts[i];
    std::string name = function.name;
    name.resize(longest, ' ');
    out.append(file).append(": ").append(name);
    out += grouped(function.code.size(), 6) + " instructions, at most " + grouped(facts.fuel, 7) + " fuel, " +
           grouped(facts.rows_read, 3) + " rows read, " + grouped(facts.rows_written, 5) + " written";
    if (facts.chance) out += ", uses chance";
    if (facts.reads_now) out += ", reads now";
    if (facts.ranks) out += ", ranks";
    if (facts.fuel > kFuel) out += ", more than the " + grouped(kFuel) + " of an event";
    out += '\n';
  }
  return out;
}

}  // namespace sluice::vm
