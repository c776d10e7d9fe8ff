#include "tools/aupc_fmt.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

#include "tools/aupc.h"
#include "vm/compiler.h"
#include "vm/fmt.h"

namespace sluice::tools {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> read_input() {
  std::string bytes{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (!std::cin.bad()) return bytes;
  std::cerr << "aupc: standard input cannot be read\n";
  return std::nullopt;
}

bool say(const std::string& text) {
  std::cout << text << std::flush;
  if (std::cout) return true;
  std::cerr << "aupc: the output cannot be written\n";
  return false;
}

// A link goes on pointing at its file, and the file may be read and written by whom it could.
bool replace_file(const std::string& path, const std::string& bytes) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  const fs::path partial = file.string() + ".new";
  if (!error) {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    out << bytes;
    out.close();
    if (!out) error.assign(errno, std::generic_category());
    if (!error) fs::permissions(partial, fs::status(file).permissions(), error);
    if (!error) fs::rename(partial, file, error);
    if (!error) return true;
    std::error_code ignored;
    fs::remove(partial, ignored);
  }
  std::cerr << "aupc: " << path << ": cannot be written: " << error.message() << '\n';
  return false;
}

int format_file(const std::string& path, bool check) {
  const bool input = path == "-";
  const std::optional<std::string> source = input ? read_input() : read_file(path);
  if (!source) return kUsage;
  const vm::Formatted formatted = vm::reformat(*source);
  bool first = true;
  for (const vm::Diagnostic& d : formatted.diagnostics) {
    if (!first) std::cerr << '\n';
    first = false;
    std::cerr << vm::render(path, *source, d);
  }
  if (!formatted.diagnostics.empty()) return kErrors;
  const bool same = formatted.text == *source;
  if (check) return same ? kGood : say(path + "\n") ? kErrors : kUsage;
  if (input) return say(formatted.text) ? kGood : kUsage;
  return same || replace_file(path, formatted.text) ? kGood : kUsage;
}

}  // namespace

int format_files(const std::vector<std::string>& paths, bool check) {
  int result = kGood;
  for (const std::string& path : paths) result = std::max(result, format_file(path, check));
  return result;
}

}  // namespace sluice::tools
