// A value or the reason there is none: `std::expected`'s member names for compilers that lack it.
#pragma once
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

#include "vm/base/check.h"
#include "vm/base/errc.h"

namespace sluice {

// Shape: `detail` is an errno, a status or 0; `what` is a string literal, never owned. Never allocates.
struct Error {
  Errc code = Errc::none;
  int detail = 0;
  const char* what = "";
};

inline Error fail(Errc code, const char* what, int detail = 0) { return Error{code, detail, what}; }

// E is Error on hot paths and std::string where a person reads a sentence at start or reload.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = E;

  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) requires(!std::is_same_v<T, E>) : held_(std::in_place_index<1>, std::move(error)) {}
  // For a T that is an E: which of them it is has to be said.
  static Result failure(E error) { return Result(std::in_place_index<1>, std::move(error)); }

  bool has_value() const { return held_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { SLUICE_ASSERT(has_value()); return *std::get_if<0>(&held_); }
  const T& value() const& { SLUICE_ASSERT(has_value()); return *std::get_if<0>(&held_); }
  T&& value() && { SLUICE_ASSERT(has_value()); return std::move(*std::get_if<0>(&held_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  E& error() & { SLUICE_ASSERT(!has_value()); return *std::get_if<1>(&held_); }
  const E& error() const& { SLUICE_ASSERT(!has_value()); return *std::get_if<1>(&held_); }
  E&& error() && { SLUICE_ASSERT(!has_value()); return std::move(*std::get_if<1>(&held_)); }

 private:
  Result(std::in_place_index_t<1> which, E error) : held_(which, std::move(error)) {}
  std::variant<T, E> held_;
};

template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Result() = default;
  Result(E error) : error_(std::move(error)), ok_(false) {}

  bool has_value() const { return ok_; }
  explicit operator bool() const { return ok_; }
  void value() const { SLUICE_ASSERT(ok_); }
  E& error() & { SLUICE_ASSERT(!ok_); return error_; }
  const E& error() const& { SLUICE_ASSERT(!ok_); return error_; }
  E&& error() && { SLUICE_ASSERT(!ok_); return std::move(error_); }

 private:
  E error_{};
  bool ok_ = true;
};

}  // namespace sluice
