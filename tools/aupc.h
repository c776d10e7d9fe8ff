// What the commands of aupc share: exit codes, files, and modules from their text.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vm/compiler.h"
#include "vm/module.h"

namespace sluice::tools {

inline constexpr int kGood = 0, kErrors = 1, kUsage = 2;   // what aupc ends with

// The whole file, or standard input, of up to 64 MiB. Nothing: it cannot be read, which has been said on standard error.
std::optional<std::string> read_file(const std::string& path);
std::optional<std::string> read_input();

// Writes beside the file and renames, so that whoever reads it meanwhile never sees half of it. A link goes on pointing at
// its file, and the file may be read and written by whom it could; a device or a pipe is written to, never replaced.
// False: said on standard error.
bool write_file(const std::string& path, const std::string& bytes);

// What is wrong, to standard error, with an empty line between two messages; of more than a hundred how many they are.
void show_diagnostics(const std::string& path, const std::string& source, const std::vector<vm::Diagnostic>& diagnostics);

// Compiles; what is wrong is shown. Null: there are errors.
std::unique_ptr<vm::Module> compile_file(const std::string& path, const std::string& source);

// A module from its text or its bytecode, proven either way. Null: `result` is what aupc ends with.
std::unique_ptr<const vm::Module> load_module(const std::string& path, int& result);

// aupc test MODULE FILE.calls...
int test_calls(const std::string& module_path, const std::vector<std::string>& paths, bool update);

// aupc plan FILE --store DIR
int plan_module(const std::string& module_path, const std::string& store_path, bool allow_destroy);

// aupc verify-store DIR; `module_path` may be empty
int verify_store(const std::string& store_path, const std::string& module_path);

}  // namespace sluice::tools
