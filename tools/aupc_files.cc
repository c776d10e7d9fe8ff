// Files and modules as every command of aupc reads and writes them.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "tools/aupc.h"
#include "vm/base/handle.h"
#include "vm/compiler.h"
#include "vm/format.h"

namespace sluice::tools {
namespace {
int close_file(std::FILE* f) { return std::fclose(f); }
using FilePtr = Handle<std::FILE, close_file>;

// A device or a pipe may never end.
constexpr std::size_t kLongest = 64 * 1024 * 1024;
// A file that is wrong everywhere says so often enough.
constexpr std::size_t kMostShown = 100;

bool cannot_write(const std::string& path, int error) {
  std::cerr << "aupc: " << path << ": cannot be written: " << std::strerror(error) << '\n';
  return false;
}

// Errors: 0, or the errno of what failed. Takes the file.
int write_all(std::FILE* file, const std::string& bytes) {
  errno = 0;
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int error = errno;
  if (std::fclose(file) != 0) return written ? errno : error;
  return written ? 0 : error;
}

// A new file beside `path` that nothing else has. Empty: errno says why.
std::string open_beside(const std::string& path, FilePtr& file) {
  for (int n = 0; n < 100; ++n) {
    std::string name = path + '.' + std::to_string(getpid()) + '-' + std::to_string(n) + ".new";
    file.reset(std::fopen(name.c_str(), "wbxe"));
    if (file) return name;
    if (errno != EEXIST) break;
  }
  return {};
}

std::optional<std::string> read_all(const std::string& name, std::FILE* file) {
  std::string bytes;
  char piece[16384];
  while (const std::size_t n = std::fread(piece, 1, sizeof piece, file)) {
    bytes.append(piece, n);
    if (bytes.size() <= kLongest) continue;
    std::cerr << "aupc: " << name << ": is longer than 64 MiB\n";
    return std::nullopt;
  }
  if (std::ferror(file) == 0) return bytes;
  std::cerr << "aupc: " << name << ": " << std::strerror(errno) << '\n';
  return std::nullopt;
}
}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  const FilePtr file(std::fopen(path.c_str(), "rbe"));
  if (file) return read_all(path, file.get());
  std::cerr << "aupc: " << path << ": " << std::strerror(errno) << '\n';
  return std::nullopt;
}

std::optional<std::string> read_input() { return read_all("standard input", stdin); }

bool write_file(const std::string& path, const std::string& bytes) {
  struct stat old = {};
  const bool is_there = ::lstat(path.c_str(), &old) == 0;
  const bool is_file = is_there && ::stat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode);
  if (is_there && !is_file) {
    FilePtr file(std::fopen(path.c_str(), "wbe"));
    const int error = file ? write_all(file.release(), bytes) : errno;
    return error == 0 || cannot_write(path, error);
  }
  std::error_code unresolved;
  const std::string target = is_there ? std::filesystem::canonical(path, unresolved).string() : path;
  if (unresolved) return cannot_write(path, unresolved.value());
  FilePtr file;
  const std::string partial = open_beside(target, file);
  if (partial.empty()) return cannot_write(path, errno);
  int error = is_there && ::fchmod(::fileno(file.get()), old.st_mode & 07777) != 0 ? errno : 0;
  const int write_error = write_all(file.release(), bytes);
  if (error == 0) error = write_error;
  if (error == 0 && std::rename(partial.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return true;
  std::remove(partial.c_str());
  return cannot_write(path, error);
}

void show_diagnostics(const std::string& path, const std::string& source, const std::vector<vm::Diagnostic>& diagnostics) {
  const std::size_t shown = std::min(diagnostics.size(), kMostShown);
  for (std::size_t i = 0; i < shown; ++i) std::cerr << (i == 0 ? "" : "\n") << vm::render(path, source, diagnostics[i]);
  if (shown != diagnostics.size()) std::cerr << "\naupc: " << path << ": and " << diagnostics.size() - shown << " more\n";
}

std::unique_ptr<vm::Module> compile_file(const std::string& path, const std::string& source) {
  vm::Compiled compiled = vm::compile(source);
  show_diagnostics(path, source, compiled.diagnostics);
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
