#include "vm/row_walk.h"

#include "vm/base/check.h"
#include "vm/plan_base.h"

namespace sluice::vm {

std::string behind(std::string_view prefix) {
  std::string out(prefix);
  while (!out.empty() && out.back() == '\xff') out.pop_back();
  SLUICE_CHECK(!out.empty());
  out.back() = static_cast<char>(static_cast<unsigned char>(out.back()) + 1);
  return out;
}

RecordWalk::RecordWalk(Records& records, std::string_view prefix, std::string_view after)
    : records_(records), low_(after.empty() ? std::string(prefix) : just_above(after)), high_(behind(prefix)) {}

const Entry* RecordWalk::next() {
  if (at_ == size_) {
    if (!more_) return nullptr;
    if (size_ > 0) low_ = just_above(chunk_[size_ - 1].key);
    size_ = records_.scan({low_, high_, false}, chunk_);
    more_ = size_ == chunk_.size();
    at_ = 0;
    if (size_ == 0) return nullptr;
  }
  return &chunk_[at_++];
}

void RecordWalk::pause() {
  if (at_ > 0) low_ = just_above(chunk_[at_ - 1].key);
  more_ = more_ || at_ < size_;
  at_ = size_ = 0;
}

std::string row_name(const Table& table, const Row& row) {
  std::string out = table.name + "[";
  for (std::size_t i = 0; i < table.key.size(); ++i) out += (i == 0 ? "" : ", ") + written(row.columns[table.key[i]]);
  return out + "]";
}

}  // namespace sluice::vm
