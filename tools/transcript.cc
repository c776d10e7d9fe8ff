#include "tools/transcript.h"

#include <utility>

namespace sluice::tools {
namespace {

// What a step asks, with what was captured so far in it. False: `name` has not come yet.
bool expand_all(const Step& step, const Captured& captured, Step& out, std::string& name) {
  const auto one = [&](const std::string& from, std::string& to) {
    Result<std::string, std::string> text = expand(from, captured);
    (text ? to : name) = text ? std::move(*text) : std::move(text.error());
    return name.empty();
  };
  out = step;
  bool good = one(step.target, out.target);
  for (std::size_t i = 0; good && i < step.headers.size(); ++i) good = one(step.headers[i].second, out.headers[i].second);
  if (good && step.body) good = one(*step.body, *out.body);
  return good;
}

std::string with_line(std::string text, const Answer& answer) {
  if (answer.own_words || answer.body.empty()) return text;
  std::string_view line = answer.body;
  if (line.ends_with('\n')) line.remove_suffix(1);
  return text.append("  (").append(line).append(")");
}

}  // namespace

Played play(Player& player, const std::vector<Step>& steps) {
  Played out;
  Captured captured;
  for (const Step& step : steps) {
    if (step.clock_ms) player.set_clock(*step.clock_ms);
    out.answers.emplace_back();
    Step asked;
    std::string unknown;
    if (!expand_all(step, captured, asked, unknown)) {
      out.wrong.push_back({step.line, write_step(step), write_answer(step.expected), "nothing has come for $" + unknown + " yet"});
      continue;
    }
    Answer answer;
    if (step.timer.empty()) {
      answer = player.ask(asked.method, asked.target, asked.headers, asked.body.value_or(std::string()));
    } else {
      bool found = false;
      answer = player.fire(step.timer, found);
      if (!found) {
        out.wrong.push_back({step.line, write_step(step), write_answer(step.expected), "the module has no such timer"});
        continue;
      }
    }
    const bool written = step.expected.line != 0 || !step.timer.empty();
    if (matches(step.expected, answer, captured) && written) continue;
    out.answers.back() = write_answer(answer);
    out.wrong.push_back({step.line, write_step(asked), write_answer(step.expected), with_line(write_answer(answer), answer)});
  }
  return out;
}

std::string render(const std::string& file, const Played::Wrong& wrong) {
  std::string out = file + ":" + std::to_string(wrong.line) + ": " + wrong.call + "\n";
  out.append("  expected  ").append(wrong.expected).append("\n  answered  ").append(wrong.answered).append("\n");
  std::size_t same = 0;
  while (same < wrong.expected.size() && same < wrong.answered.size() && wrong.expected[same] == wrong.answered[same]) ++same;
  // Where nothing is alike a mark says nothing; and it stands under characters, not bytes.
  if (same == 0) return out;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < same; ++i) columns += (static_cast<unsigned char>(wrong.expected[i]) & 0xc0) != 0x80;
  return out.append(12 + columns, ' ').append("^\n");
}

}  // namespace sluice::tools
