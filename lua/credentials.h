// Who may come in: bearer tokens and Basic credentials, compared in a time that says nothing about them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lua/state.h"

namespace sluice::lua {

struct Runtime;

// A set of texts that strangers try to guess.
// Thread: frozen once filled, then any.
class Secrets {
 public:
  Secrets();
  void add(std::string_view secret);
  // How long it takes depends on how many there are and on the length of `shown`: which texts are looked at follows from a hash
  // whose seed nobody knows, and those are compared to their last byte.
  bool has(std::string_view shown) const;

 private:
  struct Entry {
    std::uint64_t hash;
    std::string text;
  };
  const std::uint64_t seed_;
  std::vector<Entry> entries_;                   // by hash
};

struct Credentials {
  Secrets bearer, basic;
  // Is the value of an Authorization field one of them? Source: RFC 9110, 11.4: the scheme in any case, spaces, one word.
  bool accept(std::string_view authorization) const;
};

// core.credentials({tokens}, {words of Basic}): a function that says whether a request has one of them.
int credentials(lua_State* L);

}  // namespace sluice::lua
