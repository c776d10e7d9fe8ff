// From a call's names to an event's numbers, and again when the module has been swapped meanwhile.
#pragma once
#include "proxy/engine.h"
#include "proxy/engine/served.h"

namespace sluice::proxy {

// Fills all of `event` that depends on the module: verb, number, writes, key, condition, fields, body. Not: module,
// store, shard. False: event.answer says why.
bool resolve(Event& event, const Call& call, const Served& served);

// The same for an event that was resolved against `from`, by the names it had there. False: event.answer says why:
// what is gone is 404.
bool resolve_again(Event& event, const Served& from, const Served& to);

}  // namespace sluice::proxy
