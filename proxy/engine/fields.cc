#include "proxy/engine/fields.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <system_error>

#include "proxy/engine/answers.h"
#include "vm/base/number_text.h"
#include "vm/slot.h"

namespace sluice::proxy {
namespace {

constexpr std::string_view kFrom = "from", kCount = "count";

bool is_paging(std::string_view name) { return name == kFrom || name == kCount; }

bool refuse_query(std::span<const Asked> asked, std::string_view what, std::string_view reason, std::string_view name,
                  Errc error, FieldsRefused& why, bool paged) {
  why.error = error;
  why.line.assign(reason).append(" `").append(name).append("`; ").append(what);
  if (asked.empty() && !paged) {
    why.line += " takes no parameters";
    return false;
  }
  why.line += " takes ";
  append_names(why.line, asked, [](const Asked& a) { return a.name; });
  if (paged) why.line += asked.empty() ? "`from` and `count`" : ", and `from` and `count`";
  return false;
}

// A name that is not asked for, or the one that comes twice.
bool refuse_extra(std::span<const Asked> asked, std::span<const Parameter> query, std::string_view what,
                  FieldsRefused& why, bool paged) {
  for (std::size_t i = 0; i < query.size(); ++i) {
    bool known = paged && is_paging(query[i].name);
    for (const Asked& a : asked) known = known || a.name == query[i].name;
    if (!known) return refuse_query(asked, what, "there is no parameter", query[i].name, Errc::query, why, paged);
    for (std::size_t j = 0; j < i; ++j)
      if (query[j].name == query[i].name)
        return refuse_query(asked, what, "given more than once: the parameter", query[i].name, Errc::query, why, paged);
  }
  return true;
}

void encode(std::string& out, const vm::Value& value) {
  switch (value.type) {
    case vm::Type::num: {
      char bytes[sizeof(double)];
      std::memcpy(bytes, &value.num, sizeof bytes);
      out.append(bytes, sizeof bytes);
      break;
    }
    case vm::Type::boolean:
      out.push_back(value.boolean ? 1 : 0);
      break;
    default: {
      char bytes[sizeof value.size];
      std::memcpy(bytes, &value.size, sizeof bytes);
      out.append(bytes, sizeof bytes).append(value.text());
    }
  }
}

}  // namespace

bool read_paging(std::span<const Parameter> query, Paging& paging, FieldsRefused& why) {
  for (const Parameter& p : query) {
    if (!is_paging(p.name)) continue;
    std::uint64_t& into = p.name == kFrom ? paging.from : paging.count;
    const char* const end = p.value.data() + p.value.size();
    const auto [stopped, error] = std::from_chars(p.value.data(), end, into);
    if (stopped != end || (error != std::errc() && error != std::errc::result_out_of_range)) {
      why.error = Errc::query;
      why.line.assign("`").append(p.name).append("` is not a whole number from 0 on");
      return false;
    }
    // More rows than any table has.
    if (error == std::errc::result_out_of_range) into = std::numeric_limits<std::uint64_t>::max();
  }
  return true;
}

bool encode_fields(std::span<const Asked> asked, std::span<const Parameter> query, std::string_view what,
                   std::string& out, FieldsRefused& why, bool paged) {
  // What the query says too much comes first: a misspelt name is told as such, not as the one that is missing.
  if (!refuse_extra(asked, query, what, why, paged)) return false;
  for (const Asked& a : asked) {
    const Parameter* given = nullptr;
    for (const Parameter& p : query)
      if (p.name == a.name) given = &p;
    if (given == nullptr) return refuse_query(asked, what, "missing: the parameter", a.name, Errc::missing_field, why, paged);
    std::optional<vm::Value> value = vm::read_slot(*a.slot, given->value);
    if (!value) {
      why.error = Errc::query;
      why.line.assign("`").append(a.name).append("` is not ").append(vm::with_article(vm::describe(*a.slot)));
      return false;
    }
    if (const vm::Fault fault = vm::narrow(*a.slot, *value); fault != vm::Fault::none) {
      why.fault = fault;
      why.line.assign("`").append(a.name).append("` must be ").append(vm::describe(*a.slot));
      return false;
    }
    encode(out, *value);
  }
  return true;
}

void decode_fields(std::span<const Asked> asked, std::string_view encoded, vm::Value* out) {
  const char* at = encoded.data();
  for (const Asked& a : asked) {
    switch (vm::type_of(a.slot->base)) {
      case vm::Type::num: {
        double number = 0;
        std::memcpy(&number, at, sizeof number);
        at += sizeof number;
        *out++ = vm::Value::number(number);
        break;
      }
      case vm::Type::boolean:
        *out++ = vm::Value::truth(*at++ != 0);
        break;
      default: {
        std::uint32_t size = 0;
        std::memcpy(&size, at, sizeof size);
        at += sizeof size;
        *out++ = vm::Value::span({at, size});
        at += size;
      }
    }
  }
  SLUICE_ASSERT(at == encoded.data() + encoded.size());
}

void query_of(std::span<const Asked> asked, std::string_view encoded, std::vector<std::string>& texts,
              std::vector<Parameter>& query) {
  vm::Value values[kMostFields];
  SLUICE_CHECK(asked.size() <= kMostFields);
  decode_fields(asked, encoded, values);
  texts.assign(asked.size(), {});
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (values[i].type == vm::Type::num) append_number(texts[i], values[i].num);
    else if (values[i].type == vm::Type::boolean) texts[i] = values[i].boolean ? "true" : "false";
    else texts[i] = values[i].text();
    query.push_back({asked[i].name, texts[i]});
  }
}

}  // namespace sluice::proxy
