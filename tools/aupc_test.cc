// aupc test: transcripts against a module over a store in memory.
#include <iostream>
#include <utility>

#include "tools/aupc.h"
#include "tools/transcript.h"
#include "vm/format.h"

namespace sluice::tools {
namespace {

// Every file has a store of its own, and a module: a store keeps hold of the one it is of.
std::unique_ptr<Player> new_player(const std::string& module_path, const std::string& bytecode) {
  Result<std::unique_ptr<const vm::Module>, std::string> module = vm::load(bytecode);
  if (!module) {
    std::cerr << "aupc: " << module_path << ": " << module.error() << '\n';
    return nullptr;
  }
  Result<std::unique_ptr<Player>, std::string> player = Player::make(std::move(*module));
  if (player) return std::move(*player);
  std::cerr << "aupc: " << module_path << ": " << player.error() << '\n';
  return nullptr;
}

int test_file(const std::string& path, Player& player, bool update) {
  const std::optional<std::string> text = read_file(path);
  if (!text) return kUsage;
  const Result<std::vector<Step>, std::string> steps = parse_calls(*text, update ? Answers::optional : Answers::required);
  if (!steps) {
    std::cerr << path << ':' << steps.error() << '\n';
    return kErrors;
  }
  const Played played = play(player, *steps);
  if (std::string why = player.store().check_derived(); !why.empty()) {
    std::cerr << path << ": after it " << why << '\n';
    return kErrors;
  }
  std::size_t rewritten = 0;
  for (const auto& answer : played.answers) rewritten += answer.has_value();
  if (update && rewritten == played.wrong.size()) {
    if (rewritten != 0 && !write_file(path, with_answers(*text, *steps, played.answers))) return kUsage;
    std::cout << path << ": " << steps->size() << " calls, " << rewritten << " answers written\n";
    return kGood;
  }
  for (const Played::Wrong& wrong : played.wrong) std::cout << render(path, wrong);
  std::cout << path << ": " << steps->size() << " calls, ";
  if (played.wrong.empty()) std::cout << "answered as written\n";
  else std::cout << played.wrong.size() << " answered otherwise\n";
  return played.wrong.empty() ? kGood : kErrors;
}

}  // namespace

int test_calls(const std::string& module_path, const std::vector<std::string>& paths, bool update) {
  const std::optional<std::string> bytes = read_file(module_path);
  if (!bytes) return kUsage;
  std::string bytecode = *bytes;
  if (!bytes->starts_with("PMOD")) {
    const std::unique_ptr<vm::Module> module = compile_file(module_path, *bytes);
    if (!module) return kErrors;
    Result<std::string, std::string> file = vm::encode(*module);
    if (!file) {
      std::cerr << "aupc: " << module_path << ": " << file.error() << '\n';
      return kErrors;
    }
    bytecode = std::move(*file);
  }
  int result = kGood;
  for (const std::string& path : paths) {
    const std::unique_ptr<Player> player = new_player(module_path, bytecode);
    if (!player) return kErrors;
    result = std::max(result, test_file(path, *player, update));
  }
  std::cout << std::flush;
  if (std::cout) return result;
  std::cerr << "aupc: the output cannot be written\n";
  return kUsage;
}

}  // namespace sluice::tools
