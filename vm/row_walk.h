// Over all rows of a table in the order of their key, a chunk at a time: for upgrades and for checking a store.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "vm/key_codec.h"
#include "vm/records.h"
#include "vm/row_codec.h"
#include "vm/tables.h"

namespace sluice::vm {

// The least key above all that begin with `prefix`. Shape: not all bytes are ff.
std::string behind(std::string_view prefix);
// The least key above this one.
inline std::string just_above(std::string_view key) { return std::string(key) + '\0'; }

class RecordWalk {
 public:
  // All records whose keys begin with `prefix`, those after `after` when it is not empty.
  RecordWalk(Records& records, std::string_view prefix, std::string_view after = {});
  // nullptr at the end. Life: until the next call, or as Records says.
  const Entry* next();
  // Before what was lent goes, as with a commit: reads on behind the last one given.
  void pause();

 private:
  Records& records_;
  std::string low_, high_;
  std::array<Entry, 256> chunk_;
  std::size_t size_ = 0, at_ = 0;
  bool more_ = true;
};

// "item["tea"]": a row as people call it.
std::string row_name(const Table& table, const Row& row);

}  // namespace sluice::vm
