#include "lua/runtime.h"

#include "lua/context.h"
#include "lua/credentials.h"
#include "lua/fields.h"
#include "lua/sub_exchange.h"

namespace sluice::lua {
namespace {

constexpr std::uint32_t kReportsPerSecond = 20;

}  // namespace

Runtime::Runtime(proxy::Log* its_log) : log(its_log) {}

const Hook* HookSet::find(proxy::Method method) const {
  const Hook* hook = &hooks[static_cast<std::size_t>(method)];
  if (hook->empty() && method == proxy::Method::head) hook = &hooks[static_cast<std::size_t>(proxy::Method::get)];
  if (hook->empty()) hook = &any;
  return hook->empty() ? nullptr : hook;
}

bool HookSet::takes(std::string_view its_tag, std::string_view its_host) const {
  if (!tag.empty() && tag != its_tag) return false;
  if (host.empty()) return true;
  if (host[0] != '.') return same_field(host, its_host);
  return its_host.size() > host.size() && same_field(host, its_host.substr(its_host.size() - host.size()));
}

// Slots let go of registry references, so they go before the VM does.
Runtime::~Runtime() {
  fgens.clear();
  routes.clear();
  subs.clear();
}

void Runtime::report(std::string_view route, std::string_view what) {
  ++errors;
  if (log == nullptr) return;
  const std::uint64_t second = services ? services->monotonic_us() / 1'000'000 : 0;
  if (second != report_second_) {
    report_second_ = second;
    reports_ = 0;
    if (left_out_ != 0) log->error("lua: " + std::to_string(left_out_) + " more errors of routes were not written");
    left_out_ = 0;
  }
  if (++reports_ > kReportsPerSecond) {
    ++left_out_;
    return;
  }
  log->event(proxy::LogLevel::error, "route_error", "lua: route '" + std::string(route) + "': " + std::string(what), {{"route", route}});
}

}  // namespace sluice::lua
