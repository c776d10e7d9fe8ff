// What is known when compiled: consts, slots, and what states begin with.
#include <cmath>

#include "vm/base/number_text.h"
#include "vm/check_base.h"
#include "vm/slot.h"

namespace sluice::vm {

std::string with_article(Type type) {
  switch (type) {
    case Type::num:
      return "a num";
    case Type::text:
      return "a text";
    case Type::boolean:
      return "a bool";
    case Type::bytes:
      return "bytes";
    case Type::row:
      return "a row";
    default:
      return "nothing";
  }
}

std::string number_text(double n) {
  std::string out;
  append_number(out, n);
  return out;
}

std::string_view base_word(Base base) {
  switch (base) {
    case Base::num:
      return "num";
    case Base::integer:
      return "int";
    case Base::u32:
      return "u32";
    case Base::boolean:
      return "bool";
    case Base::text:
      return "text";
    case Base::slug:
      return "slug";
    default:
      return "bytes";
  }
}

namespace {

bool is_number(Base base) { return base == Base::num || base == Base::integer || base == Base::u32; }

}  // namespace

// Null after an error, wherever it was reported.
const Constant* Checker::constant(std::uint32_t index) {
  ConstSyntax& c = syntax_.consts[index];
  if (const_visits_[index] == Visit::now) {
    complain(c.name.span, "`" + c.name.text + "` is made of itself",
             "a const is made of numbers, texts and other consts");
    const_visits_[index] = Visit::failed;
    return nullptr;
  }
  if (const_visits_[index] == Visit::no) {
    // Each one that leans on another is a call deeper here.
    if (const_depth_ == kConstsDeep) {
      complain(c.name.span, "consts lean on each other more than 100 deep here", "write the value itself");
      const_visits_[index] = Visit::failed;
      return nullptr;
    }
    ++const_depth_;
    // It may be asked for from within another declaration, whose own error must stay possible.
    const bool outer_failed = failed_;
    const Place outer_place = place_;
    Body* const outer_body = body_;
    const_visits_[index] = Visit::now;
    failed_ = false;
    place_ = Place::constant;
    value(*c.value);
    if (!failed_ && c.value->type != Type::none && !c.value->constant)
      complain(c.value->span, "this is not known when the module is compiled",
               "a const is made of numbers, texts and other consts");
    const bool good = !failed_ && c.value->constant.has_value();
    if (const_visits_[index] == Visit::now) const_visits_[index] = good ? Visit::done : Visit::failed;
    --const_depth_;
    failed_ = outer_failed;
    place_ = outer_place;
    body_ = outer_body;
  }
  return const_visits_[index] == Visit::done ? &*c.value->constant : nullptr;
}

std::optional<double> Checker::known_number(ExprPtr& e) {
  const Place outer = place_;
  place_ = Place::constant;
  value(*e);
  place_ = outer;
  if (failed_ || e->type == Type::none) return std::nullopt;
  if (e->type != Type::num) {
    complain(e->span, "expected a number, and this is " + with_article(e->type));
    return std::nullopt;
  }
  if (!e->constant) {
    complain(e->span, "this is not known when the module is compiled", "use numbers and consts");
    return std::nullopt;
  }
  return e->constant->number;
}

std::optional<std::uint32_t> Checker::known_whole(ExprPtr& e, std::uint32_t low, std::uint32_t high,
                                                  std::string_view what) {
  const std::optional<double> n = known_number(e);
  if (!n) return std::nullopt;
  if (*n != std::floor(*n) || *n < low || *n > high) {
    complain(e->span, std::string(what) + " is a whole number from " + std::to_string(low) + " to " +
                          std::to_string(high));
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*n);
}

std::optional<Slot> Checker::slot(SlotSyntax& s, std::string_view what, std::uint32_t text_max) {
  Slot out;
  out.base = s.base;
  out.optional = s.optional;
  if (s.range != Range::none) {
    if (!is_number(s.base)) {
      complain(s.range_at, "a range is for numbers, and this is a " + std::string(base_word(s.base)),
               s.base == Base::text || s.base == Base::bytes ? "write `max 100` to bound its size" : "");
      return std::nullopt;
    }
    const std::optional<double> low = known_number(s.low);
    const std::optional<double> high = low ? known_number(s.high) : std::nullopt;
    if (!low || !high) return std::nullopt;
    const Span whole = join(s.low->span, s.high->span);
    if (*low > *high) {
      complain(whole, "this range is empty", "write the smaller number first");
      return std::nullopt;
    }
    const double least = s.base == Base::u32 ? 0 : -9007199254740992.0;
    const double most = s.base == Base::u32 ? 4294967295.0 : 9007199254740992.0;
    for (const auto& [e, n] : {std::pair(s.low.get(), *low), std::pair(s.high.get(), *high)}) {
      if (s.base == Base::num || (n == std::floor(n) && n >= least && n <= most)) continue;
      complain(e->span, number_text(n) + " is no " + std::string(base_word(s.base)),
               s.base == Base::u32 ? "a u32 is whole, from 0 to 4294967295"
                                   : "an int is whole, up to 2^53 either way");
      return std::nullopt;
    }
    out.range = s.range;
    out.low = *low;
    out.high = *high;
  }
  if (s.max && s.base != Base::text && s.base != Base::bytes) {
    complain(s.max_at, "`max` is for texts, and this is " + with_article(base_word(s.base)),
             is_number(s.base)      ? "write `in 0..100` to bound a number"
             : s.base == Base::slug ? "a slug has 1 to 64 bytes"
                                    : "");
    return std::nullopt;
  }
  if (s.base == Base::text) out.max = kDefaultTextMax;
  if (s.base == Base::bytes) out.max = kBytesMax;
  if (s.base == Base::slug) out.max = kSlugMax;
  if (s.max) {
    const std::optional<std::uint32_t> max =
        known_whole(s.max, 1, text_max, "the size of " + std::string(what));
    if (!max) return std::nullopt;
    out.max = *max;
  }
  return out;
}

// The value that a state or a column is declared with. A text goes into the module's pool.
std::optional<Value> Checker::first_value(const Name& name, const Slot& slot, Expr& e,
                                          std::string_view what) {
  const Place outer = place_;
  place_ = Place::constant;
  expr(e);
  place_ = outer;
  if (failed_) return std::nullopt;
  const Type type = type_of(slot.base);
  if (e.never) {
    if (!slot.optional)
      complain(e.span, "`" + name.text + "` always has a value",
               "write `?` behind its type to let it have none");
    return std::nullopt;
  }
  if (e.type == Type::none) return std::nullopt;
  if (e.type != type) {
    complain(e.span, "`" + name.text + "` is " + with_article(type) + ", and this is " + with_article(e.type));
    return std::nullopt;
  }
  if (!e.constant) {
    complain(e.span, "this is not known when the module is compiled", "use numbers, texts and consts");
    return std::nullopt;
  }
  Value first = value_of_constant(*e.constant);
  // What would be saturated was not meant.
  Value stored = first;
  if (narrow(slot, stored) != Fault::none || (type == Type::num && stored.num != first.num)) {
    complain(e.span, "the " + std::string(what) + " does not fit `" + describe(slot) + "`");
    return std::nullopt;
  }
  return stored;
}

Value Checker::value_of_constant(const Constant& c) {
  if (c.type == Type::num) return Value::number(c.number);
  if (c.type == Type::boolean) return Value::truth(c.truth);
  return Value::span(module_->text_pool.emplace_back(c.text));
}

// 0, false or the empty text.
std::optional<Value> Checker::usual_value(const Name& name, const Slot& slot) {
  Constant usual;
  usual.type = type_of(slot.base);
  Value stored = value_of_constant(usual);
  if (narrow(slot, stored) == Fault::none && (usual.type != Type::num || stored.num == 0)) return stored;
  if (usual.type == Type::num)
    complain(name.span, "`" + name.text + "` needs a first value",
             "0 is outside its range; write `= " + number_text(slot.low) + "`");
  else
    complain(name.span, "`" + name.text + "` needs a first value",
             "a slug is never empty; write `= \"a\"`, or `slug?` to have none at first");
  return std::nullopt;
}

void Checker::state(StateSyntax& s) {
  State out;
  out.name = s.name.text;
  if (s.slot.base == Base::bytes) {
    complain(s.slot.base_at, "a state cannot be bytes", "use text, or keep bytes in a document");
  }
  const std::optional<Slot> checked = failed_ ? std::nullopt : slot(s.slot, "a state", kStateTextMax);
  if (checked) {
    out.slot = *checked;
    if (s.first)
      out.first = first_value(s.name, out.slot, *s.first, "first value");
    else if (!out.slot.optional)
      out.first = usual_value(s.name, out.slot);
    if (s.was) out.was = s.was->text;
  }
  module_->states.push_back(std::move(out));
}

}  // namespace sluice::vm
