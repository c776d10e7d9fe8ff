// JSON in, lines for a person out.
#include <algorithm>
#include <cstddef>

#include "proxy/route_profile.h"
#include "tools/sluicectl.h"
#include "vm/base/json.h"

namespace sluice::tools {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

void walk(const std::string& path, std::string_view json, Pairs& out) {
  std::size_t index = 0;
  const bool in_list = !json.empty() && json.front() == '[';
  const bool whole = json_each(json, [&](std::string_view name, std::string_view raw) {
    const std::string own = in_list ? std::to_string(index++) : std::string(name);
    walk(path.empty() ? own : path + "." + own, raw, out);
  });
  if (!whole) out.emplace_back(path, json_is_text(json) ? json_unquote(json) : std::string(json));
}

bool covers(std::string_view wanted, std::string_view name) {
  return name.starts_with(wanted) && (name.size() == wanted.size() || name[wanted.size()] == '.');
}

// A value as a word, or as JSON where it is none.
std::string word(std::string_view raw) {
  if (!json_is_text(raw)) return std::string(raw);
  const std::string text = json_unquote(raw);
  const bool plain = !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7f;
  });
  return plain ? text : std::string(raw);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> flatten(std::string_view json) {
  Pairs out;
  walk("", json, out);
  return out;
}

std::string show_stats(std::string_view answer, const std::vector<std::string>& wanted, std::vector<std::string>& missing) {
  std::string out;
  std::vector<bool> found(wanted.size());
  for (auto& [path, value] : flatten(answer)) {
    if (path == "ok") continue;
    const std::string name = path.starts_with("server.") ? path.substr(7) : path;
    bool takes = wanted.empty();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!covers(wanted[i], name) && !covers(wanted[i], path)) continue;
      takes = true;
      found[i] = true;
    }
    if (takes) out.append(name).append(" ").append(value).append("\n");
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!found[i]) missing.push_back(wanted[i]);
  return out;
}

std::string show_line(std::string_view json) {
  std::string out;
  json_each(json, [&out](std::string_view name, std::string_view raw) {
    if (name == "stream") return;                // behind the time
    if (name == "time") {
      out.append(word(raw)).append(" ");
    } else if (name == "level") {
      out.append(word(raw));
    } else {
      if (!out.empty()) out.push_back(' ');
      out.append(name).append("=").append(word(raw));
    }
  });
  if (const auto stream = json_text(json, "/stream")) {
    const std::size_t behind = out.find(' ');
    out.insert(behind == out.npos ? out.size() : behind + 1, *stream + " ");
  }
  return out;
}

std::string show_profile(std::string_view answer, std::size_t most) {
  std::vector<proxy::RouteProfile::Row> rows;
  json_each(json_find(answer, "/rows").value_or("[]"), [&rows](std::string_view, std::string_view raw) {
    const auto number = [raw](std::string_view pointer) { return static_cast<std::uint64_t>(json_number(raw, pointer).value_or(0)); };
    rows.push_back({json_text(raw, "/function").value_or(""), json_text(raw, "/place").value_or("?"), number("/weight"), number("/count")});
  });
  const bool timed = json_text(answer, "/kind") == "time";
  return proxy::profile_table(timed ? proxy::RouteProfile::Kind::time : proxy::RouteProfile::Kind::memory, rows, most);
}

std::string show_generations(std::string_view answer) {
  const auto text = [](std::string_view raw, const char* pointer) {
    const auto found = json_find(raw, pointer);
    return !found ? std::string() : json_is_text(*found) ? json_unquote(*found) : std::string(*found);
  };
  std::string out;
  json_each(json_find(answer, "/generations").value_or("[]"), [&](std::string_view, std::string_view generation) {
    out.append("generation ").append(text(generation, "/generation")).append(", since ").append(text(generation, "/since"));
    out.append(text(generation, "/serves") == "true" ? ", serves\n" : "\n");
    json_each(json_find(generation, "/workers").value_or("[]"), [&](std::string_view, std::string_view part) {
      out.append("  worker ").append(text(part, "/worker"));
      out.append(": ").append(text(part, "/requests")).append(" requests, ").append(text(part, "/events")).append(" events, ");
      out.append(text(part, "/kept")).append(" behind their answers");
      out.append(", ").append(text(part, "/slots_in_use")).append(" of ").append(text(part, "/slots")).append(" slots, ");
      out.append(text(part, "/memory_bytes")).append(" bytes of Lua");
      if (const std::string oldest = text(part, "/oldest"); !oldest.empty())
        out.append("; the oldest request is ").append(oldest).append(", ").append(text(part, "/oldest_us")).append(" us");
      out.append("\n");
    });
  });
  return out;
}

}  // namespace sluice::tools
