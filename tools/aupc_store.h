// A store as commands of aupc look at it: opened as a server opens it, so not while one has it open, and never written to.
#pragma once
#include <memory>
#include <string>

#include "proxy/engine/upgrade_records.h"
#include "store/store.h"
#include "vm/base/result.h"
#include "vm/catalog.h"

namespace sluice::tools {

class OpenStore {
 public:
  // Errors: one sentence that names the path; of a store that is in use the process that has it.
  static Result<std::unique_ptr<OpenStore>, std::string> open(const std::string& path);

  const vm::Catalog& catalog() const { return catalog_; }
  // Nothing that was written here is kept. Errors come out of commit(), as long as nothing is written.
  vm::UpgradeRecords& records() { return records_; }

 private:
  explicit OpenStore(std::unique_ptr<store::Store> store) : store_(std::move(store)), records_(*store_) {}

  std::unique_ptr<store::Store> store_;
  proxy::UpgradeRecords records_;
  vm::Catalog catalog_;
};

}  // namespace sluice::tools
