#include "tools/aupc_fmt.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "tools/aupc.h"
#include "vm/compiler.h"
#include "vm/fmt.h"

namespace sluice::tools {
namespace {

bool say(const std::string& text) {
  std::cout << text << std::flush;
  if (std::cout) return true;
  std::cerr << "aupc: the output cannot be written\n";
  return false;
}

int format_file(const std::string& path, bool check) {
  const bool input = path == "-";
  const std::optional<std::string> source = input ? read_input() : read_file(path);
  if (!source) return kUsage;
  const vm::Formatted formatted = vm::reformat(*source);
  show_diagnostics(path, *source, formatted.diagnostics);
  if (!formatted.diagnostics.empty()) return kErrors;
  const bool same = formatted.text == *source;
  if (check) return same ? kGood : say(path + "\n") ? kErrors : kUsage;
  if (input) return say(formatted.text) ? kGood : kUsage;
  return same || write_file(path, formatted.text) ? kGood : kUsage;
}

}  // namespace

int format_files(const std::vector<std::string>& paths, bool check) {
  int result = kGood;
  for (const std::string& path : paths) result = std::max(result, format_file(path, check));
  return result;
}

}  // namespace sluice::tools
