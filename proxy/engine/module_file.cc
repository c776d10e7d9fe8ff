#include "proxy/engine/module_file.h"

#include "vm/base/read_file.h"
#include "vm/compiler.h"
#include "vm/format.h"

namespace sluice::proxy {
namespace {

// A module file is small: what is larger is some other file given by mistake, and is not read to its end.
constexpr std::size_t kSourceMax = std::size_t{4} << 20;

bool is_compiled(std::string_view bytes) { return bytes.substr(0, 4) == "PMOD"; }

}  // namespace

Result<std::unique_ptr<const vm::Module>, std::string> read_module(const std::string& path) {
  Result<std::string, std::string> file_bytes = read_file(path, kSourceMax);
  if (!file_bytes) return std::move(file_bytes).error();
  const std::string& bytes = *file_bytes;
  if (is_compiled(bytes)) {
    auto loaded = vm::load(bytes);
    if (!loaded) return path + ": " + loaded.error();
    return loaded;
  }
  vm::Compiled compiled = vm::compile(bytes);
  if (!compiled.module) {
    std::string text;
    for (const vm::Diagnostic& d : compiled.diagnostics)
      if (d.kind == vm::Diagnostic::Kind::error) text += vm::render(path, bytes, d);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.empty() ? path + ": does not compile" : text;
  }
  // Through the file's form and back: what serves has passed the loader, whoever made it.
  auto file = vm::encode(*compiled.module);
  if (!file) return path + ": " + file.error();
  auto loaded = vm::load(*file);
  if (!loaded) return path + ": " + loaded.error();
  return loaded;
}

}  // namespace sluice::proxy
