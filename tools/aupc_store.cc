#include "tools/aupc_store.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "vm/image.h"

namespace sluice::tools {

Result<std::unique_ptr<OpenStore>, std::string> OpenStore::open(const std::string& path) {
  const std::string said = "store " + path + ": ";
  std::error_code ignored;
  // Opening one that is not there would make it.
  if (!std::filesystem::exists(path + "/superblock", ignored)) return said + "there is no store";
  auto opened = store::Store::open(path, {});
  if (!opened) return opened.error();
  std::unique_ptr<OpenStore> store(new OpenStore(std::move(*opened)));
  if (Result<void, std::string> begun = store->records_.begin(); !begun) return said + begun.error();
  std::string_view bytes;
  const bool known = store->records_.get(vm::kCatalogKey, bytes);
  if (Result<void, std::string> read = store->records_.commit(); !read) return said + read.error();
  if (!known) return said + "it has no catalog: no module ever served it";
  Result<vm::Catalog, std::string> catalog = vm::decode_catalog(bytes);
  if (!catalog) return said + catalog.error();
  store->catalog_ = std::move(*catalog);
  return store;
}

}  // namespace sluice::tools
