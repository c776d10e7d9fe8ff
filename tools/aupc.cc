// aupc, the compiler of modules: .aup in, .pmod or an explanation out.
//
// Exit codes: 0 it is right; 1 there are errors in a module; 2 wrong usage, or a file that cannot be read or
// written.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vm/base/handle.h"
#include "vm/compiler.h"
#include "vm/disasm.h"
#include "vm/explain.h"
#include "vm/format.h"

namespace {
using namespace sluice::vm;

constexpr int kGood = 0, kErrors = 1, kUsage = 2;

int close_file(std::FILE* f) { return std::fclose(f); }
using FilePtr = sluice::Handle<std::FILE, close_file>;

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
  std::error_code ignored;
  if (path == out_path || std::filesystem::equivalent(path, out_path, ignored)) {
    std::cerr << "aupc: " << out_path << ": is the module itself; name another file, such as FILE.pmod\n";
    return kUsage;
  }
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
    const int error = errno;
    std::remove(partial.c_str());
    std::cerr << "aupc: " << out_path << ": cannot be written: " << std::strerror(error) << '\n';
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
  std::cout << (code ? disassemble(*module) : explain(path, *module)) << std::flush;
  if (std::cout) return kGood;
  std::cerr << "aupc: the output cannot be written\n";
  return kUsage;
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

  const std::vector<CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_asked = [argv](const CLI::App* command) { return command->get_name() == argv[1]; };
  // By itself the library would say only that a command is required.
  if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), is_asked)) {
    std::cerr << "aupc: there is no command `" << argv[1] << "`; there are build, check, disasm and explain\n";
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return kGood;
  } catch (const CLI::ParseError& e) {
    std::cerr << "aupc: " << e.what() << "; `aupc --help` says more\n";
    return kUsage;
  }
  if (build_command->parsed()) return build(path, out_path);
  if (check_command->parsed()) return check(paths);
  return show(path, disasm_command->parsed());
}
