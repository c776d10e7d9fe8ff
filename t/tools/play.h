// Modules and transcripts as the tests of tools take them.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>

#include "tools/transcript.h"
#include "vm/compiler.h"
#include "vm/format.h"

namespace sluice::tools {

// The whole way: compiled without a word, encoded, proven.
inline std::unique_ptr<const vm::Module> module_of(std::string_view source, const std::string& file = "m.aup") {
  const vm::Compiled compiled = vm::compile(source);
  std::string said;
  for (const vm::Diagnostic& d : compiled.diagnostics) said += vm::render(file, source, d);
  CHECK_MESSAGE(said.empty(), said);
  REQUIRE(compiled.module != nullptr);
  const Result<std::string, std::string> bytes = vm::encode(*compiled.module);
  REQUIRE_MESSAGE(bytes.has_value(), (bytes ? std::string() : bytes.error()));
  Result<std::unique_ptr<const vm::Module>, std::string> loaded = vm::load(*bytes);
  REQUIRE_MESSAGE(loaded.has_value(), file << ": " << (loaded ? std::string() : loaded.error()));
  return std::move(*loaded);
}

inline std::unique_ptr<Player> player_of(std::string_view source, const std::string& file = "m.aup") {
  Result<std::unique_ptr<Player>, std::string> player = Player::make(module_of(source, file));
  REQUIRE_MESSAGE(player.has_value(), file << ": " << (player ? std::string() : player.error()));
  return std::move(*player);
}

// All that is answered otherwise; empty when nothing is.
inline std::string play_all(Player& player, std::string_view calls, const std::string& file = "m.calls") {
  const Result<std::vector<Step>, std::string> steps = parse_calls(calls);
  REQUIRE_MESSAGE(steps.has_value(), file << ":" << (steps ? std::string() : steps.error()));
  std::string out;
  for (const Played::Wrong& wrong : play(player, *steps).wrong) out += render(file, wrong);
  return out;
}

}  // namespace sluice::tools
