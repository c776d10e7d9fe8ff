#include "lua/fgen.h"

#include <algorithm>
#include <utility>

#include "lua/context.h"

namespace sluice::lua {
namespace {

constexpr std::uint64_t kTrimAfterUs = 60'000'000;

}  // namespace

Fgen::Fgen(Runtime& runtime, std::uint32_t id) : runtime_(runtime), id_(id) {}

Fgen::~Fgen() = default;

lua_Integer Fgen::add_handle(const Target* target) {
  handles_.push_back(target);
  depth_ = std::max(depth_, target->depth + 1);
  return static_cast<lua_Integer>(id_) * kHandlesPerFgen + static_cast<lua_Integer>(handles_.size()) - 1;
}

int Fgen::handle_index(lua_Number handle) const {
  const double index = handle - static_cast<double>(id_) * kHandlesPerFgen;
  if (!(index >= 0 && index < static_cast<double>(handles_.size()))) return -1;
  const int whole = static_cast<int>(index);
  return whole == index ? whole : -1;
}

Result<void, std::string> Fgen::ready(int generator_ref, int argument_ref, std::string name, std::uint32_t objects) {
  generator_ = generator_ref;
  argument_ = argument_ref;
  name_ = std::move(name);
  objects_ = objects;
  Result<Context*, std::string> first = make_slot();
  if (!first) return std::move(first).error();
  free_.push_back(*first);
  ready_ = true;
  runtime_.record->generators.push_back(std::make_unique<proxy::GeneratorRecord>(name_));
  record_ = runtime_.record->generators.back().get();
  note();
  return {};
}

Result<Context*, std::string> Fgen::make_slot() {
  auto context = std::make_unique<Context>(*this, static_cast<std::uint32_t>(all_.size()));
  const std::uint64_t before = runtime_.vm->used_bytes();
  if (Result<void, std::string> built = context->build(); !built) return std::move(built).error();
  const std::uint64_t after = runtime_.vm->used_bytes(), grown = after > before ? after - before : 0;
  // A collection in between takes others' garbage off it: then the last slot's is nearer.
  if (grown > vm_bytes_per_slot_ / 2) vm_bytes_per_slot_ = grown;
  context->set_bytes(vm_bytes_per_slot_ + context->own_bytes());
  bytes_ += context->bytes();
  all_.push_back(std::move(context));
  // So that giving back never allocates.
  free_.reserve(all_.size());
  ++runtime_.slots;
  note();
  return all_.back().get();
}

// For whoever asks, on whatever thread.
void Fgen::note() {
  if (record_ == nullptr) return;
  record_->slots.set(all_.size());
  record_->in_use.set(all_.size() - free_.size());
  record_->bytes.set(bytes_);
}

void Fgen::start(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services) {
  Context* context = nullptr;
  if (!free_.empty()) {
    context = free_.back();
    free_.pop_back();
    if (free_.size() < fewest_free_) fewest_free_ = free_.size();
    record_->in_use.add();
  } else {
    fewest_free_ = 0;
    Result<Context*, std::string> made = make_slot();
    if (!made) {
      runtime_.report(name_, made.error());
      proxy::respond_error(refusal_, 500, Errc::lua, "the route could not be made ready; the server's log says why");
      exchange.answer(refusal_);
      return;
    }
    context = *made;
  }
  context->start(exchange, match);
}

void Fgen::client_gone(proxy::Exchange& exchange) {
  const std::uint32_t slot = exchange.route_slot;
  if (slot != 0 && slot <= all_.size()) all_[slot - 1]->client_gone();
}

void Fgen::give_back(Context& context) {
  free_.push_back(&context);
  record_->in_use.sub();
}

void Fgen::trim(std::uint64_t now_us) {
  if (trim_at_us_ == 0 || now_us < trim_at_us_) {
    if (trim_at_us_ == 0) {
      trim_at_us_ = now_us + kTrimAfterUs;
      fewest_free_ = free_.size();
    }
    return;
  }
  // The oldest in the list are those that were not needed.
  std::size_t surplus = fewest_free_ / 2;
  std::vector<Context*> kept(free_.begin() + static_cast<std::ptrdiff_t>(surplus), free_.end());
  for (std::size_t i = 0; i < surplus; ++i) {
    const std::uint32_t at = free_[i]->index();
    std::swap(all_[at], all_.back());
    all_[at]->set_index(at);
    bytes_ -= all_.back()->bytes();
    all_.pop_back();
    --runtime_.slots;
  }
  free_ = std::move(kept);
  free_.reserve(all_.size());
  trim_at_us_ = now_us + kTrimAfterUs;
  fewest_free_ = free_.size();
  note();
}

}  // namespace sluice::lua
