// The little JSON that module answers need: escaping out, and one pointed-to value in.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// Appends `text` as a JSON string with its quotes. Escapes `"`, `\` and bytes below 0x20 (as \u00xx), nothing else.
void append_json_string(std::string& out, std::string_view text);

bool json_valid(std::string_view json);

// The text (number) at a JSON pointer (RFC 6901); absent when the document is not JSON, the path leads nowhere
// or to another type. Only the path asked is decoded. A number beyond the doubles is absent.
std::optional<std::string> json_text(std::string_view json, std::string_view pointer);
std::optional<double> json_number(std::string_view json, std::string_view pointer);

}  // namespace sluice
