// How a store's outcomes read over HTTP: status, name and one plain line.
// Source: design http.md, "Errors"; module.md 1.13.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/event.h"
#include "vm/base/result.h"
#include "vm/machine.h"
#include "vm/value.h"

namespace sluice::proxy {

// Units: documents up to this many bytes are copied into the answer; larger ones are lent.
inline constexpr std::size_t kCopyMax = 16 * 1024;

// `line` without its line feed.
void refuse(Answer& answer, std::uint16_t status, Errc error, std::string_view line);

// `words`: the module's own, answered unchanged; empty: a line of ours. On /objects (`object`) some faults have other
// statuses, and a conflict carries `present`, the revision that is there (0: none).
void answer_fault(Answer& answer, vm::Fault fault, std::string_view words, bool object = false,
                  std::uint64_t present = 0);

void answer_conflict(Answer& answer, std::uint64_t present);
void answer_no_value(Answer& answer, std::string_view view);
// A store that could not save or read: full, storage, durability_unknown, stopped, damaged.
void answer_store_error(Answer& answer, Errc error);
// The event was stored, and what it replied cannot be read back. The revision stays in the answer.
void answer_unreadable(Answer& answer, Errc error);

inline ContentType content_type(vm::ContentType type) {
  return type == vm::ContentType::json ? ContentType::json
         : type == vm::ContentType::text ? ContentType::text
                                         : ContentType::octets;
}

// "`a`, `b` and 7 more": at most `kNamesTold` of them.
inline constexpr std::size_t kNamesTold = 16;
template <class List, class NameOf>
void append_names(std::string& out, const List& list, NameOf name_of) {
  std::size_t told = 0;
  for (const auto& entry : list) {
    if (told == kNamesTold) {
      out.append(" and ").append(std::to_string(list.size() - told)).append(" more");
      return;
    }
    if (told++ > 0) out += ", ";
    out.append("`").append(name_of(entry)).append("`");
  }
}

}  // namespace sluice::proxy
