#include "vm/row_codec.h"

#include <bit>
#include <cstring>

#include "vm/varint.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {
static_assert(std::endian::native == std::endian::little, "doubles are stored as they lie in memory");

constexpr std::int64_t kWholeMax = std::int64_t{1} << 53;   // either way; beyond it a double is not the number that was read

bool bit(std::string_view bitmap, std::size_t i) { return (static_cast<unsigned char>(bitmap[i / 8]) >> (i % 8) & 1) != 0; }
void set_bit(char* bitmap, std::size_t i) { bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | 1 << (i % 8)); }
std::uint64_t whole(const Value& value) { return zigzag(static_cast<std::int64_t>(value.num)); }
}  // namespace

RowCodec::RowCodec(const Table& table, const TableLayout& layout) : columns_(table.columns.size()), present_(layout.shape) {
  for (const vm::Shape& one : layout.shapes) {
    Shape shape;
    std::vector<bool> known(columns_, false);
    std::size_t bits = 0;
    for (const vm::Shape::At& at : one.columns) {
      Step step{at.form, kGone};
      for (std::size_t c = 0; c < columns_; ++c)
        if (layout.columns[c] == at.column) step.column = static_cast<std::uint8_t>(c);
      if (step.column != kGone) known[step.column] = true;
      bits += at.form == Form::boolean ? 2 : 1;
      shape.steps.push_back(step);
    }
    for (std::size_t c = 0; c < columns_; ++c)
      if (!known[c]) shape.unknown.push_back(static_cast<std::uint8_t>(c));
    shape.bitmap_bytes = (bits + 7) / 8;
    shapes_.push_back(std::move(shape));
  }
  for (std::size_t c = 0; c < columns_; ++c) before_.push_back(layout.before[c] ? *layout.before[c] : Value());
}

const RowCodec::Shape* RowCodec::take_shape(std::string_view& record) const {
  std::uint64_t number = 0;
  if (!take_varint(record, number) || number >= shapes_.size()) return nullptr;
  const Shape& shape = shapes_[static_cast<std::size_t>(number)];
  return record.size() < shape.bitmap_bytes ? nullptr : &shape;
}

// Calls visit(declared column or kGone, value) for each column of the shape until it returns false.
// False: the record ends too early, does not end with its last column, or holds a number that no row was ever given.
template <class Visit>
bool RowCodec::walk(const Shape& shape, std::string_view record, Visit visit) const {
  const std::string_view bitmap = record.substr(0, shape.bitmap_bytes);
  record.remove_prefix(shape.bitmap_bytes);
  std::size_t at = 0;
  for (const Step& step : shape.steps) {
    Value value;
    const bool there = bit(bitmap, at++);
    switch (step.form) {
      case Form::boolean: {
        const bool truth = bit(bitmap, at++);
        if (there) value = Value::truth(truth);
        break;
      }
      case Form::num: {
        if (!there) break;
        double n;
        if (record.size() < sizeof n) return false;
        std::memcpy(&n, record.data(), sizeof n);
        if (!is_number(n)) return false;
        record.remove_prefix(sizeof n);
        value = Value::number(n);
        break;
      }
      case Form::whole: {
        std::uint64_t n = 0;
        if (!there) break;
        if (!take_varint(record, n)) return false;
        const std::int64_t i = unzigzag(n);
        if (i > kWholeMax || i < -kWholeMax) return false;
        value = Value::number(static_cast<double>(i));
        break;
      }
      case Form::text: {
        std::uint64_t size = 0;
        if (!there) break;
        if (!take_varint(record, size) || size > record.size()) return false;
        value = Value::span(record.substr(0, static_cast<std::size_t>(size)));
        record.remove_prefix(static_cast<std::size_t>(size));
        break;
      }
    }
    if (!visit(step.column, value)) return true;
  }
  return record.empty();
}

bool RowCodec::decode(std::string_view record, Value* out) const {
  const Shape* const shape = take_shape(record);
  if (shape == nullptr) return false;
  for (const std::uint8_t c : shape->unknown) out[c] = before_[c];
  return walk(*shape, record, [out](std::uint8_t column, const Value& value) {
    if (column != kGone) out[column] = value;
    return true;
  });
}

bool RowCodec::decode_column(std::string_view record, std::uint32_t column, Value& out) const {
  const Shape* const shape = take_shape(record);
  if (shape == nullptr) return false;
  out = before_[column];
  return walk(*shape, record, [&out, column](std::uint8_t at, const Value& value) {
    if (at != column) return true;
    out = value;
    return false;
  });
}

std::size_t RowCodec::encoded_size(const Value* columns) const {
  const Shape& shape = shapes_[present_];
  std::size_t size = varint_size(present_) + shape.bitmap_bytes;
  for (const Step& step : shape.steps) {
    const Value& value = columns[step.column];
    if (value.type == Type::none) continue;
    switch (step.form) {
      case Form::boolean: break;
      case Form::num: size += sizeof(double); break;
      case Form::whole: size += varint_size(whole(value)); break;
      case Form::text: size += varint_size(value.size) + value.size; break;
    }
  }
  return size;
}

void RowCodec::encode(const Value* columns, char* out) const {
  const Shape& shape = shapes_[present_];
  out += put_varint(out, present_);
  char* const bitmap = out;
  std::memset(bitmap, 0, shape.bitmap_bytes);
  out += shape.bitmap_bytes;
  std::size_t at = 0;
  for (const Step& step : shape.steps) {
    const Value& value = columns[step.column];
    const bool there = value.type != Type::none;
    if (there) set_bit(bitmap, at);
    ++at;
    switch (step.form) {
      case Form::boolean:
        if (there && value.boolean) set_bit(bitmap, at);
        ++at;
        break;
      case Form::num:
        if (!there) break;
        std::memcpy(out, &value.num, sizeof value.num);
        out += sizeof value.num;
        break;
      case Form::whole:
        if (there) out += put_varint(out, whole(value));
        break;
      case Form::text:
        if (!there) break;
        out += put_varint(out, value.size);
        if (value.size != 0) std::memcpy(out, value.data, value.size);
        out += value.size;
        break;
    }
  }
}

}  // namespace sluice::vm
