#include "vm/names.h"

#include <algorithm>

namespace sluice::vm {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  const std::size_t allowed = name.size() <= 2 ? 1 : 1 + name.size() / 4;
  std::string best;
  std::size_t best_distance = allowed + 1;
  for (const std::string& k : known) {
    if (k == name || k.size() > name.size() + allowed || name.size() > k.size() + allowed) continue;
    const std::size_t d = distance(name, k);
    // A short name is not near to one that shares nothing with it.
    if (d < best_distance && d < std::max(name.size(), k.size())) {
      best = k;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace sluice::vm
