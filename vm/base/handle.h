// An owning pointer to something that a C library frees.
#pragma once
#include <memory>

namespace sluice {

template <auto F>
struct Free {
  template <class T>
  void operator()(T* p) const noexcept { F(p); }
};

template <class T, auto F>
using Handle = std::unique_ptr<T, Free<F>>;

}  // namespace sluice
