#include "proxy/engine/module_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "vm/base/handle.h"
#include "vm/compiler.h"
#include "vm/format.h"

namespace sluice::proxy {
namespace {

// A module file is small: what is larger is some other file given by mistake, and is not read to its end.
constexpr std::size_t kSourceMax = std::size_t{4} << 20;

int close_file(std::FILE* f) { return std::fclose(f); }
using FilePtr = Handle<std::FILE, close_file>;

// Returns why not; empty when `bytes` is the whole file.
std::string read_file(const std::string& path, std::string& bytes) {
  const FilePtr file(std::fopen(path.c_str(), "rbe"));
  if (!file) return path + ": " + std::strerror(errno);
  char buffer[16384];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) {
    bytes.append(buffer, n);
    if (bytes.size() > kSourceMax) return path + ": larger than any module; is this the right file?";
  }
  if (std::ferror(file.get())) return path + ": " + std::strerror(errno);
  return {};
}

bool is_compiled(std::string_view bytes) { return bytes.substr(0, 4) == "PMOD"; }

}  // namespace

Result<std::unique_ptr<const vm::Module>, std::string> read_module(const std::string& path) {
  std::string bytes;
  if (std::string why = read_file(path, bytes); !why.empty()) return why;
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
