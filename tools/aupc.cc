// aupc, the compiler of modules: .aup in, .pmod or an explanation out.
//
// Exit codes: 0 it is right; 1 there are errors in a module; 2 wrong usage, or a file that cannot be read or
// written.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "vm/compiler.h"
#include "vm/disasm.h"
#include "vm/explain.h"
#include "vm/format.h"

namespace {
using namespace sluice::vm;

constexpr int kGood = 0, kErrors = 1, kUsage = 2;

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  if (in) bytes << in.rdbuf();
  if (!in || in.bad()) {
    std::cerr << "aupc: " << path << ": cannot be read\n";
    return std::nullopt;
  }
  return bytes.str();
}

// The messages on stderr, with an empty line between two.
std::unique_ptr<Module> compile_file(const std::string& path, const std::string& source) {
  Compiled compiled = compile(source);
  bool first = true;
  for (const Diagnostic& d : compiled.diagnostics) {
    if (!first) std::cerr << '\n';
    first = false;
    std::cerr << render(path, source, d);
  }
  return std::move(compiled.module);
}

int build(const std::string& path, const std::string& out_path) {
  const std::optional<std::string> source = read_file(path);
  if (!source) return kUsage;
  const std::unique_ptr<Module> module = compile_file(path, *source);
  if (!module) return kErrors;
  const sluice::Result<std::string, std::string> file = encode(*module);
  if (!file) {
    std::cerr << "aupc: " << path << ": " << file.error() << '\n';
    return kErrors;
  }
  // Written beside it and renamed, so that a server that reads it meanwhile never sees half of it.
  const std::string partial = out_path + ".new";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out << *file;
  out.close();
  if (!out || std::rename(partial.c_str(), out_path.c_str()) != 0) {
    std::remove(partial.c_str());
    std::cerr << "aupc: " << out_path << ": cannot be written\n";
    return kUsage;
  }
  return kGood;
}

int check(const std::vector<std::string>& paths) {
  int result = kGood;
  for (const std::string& path : paths) {
    const std::optional<std::string> source = read_file(path);
    if (!source)
      result = kUsage;
    else if (!compile_file(path, *source) && result == kGood)
      result = kErrors;
  }
  return result;
}

// A module from its text or its bytecode, proven either way, so that its bounds are known.
std::unique_ptr<const Module> module_of(const std::string& path, int& result) {
  const std::optional<std::string> bytes = read_file(path);
  result = kUsage;
  if (!bytes) return nullptr;
  result = kErrors;
  if (!bytes->starts_with("PMOD")) return compile_file(path, *bytes);
  sluice::Result<std::unique_ptr<const Module>, std::string> loaded = load(*bytes);
  if (loaded) return std::move(*loaded);
  std::cerr << "aupc: " << path << ": " << loaded.error() << '\n';
  return nullptr;
}

int show(const std::string& path, bool code) {
  int result = kGood;
  const std::unique_ptr<const Module> module = module_of(path, result);
  if (!module) return result;
  std::cout << (code ? disassemble(*module) : explain(path, *module));
  return kGood;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Compiles and explains modules."};
  app.require_subcommand(1);
  std::string path, out_path;
  std::vector<std::string> paths;

  CLI::App* build_command = app.add_subcommand("build", "write the bytecode of a module");
  build_command->add_option("FILE", path, "the module, FILE.aup")->required();
  build_command->add_option("-o,--output", out_path, "where to write it, FILE.pmod")->required();
  CLI::App* check_command = app.add_subcommand("check", "say what is wrong with modules, and write nothing");
  check_command->add_option("FILE", paths, "modules, FILE.aup")->required();

  CLI::App* disasm_command = app.add_subcommand("disasm", "print the instructions of a module");
  disasm_command->add_option("FILE", path, "the module, FILE.aup or FILE.pmod")->required();
  CLI::App* explain_command = app.add_subcommand("explain", "print what each handler and view costs at most");
  explain_command->add_option("FILE", path, "the module, FILE.aup or FILE.pmod")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kGood : kUsage;
  }
  if (build_command->parsed()) return build(path, out_path);
  if (check_command->parsed()) return check(paths);
  return show(path, disasm_command->parsed());
}
