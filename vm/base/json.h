// The little JSON that module answers need: escaping out, and one pointed-to value in.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// Appends `text` as a JSON string with its quotes. Escapes `"`, `\` and bytes below 0x20 (as \u00xx), nothing else.
void append_json_string(std::string& out, std::string_view text);

// Source: RFC 8259, nested at most 1,024 deep. A u-escape that is half a surrogate pair is refused: it is no text.
bool json_valid(std::string_view json);

// The value at a JSON pointer as it is written, without decoding it: a part of `json`. Absent as below. Of equal names
// in one object the first counts.
std::optional<std::string_view> json_find(std::string_view json, std::string_view pointer);
// Whether a value found is a string; its content when it has no escapes is what is between the quotes.
inline bool json_is_text(std::string_view raw) { return !raw.empty() && raw.front() == '"'; }
// Decodes a found string into `out`, which has room for raw.size() bytes; returns the length.
std::size_t json_decode(std::string_view raw, char* out);

// The content of a string as it was found.
std::string json_unquote(std::string_view raw);

// Each member of an object in its order, or each element of an array (`name` is empty then); `raw` is a part of `json`.
// False: it is neither, or no JSON, and `f` was not called.
bool json_each(std::string_view json, const std::function<void(std::string_view name, std::string_view raw)>& f);

// The text (number) at a JSON pointer (RFC 6901); absent when the document is not JSON, the path leads nowhere
// or to another type. Only the path asked is decoded. A number beyond the doubles is absent.
std::optional<std::string> json_text(std::string_view json, std::string_view pointer);
std::optional<double> json_number(std::string_view json, std::string_view pointer);

}  // namespace sluice
