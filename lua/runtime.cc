#include "lua/runtime.h"

#include "lua/context.h"
#include "lua/sub_exchange.h"

namespace sluice::lua {
namespace {

constexpr std::uint32_t kReportsPerSecond = 20;

}  // namespace

Runtime::Runtime(proxy::Log* its_log) : log(its_log) {}

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
  log->error("lua: route '" + std::string(route) + "': " + std::string(what));
}

}  // namespace sluice::lua
