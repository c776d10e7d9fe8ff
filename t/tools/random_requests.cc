#include "t/tools/random_requests.h"

#include <algorithm>

#include "vm/base/number_text.h"
#include "vm/slot.h"

namespace sluice::tools {
namespace {

constexpr std::size_t kRemembered = 64;
constexpr std::string_view kNames[] = {"a", "b", "c", "d", "e", "f"};
constexpr double kNumbers[] = {0, 1, 2, 3, 5, 7, 99, 100, 1000, 4294967295.0, 9007199254740992.0, -1, 0.5, 1e15, 1e300, 1e-7};

constexpr std::uint64_t kSteps[] = {1, 50, 1000, 10'000, 60'000};   // ms that the clock goes on by

std::string percent(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (vm::is_slug(std::string_view(&c, 1))) out += c;
    else out.append({'%', digits[byte >> 4], digits[byte & 15]});
  }
  return out;
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

RandomRequests::RandomRequests(const vm::Module& module, const std::vector<Step>& steps, std::uint64_t seed)
    : module_(module), random_(seed) {
  for (const Step& step : steps) {
    learn_query(step.target);
    // All documents are alike, whatever their keys.
    std::string path(path_of(step.target));
    if (path.starts_with("/objects/")) path = "/objects/";
    if (step.body) bodies_[path].push_back(*step.body);
  }
}

void RandomRequests::remember(std::vector<std::string>& list, std::string value) {
  if (list.size() < kRemembered) list.push_back(std::move(value));
  else list[random_.below(kRemembered)] = std::move(value);
}

void RandomRequests::learn_query(std::string_view target) {
  std::size_t at = target.find('?');
  while (at < target.size()) {
    const std::string_view rest = target.substr(at + 1);
    const std::string_view pair = rest.substr(0, rest.find('&'));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.find('$') == std::string_view::npos &&
        pair.find('%') == std::string_view::npos)
      remember(values_[std::string(pair.substr(0, equals))], std::string(pair.substr(equals + 1)));
    at += 1 + pair.size();
  }
}

std::string RandomRequests::number(const vm::Slot& slot) {
  double n = static_cast<double>(random_.below(10));
  if (random_.one_in(3)) n = kNumbers[random_.below(std::size(kNumbers))];
  else if (slot.range != vm::Range::none && random_.one_in(2)) n = slot.low + n;
  std::string out;
  append_number(out, n + 0.0);
  return out;
}

std::string RandomRequests::value(std::string_view name, const vm::Slot& slot) {
  const auto known = values_.find(name);
  if (known != values_.end() && !random_.one_in(3)) return random_.pick(known->second);
  switch (slot.base) {
    case vm::Base::num: case vm::Base::integer: case vm::Base::u32:
      return random_.one_in(40) ? "many" : number(slot);
    case vm::Base::boolean: return random_.one_in(2) ? "true" : "false";
    default:
      if (!given_.empty() && random_.one_in(2)) return random_.pick(given_);
      if (random_.one_in(30)) return percent("not a slug, \xc3\xa9");
      return std::string(kNames[random_.below(std::size(kNames))]);
  }
}

void RandomRequests::add_query(Request& request, std::string_view name, const vm::Slot& slot, char& separator) {
  if (random_.one_in(50)) return;
  request.target.append({separator}).append(name).append("=").append(value(name, slot));
  separator = '&';
}

std::string RandomRequests::body_for(const std::string& path) {
  const auto known = bodies_.find(path);
  if (known != bodies_.end() && !random_.one_in(3)) {
    std::string body = random_.pick(known->second);
    if (random_.one_in(6)) body.resize(random_.below(body.size() + 1));
    return body;
  }
  switch (random_.below(7)) {
    case 0: return {};
    case 1: return "\xff";
    case 2: return std::string(random_.below(5000), 'x');
    case 3: return "https://example.org/" + std::to_string(random_.below(50));
    case 4: return "{\"title\":\"t\",\"version\":" + std::to_string(random_.below(9)) + "}";
    case 5: return "line " + std::to_string(random_.below(50)) + "\n";
    default: return std::string(1 + random_.below(60), '\xc3') + "\xa9";
  }
}

Request RandomRequests::input(const vm::Input& in) {
  Request out;
  if (in.kind == vm::InputKind::timer) {
    out.timer = in.name;
    out.asked = "on " + in.name;
    return out;
  }
  out.method = "POST";
  const std::string path = out.target = "/inputs/" + in.name;
  char separator = '?';
  for (const vm::Field& field : in.fields)
    if (field.slot.base != vm::Base::text && field.slot.base != vm::Base::bytes)
      add_query(out, field.name, field.slot, separator);
  if (in.takes_body() || random_.one_in(60)) out.body = body_for(path);
  out.asked = "on " + in.name;
  return out;
}

Request RandomRequests::view(const vm::View& v) {
  Request out;
  out.method = "GET";
  out.target = "/views/" + v.name;
  char separator = '?';
  for (const vm::Parameter& p : v.parameters) add_query(out, p.name, p.slot, separator);
  if (v.type == vm::Type::cursor || random_.one_in(40)) {
    for (const char* name : {"from", "count"}) {
      if (!random_.one_in(3)) continue;
      out.target.append({separator}).append(name).append("=").append(std::to_string(random_.below(6)));
      separator = '&';
    }
  }
  out.asked = "view " + v.name;
  return out;
}

Request RandomRequests::object() {
  Request out;
  const std::string key = random_.one_in(3) ? "log-" + std::string(kNames[random_.below(std::size(kNames))]) : std::string(kNames[random_.below(std::size(kNames))]);
  out.target = "/objects/" + key;
  const std::uint64_t revision = random_.one_in(5) ? random_.below(9) : revisions_[key];
  switch (random_.below(6)) {
    case 0:
      out.method = "GET";
      out.asked = "on show";
      return out;
    case 1:
      if (module_.remove() != nullptr) {
        out.method = "DELETE";
        out.headers.emplace_back("If-Match", "\"" + std::to_string(revision) + "\"");
        out.asked = "on remove";
        return out;
      }
      [[fallthrough]];
    default:
      out.method = "PUT";
      if (revision == 0) out.headers.emplace_back("If-None-Match", "*");
      else out.headers.emplace_back("If-Match", "\"" + std::to_string(revision) + "\"");
      out.body = body_for("/objects/");
      out.asked = "on edit";
      return out;
  }
}

Request RandomRequests::next() {
  if (random_.one_in(12)) clock_ms_ += kSteps[random_.below(std::size(kSteps))];
  Request out;
  if (module_.serves_objects() && (module_.views.empty() || random_.one_in(2))) {
    out = object();
  } else if (!module_.views.empty() && random_.one_in(4)) {
    out = view(random_.pick(module_.views));
  } else {
    out = input(random_.pick(module_.inputs));
  }
  out.clock_ms = clock_ms_;
  return out;
}

void RandomRequests::learn(const Request& request, const Answer& answer) {
  if (request.target.starts_with("/objects/")) {
    const std::string key = request.target.substr(9);
    if (answer.revision != 0) revisions_[key] = answer.revision;
    else if (answer.status == 404 || answer.status == 204) revisions_.erase(key);
  }
  if (answer.status != 200) return;
  if (request.method == "POST") learn_query(request.target);
  if (vm::is_slug(answer.body)) remember(given_, answer.body);
}

}  // namespace sluice::tools
