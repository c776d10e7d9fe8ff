// Any bytes as a module file: refused, or every handler and view of it behaves.
//
// With clang and the option `fuzz` this is a libFuzzer driver; else corpus_main.cc runs it on every file of a folder.
#include <cstdint>
#include <string>

#include "t/fuzz/module_play.h"
#include "t/vm/container.h"
#include "vm/base/check.h"
#include "vm/catalog.h"
#include "vm/disasm.h"
#include "vm/explain.h"
#include "vm/format.h"
#include "vm/image.h"
#include "vm/plan.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
void check_file(std::string_view file) {
  const auto loaded = load(file);
  if (!loaded) {
    SLUICE_CHECK(loaded.error().starts_with("module: "));
    return;
  }
  const Module& module = **loaded;
  const auto again = encode(module);
  SLUICE_CHECK(again.has_value() && *again == file);
  SLUICE_CHECK(!disassemble(module).empty());
  explain("f", module);
  const Catalog catalog = first_catalog(module);
  const auto kept = decode_catalog(encode(catalog));
  SLUICE_CHECK(kept.has_value() && encode(*kept) == encode(catalog));
  SLUICE_CHECK(plan_upgrade(*kept, module).steps.empty());
  play_module(module);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_file(bytes);
  if (const std::string file = sealed(bytes); file != bytes) check_file(file);
  return 0;
}
