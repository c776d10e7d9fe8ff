// How sluicectl shows what the control socket says: JSON in, lines for a person out.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::tools {

// A tree of JSON as names and values: {"a":{"b":1},"c":["x"]} is a.b = 1, c.0 = x. Texts are decoded.
std::vector<std::pair<std::string, std::string>> flatten(std::string_view json);

// Counters as lines "NAME VALUE", those of the section `server` by their own names. With `wanted` only these, each a name or
// the beginning of names up to a dot; `missing` gets those that nothing has.
std::string show_stats(std::string_view answer, const std::vector<std::string>& wanted, std::vector<std::string>& missing);

// A line of a stream: TIME STREAM LEVEL and NAME=VALUE for the rest, texts with spaces as JSON strings.
std::string show_line(std::string_view json);

// What functions of routes allocate, or take of the processor, as a table of so many rows.
std::string show_profile(std::string_view answer, std::size_t most);

// Generations and what each worker's hold, as a table.
std::string show_generations(std::string_view answer);

}  // namespace sluice::tools
