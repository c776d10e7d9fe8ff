// Every message of the compiler, compared with what it read like when someone last looked at it.
//
// golden/NAME.aup is a module, golden/NAME.txt what the compiler says of it. After a change of messages, look
// at what it writes with SLUICE_WRITE_GOLDEN=1 in the environment, and commit that.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "vm/compiler.h"
#include "vm/format.h"

namespace sluice::vm {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<fs::path> modules() {
  std::vector<fs::path> out;
  for (const fs::directory_entry& e : fs::directory_iterator(SLUICE_GOLDEN))
    if (e.path().extension() == ".aup") out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::string said_of(const std::string& source, const Compiled& compiled) {
  std::string said;
  for (const Diagnostic& d : compiled.diagnostics) {
    if (!said.empty()) said += '\n';
    said += render("m.aup", source, d);
  }
  return said;
}

TEST_CASE("every message reads as it should") {
  const bool write = std::getenv("SLUICE_WRITE_GOLDEN") != nullptr;
  const std::vector<fs::path> all = modules();
  REQUIRE(all.size() >= 60);
  for (const fs::path& path : all) {
    const std::string source = read_file(path);
    fs::path expected = path;
    expected.replace_extension(".txt");
    const Compiled compiled = compile(source);
    const std::string said = said_of(source, compiled);
    INFO(path.filename().string());
    if (write) {
      std::ofstream(expected, std::ios::binary) << said;
      continue;
    }
    REQUIRE(fs::exists(expected));
    CHECK(said == read_file(expected));
    // Each of these modules is wrong, or is warned about and compiles.
    CHECK_FALSE(said.empty());
    const bool wrong = std::any_of(compiled.diagnostics.begin(), compiled.diagnostics.end(),
                                   [](const Diagnostic& d) { return d.kind == Diagnostic::Kind::error; });
    CHECK(wrong == (compiled.module == nullptr));
  }
}

TEST_CASE("a file cut anywhere is refused or compiles, and says so in order") {
  for (const fs::path& path : modules()) {
    const std::string source = read_file(path);
    for (std::size_t n = 0; n < source.size(); n += 1 + source.size() / 64) {
      const Compiled compiled = compile(source.substr(0, n));
      INFO(path.filename().string() << " cut at " << n);
      CHECK((compiled.module != nullptr || !compiled.diagnostics.empty()));
    }
  }
}

TEST_CASE("messages end and begin as the house form says") {
  for (const fs::path& path : modules()) {
    const std::string source = read_file(path);
    std::uint32_t line = 0;
    for (const Diagnostic& d : compile(source).diagnostics) {
      INFO(path.filename().string() << ": " << d.message);
      CHECK_FALSE(d.message.ends_with('.'));
      CHECK_FALSE(d.hint.ends_with('.'));
      CHECK(!(d.message[0] >= 'A' && d.message[0] <= 'Z'));
      CHECK(d.line >= line);
      line = d.line;
    }
  }
}

}  // namespace
}  // namespace sluice::vm
