// Files and modules as every command of aupc reads and writes them.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "tools/aupc.h"
#include "vm/base/handle.h"
#include "vm/compiler.h"
#include "vm/format.h"

namespace sluice::tools {
namespace {
int close_file(std::FILE* f) { return std::fclose(f); }
using FilePtr = Handle<std::FILE, close_file>;
}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  std::string bytes;
  char piece[16384];
  const FilePtr file(std::fopen(path.c_str(), "rbe"));
  if (file)
    while (const std::size_t n = std::fread(piece, 1, sizeof piece, file.get())) bytes.append(piece, n);
  if (file && std::ferror(file.get()) == 0) return bytes;
  std::cerr << "aupc: " << path << ": " << std::strerror(errno) << '\n';
  return std::nullopt;
}

bool write_file(const std::string& path, const std::string& bytes) {
  const std::string partial = path + ".new";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  if (out && std::rename(partial.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  std::remove(partial.c_str());
  std::cerr << "aupc: " << path << ": cannot be written: " << std::strerror(error) << '\n';
  return false;
}

std::unique_ptr<vm::Module> compile_file(const std::string& path, const std::string& source) {
  vm::Compiled compiled = vm::compile(source);
  bool first = true;
  for (const vm::Diagnostic& d : compiled.diagnostics) {
    if (!first) std::cerr << '\n';
    first = false;
    std::cerr << vm::render(path, source, d);
  }
  return std::move(compiled.module);
}

std::unique_ptr<const vm::Module> load_module(const std::string& path, int& result) {
  const std::optional<std::string> bytes = read_file(path);
  result = kUsage;
  if (!bytes) return nullptr;
  result = kErrors;
  if (!bytes->starts_with("PMOD")) return compile_file(path, *bytes);
  Result<std::unique_ptr<const vm::Module>, std::string> loaded = vm::load(*bytes);
  if (loaded) return std::move(*loaded);
  std::cerr << "aupc: " << path << ": " << loaded.error() << '\n';
  return nullptr;
}

}  // namespace sluice::tools
