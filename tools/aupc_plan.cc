// aupc plan: what a store would have to go through to be served by a module. Changes nothing.
#include <iostream>
#include <string>

#include "tools/aupc.h"
#include "tools/aupc_store.h"
#include "vm/plan.h"

namespace sluice::tools {

int plan_module(const std::string& module_path, const std::string& store_path, bool allow_destroy) {
  int result = kGood;
  const std::unique_ptr<const vm::Module> module = load_module(module_path, result);
  if (!module) return result;
  Result<std::unique_ptr<OpenStore>, std::string> store = OpenStore::open(store_path);
  if (!store) {
    std::cerr << "aupc: " << store.error() << '\n';
    return kUsage;
  }
  const vm::Plan plan = vm::plan_upgrade((*store)->catalog(), *module);
  std::cout << plan.text();
  if (plan.steps.empty()) std::cout << "nothing to do\n";
  std::cout << std::flush;
  if (!std::cout) {
    std::cerr << "aupc: the output cannot be written\n";
    return kUsage;
  }
  if (plan.refused()) return kErrors;
  if (!plan.has(vm::Step::Kind::destroy) || allow_destroy) return kGood;
  std::cerr << "aupc: something would be lost; start sluice with --allow-destroy to agree\n";
  return kErrors;
}

}  // namespace sluice::tools
