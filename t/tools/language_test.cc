// The examples of the language's description compile without a word, and answer as it says.
#include <fstream>
#include <sstream>

#include "t/tools/play.h"
#include "vm/fmt.h"

namespace sluice::tools {
namespace {

struct Example {
  std::string line, kind, text;
};

std::vector<Example> examples() {
  std::ifstream in(SLUICE_LANGUAGE);
  std::vector<Example> out;
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) out.push_back({std::to_string(number), line.substr(3), {}});
    } else if (inside) {
      out.back().text += line + "\n";
    }
  }
  REQUIRE_FALSE(inside);
  return out;
}

TEST_CASE("every example of the description compiles, is laid out, and the transcript behind it is answered as written") {
  std::unique_ptr<Player> player;
  int modules = 0, transcripts = 0;
  for (const Example& example : examples()) {
    const std::string place = "README.md:" + example.line;
    if (example.kind == "aup") {
      player = player_of(example.text, place);
      CHECK_MESSAGE(vm::reformat(example.text).text == example.text, place << ": aupc fmt lays it out otherwise");
      ++modules;
    } else if (example.kind == "calls") {
      REQUIRE(player);
      const std::string wrong = play_all(*player, example.text, place);
      CHECK_MESSAGE(wrong.empty(), wrong);
      ++transcripts;
    }
  }
  CHECK(modules >= 9);
  CHECK(transcripts >= 6);
}

}  // namespace
}  // namespace sluice::tools
