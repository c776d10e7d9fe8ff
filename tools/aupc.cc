// aupc, the compiler of modules: .aup in, .pmod or an explanation out.
//
// Exit codes: 0 it is right; 1 there are errors in a module; 2 wrong usage, or a file that cannot be read or
// written.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/aupc.h"
#include "tools/aupc_fmt.h"
#include "vm/disasm.h"
#include "vm/explain.h"
#include "vm/format.h"

namespace {
using namespace sluice::vm;
using namespace sluice::tools;

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
  return write_file(out_path, *file) ? kGood : kUsage;
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

int show(const std::string& path, bool code) {
  int result = kGood;
  const std::unique_ptr<const Module> module = load_module(path, result);
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

  CLI::App* test_command = app.add_subcommand("test", "play transcripts to a module, over a store in memory");
  bool update = false;
  test_command->add_option("MODULE", path, "the module, FILE.aup or FILE.pmod")->required();
  test_command->add_option("CALLS", paths, "transcripts, FILE.calls: what is asked and what is answered")->required();
  test_command->add_flag("--update", update, "write what is answered into the transcripts");
  CLI::App* fmt_command = app.add_subcommand("fmt", "lay modules out as they should be");
  bool check_only = false;
  fmt_command->add_option("FILE", paths, "modules, FILE.aup; - is standard input, laid out on standard output")->required();
  fmt_command->add_flag("--check", check_only, "only say which files are laid out otherwise");
  CLI::App* plan_command = app.add_subcommand("plan", "print what a store has to go through to be served by a module");
  std::string store_path;
  bool allow_destroy = false;
  plan_command->add_option("FILE", path, "the module, FILE.aup or FILE.pmod")->required();
  plan_command->add_option("--store", store_path, "the store's folder")->required();
  plan_command->add_flag("--allow-destroy", allow_destroy, "what the module drops may be lost");
  CLI::App* verify_command = app.add_subcommand("verify-store", "compare all that a store derived from its rows with the rows");
  verify_command->add_option("DIR", store_path, "the store's folder")->required();
  verify_command->add_option("--module", path, "a module that should serve the store as it is");

  const std::vector<CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_asked = [argv](const CLI::App* command) { return command->get_name() == argv[1]; };
  // By itself the library would say only that a command is required.
  if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), is_asked)) {
    std::cerr << "aupc: there is no command `" << argv[1] << "`; there are ";
    for (std::size_t i = 0; i < commands.size(); ++i)
      std::cerr << (i == 0 ? "" : i + 1 == commands.size() ? " and " : ", ") << commands[i]->get_name();
    std::cerr << '\n';
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
  if (test_command->parsed()) return test_calls(path, paths, update);
  if (plan_command->parsed()) return plan_module(path, store_path, allow_destroy);
  if (verify_command->parsed()) return verify_store(store_path, path);
  if (fmt_command->parsed()) return format_files(paths, check_only);
  return show(path, disasm_command->parsed());
}
