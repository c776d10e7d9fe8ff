// aupc verify-store: whether all that a store derived from its rows is what a rebuild would give.
#include <iostream>
#include <string>

#include "tools/aupc.h"
#include "tools/aupc_store.h"
#include "vm/audit.h"
#include "vm/plan.h"

namespace sluice::tools {

int verify_store(const std::string& store_path, const std::string& module_path) {
  int result = kGood;
  std::unique_ptr<const vm::Module> module;
  if (!module_path.empty() && !(module = load_module(module_path, result))) return result;
  Result<std::unique_ptr<OpenStore>, std::string> store = OpenStore::open(store_path);
  if (!store) {
    std::cerr << "aupc: " << store.error() << '\n';
    return kUsage;
  }
  const vm::Catalog& catalog = (*store)->catalog();
  const vm::Audit found = vm::audit(catalog, (*store)->records());
  if (Result<void, std::string> read = (*store)->records().commit(); !read) {
    std::cerr << "aupc: store " << store_path << ": " << read.error() << '\n';
    return kUsage;
  }
  for (const std::string& difference : found.differences) std::cout << "  " << difference << '\n';
  if (found.more) std::cout << "  and more\n";
  const bool right = found.differences.empty();
  std::cout << catalog.name << ' ' << catalog.version << ": " << found.rows << " rows, " << found.derived << " derived records, "
            << (right ? "all as it should be" : "not as it should be") << '\n';
  if (catalog.upgrade) std::cout << "an upgrade was cut short; the next start goes on with it\n";
  bool fits = true;
  if (module) {
    const vm::Plan plan = vm::plan_upgrade(catalog, *module);
    fits = plan.steps.empty();
    if (!fits) std::cout << module_path << " does not serve this store as it is:\n" << plan.text();
  }
  std::cout << std::flush;
  if (!std::cout) {
    std::cerr << "aupc: the output cannot be written\n";
    return kUsage;
  }
  return right && fits ? kGood : kErrors;
}

}  // namespace sluice::tools
