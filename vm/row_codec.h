// Rows as bytes.
//
//   varint shape     which columns the writer knew, and their forms (vm/layout.h)
//   bitmap           lowest bit first; for each column of the shape, in number order, one bit: it has a value; a bool
//                    column has a second bit behind it: the value. Whole bytes, the rest 0
//   columns          in number order, those that have a value and are no bools:
//                    num 8 bytes, lowest first; int and u32 a zigzag varint; text a varint of its length, then its bytes
//
// Source: design module.md 4.3.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "vm/layout.h"
#include "vm/module.h"

namespace sluice::vm {

// One table's rows. Thread: frozen after construction.
class RowCodec {
 public:
  // Life: values of `layout.before` are kept as they are, and so are the texts they point to.
  RowCodec(const Table& table, const TableLayout& layout);

  // A value per declared column; Type::none where it is absent. False: these bytes are no row.
  // Shape: room for the table's columns at `out`. Life: texts point into `record` or the layout.
  bool decode(std::string_view record, Value* out) const;
  // The same for one column, passing over those before it.
  bool decode_column(std::string_view record, std::uint32_t column, Value& out) const;

  // In the present shape. Units: bytes.
  std::size_t encoded_size(const Value* columns) const;
  // Shape: encoded_size() bytes at `out`.
  void encode(const Value* columns, char* out) const;

 private:
  static constexpr std::uint8_t kGone = 255;
  struct Step {
    Form form = Form::num;
    std::uint8_t column = kGone;    // declared; kGone: no longer there
  };
  struct Shape {
    std::vector<Step> steps;
    std::vector<std::uint8_t> unknown;   // declared columns that rows of this shape have not heard of
    std::size_t bitmap_bytes = 0;
  };
  template <class Visit>
  bool walk(const Shape& shape, std::string_view record, Visit visit) const;
  const Shape* take_shape(std::string_view& record) const;

  std::size_t columns_ = 0;
  std::size_t present_ = 0;         // the shape that is written
  std::vector<Shape> shapes_;
  std::vector<Value> before_;       // of declared columns
};

}  // namespace sluice::vm
