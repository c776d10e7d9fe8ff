#include "proxy/module_call.h"

#include <algorithm>
#include <array>
#include <optional>

#include "proxy/condition.h"

namespace sluice::proxy {
namespace {

constexpr std::size_t kNameBytes = 64;

constexpr std::array<bool, 256> kNameChars = [] {
  std::array<bool, 256> is{};
  for (int c = '0'; c <= '9'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) is[static_cast<std::size_t>(c)] = true;
  is['-'] = is['_'] = true;
  return is;
}();

constexpr std::uint32_t bit(Method m) { return 1u << static_cast<unsigned>(m); }
constexpr std::uint32_t kRead = bit(Method::get) | bit(Method::head) | bit(Method::options);

enum class Kind : std::uint8_t { view, input, object };
struct Target {
  Kind kind;
  std::string_view name;   // may break the rules of names
};

// Two segments, the first of them ours; nothing otherwise.
std::optional<Target> find_target(std::string_view path) {
  if (path.empty() || path[0] != '/') return std::nullopt;
  const std::size_t slash = path.find('/', 1);
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view first = path.substr(1, slash - 1);
  const std::string_view name = path.substr(slash + 1);
  if (name.find('/') != std::string_view::npos) return std::nullopt;
  if (first == "views") return Target{Kind::view, name};
  if (first == "inputs") return Target{Kind::input, name};
  if (first == "objects") return Target{Kind::object, name};
  return std::nullopt;
}

// Errors and OPTIONS are as much the module's present state as its answers are.
bool refuse(Response& out, std::uint16_t status, Errc error, std::string_view line) {
  respond_error(out, status, error, line);
  out.no_store = true;
  return false;
}

bool no_route(Response& out, const Store& store) {
  respond_error(out, 404, Errc::route,
                store.serves_objects() ? "no such path; there are /views/NAME, /inputs/NAME and /objects/KEY"
                                       : "no such path; there are /views/NAME and /inputs/NAME");
  return false;
}

// For methods other than the target's own: OPTIONS, and all that it does not take.
bool other_method(Response& out, Method method, std::uint32_t allow, std::string_view line) {
  if (method == Method::options) {
    out.status = 204;
    out.error = Errc::none;
    out.allow = allow;
    out.no_store = true;
    return false;
  }
  refuse(out, 405, Errc::method, line);
  out.allow = allow;
  return false;
}

bool view_call(Call& call, Response& out, const Store& store, const ModuleRequest& request) {
  if (request.method == Method::get || request.method == Method::head) {
    call.verb = Verb::view;   // an unknown name is the engine's to refuse: it looks the name up anyway
    return true;
  }
  if (!store.has_view(call.name)) return refuse(out, 404, Errc::no_view, "the module has no such view");
  return other_method(out, request.method, kRead, "a view takes GET and HEAD");
}

bool input_call(Call& call, Response& out, const Store& store, const ModuleRequest& request) {
  if (request.method == Method::post) {
    if (!request.has_length && store.input_takes_body(call.name))
      return refuse(out, 411, Errc::length, "this input takes a body: send Content-Length, 0 for an empty one");
    call.verb = Verb::input;
    if (request.body) call.body = *request.body;
    return true;
  }
  if (!store.has_input(call.name)) return refuse(out, 404, Errc::no_input, "the module has no such input");
  return other_method(out, request.method, bit(Method::post) | bit(Method::options), "an input takes POST");
}

bool object_call(Call& call, Response& out, const Store& store, const ModuleRequest& request) {
  switch (request.method) {
    case Method::get:
    case Method::head: call.verb = Verb::show; return true;
    case Method::put:
      if (!request.has_length)
        return refuse(out, 411, Errc::length, "PUT needs Content-Length, 0 for an empty document, or chunked");
      call.verb = Verb::edit;
      if (request.body) call.body = *request.body;
      break;
    case Method::del:
      if (store.has_remove()) {
        if (request.body && request.body->size() != 0)
          return refuse(out, 400, Errc::body, "DELETE takes no body");
        call.verb = Verb::remove;
        break;
      }
      [[fallthrough]];
    default:
      return other_method(out, request.method,
                          kRead | bit(Method::put) | (store.has_remove() ? bit(Method::del) : 0u),
                          store.has_remove() ? "a document takes GET, HEAD, PUT and DELETE"
                                             : "a document takes GET, HEAD and PUT; this module removes none");
  }
  const Result<void> condition = read_condition(call, request.headers, request.method == Method::put);
  if (condition) return true;
  return refuse(out, condition.error().code == Errc::condition ? 428 : 400, condition.error().code,
                condition.error().what);
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return kNameChars[static_cast<unsigned char>(c)]; });
}

ModuleRequest module_request(const Request& request, std::string_view path) {
  return {.method = request.method,
          .path = path,
          .query = request.query,
          .headers = request.headers,
          .body = &request.body,
          .has_length = request.has_length};
}

bool make_call(Call& call, Response& out, const StorePtr& store, const ModuleRequest& request) {
  const std::optional<Target> target = find_target(request.path);
  if (!target || (target->kind == Kind::object && !store->serves_objects())) return no_route(out, *store);
  if (!is_name(target->name))
    return refuse(out, 400, Errc::request,
                  target->kind == Kind::object ? "a key is 1 to 64 of A-Z a-z 0-9 - _"
                                               : "a name is 1 to 64 of A-Z a-z 0-9 - _");
  call.store = store;
  call.name = target->name;
  call.query = request.query;
  call.body.reset();
  call.condition = Condition::none;
  call.revision = 0;
  call.more.count = 0;
  switch (target->kind) {
    case Kind::view: return view_call(call, out, *store, request);
    case Kind::input: return input_call(call, out, *store, request);
    case Kind::object: return object_call(call, out, *store, request);
  }
  return no_route(out, *store);
}

std::string_view distribution_key(std::string_view path, std::span<const Parameter> query) {
  const std::optional<Target> target = find_target(path);
  if (!target) return {};
  if (target->kind != Kind::object)
    for (const Parameter& p : query)
      if (p.name != "from" && p.name != "count" && p.name != "after") return p.value;
  return target->name;
}

}  // namespace sluice::proxy
