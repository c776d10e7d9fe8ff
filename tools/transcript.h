// Plays a transcript to a module and tells where it is answered otherwise.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tools/calls.h"
#include "tools/player.h"

namespace sluice::tools {

struct Played {
  // A step that is answered otherwise. Shape: `answered` has the server's own line in brackets behind it.
  struct Wrong {
    std::uint32_t line = 0;
    std::string call, expected, answered;
  };
  std::vector<Wrong> wrong;
  std::vector<std::optional<std::string>> answers;   // per step, as with_answers() takes them
};

Played play(Player& player, const std::vector<Step>& steps);

// "FILE:12: POST /inputs/add", what was expected and what came, one above the other, and a mark under the first difference.
std::string render(const std::string& file, const Played::Wrong& wrong);

}  // namespace sluice::tools
