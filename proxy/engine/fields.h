// The short fields of a message and the parameters of a view, from the query into an event and from there to the machine.
//
// Encoding (Event::fields), one after the other in declared order, each already narrowed:
//   number  8 bytes, the double as it lies in memory
//   bool    1 byte
//   text    u32 length, then its bytes
// It stays inside one process.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine.h"
#include "proxy/engine/served.h"
#include "vm/module.h"
#include "vm/value.h"

namespace sluice::proxy {

inline constexpr std::size_t kMostFields = 16;   // of a message; a view's parameters are no more

// Why a query was not taken. Shape: `fault` only with `error` none: the value is of its type but outside what is allowed.
struct FieldsRefused {
  Errc error = Errc::none;                       // query, missing_field, invalid
  vm::Fault fault = vm::Fault::none;
  std::string line;
};

// Which rows of a table view are asked for.
struct Paging {
  std::uint64_t from = 0, count = vm::kPageMax;
};
// Takes `from` and `count` out of a query: whole numbers from 0 on. False: `why` says it.
bool read_paging(std::span<const Parameter> query, Paging& paging, FieldsRefused& why);

// Appends to `out`. `paged`: the query may have `from` and `count` besides, which are read_paging()'s. `what` names the asker in a refusal ("`take`"). False: `why` says it; `out` holds nothing of use.
bool encode_fields(std::span<const Asked> asked, std::span<const Parameter> query, std::string_view what,
                   std::string& out, FieldsRefused& why, bool paged = false);

// Life: texts point into `encoded`.
void decode_fields(std::span<const Asked> asked, std::string_view encoded, vm::Value* out);

// The query again, as it could have been sent: to resolve an event against another module.
// Life: names point into `asked`, values into `texts`.
void query_of(std::span<const Asked> asked, std::string_view encoded, std::vector<std::string>& texts,
              std::vector<Parameter>& query);

}  // namespace sluice::proxy
