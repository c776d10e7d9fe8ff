// Loops over rows.
//
// Where the loop's body writes to tables its keys are taken when it begins, so that the body may change what it goes
// over. Else the loop streams: it asks for records in chunks, and keeps one key.
#include <cstring>
#include <new>

#include "vm/base/check.h"
#include "vm/machine_impl.h"

namespace sluice::vm {
namespace {
// `pc`: of the NEXT behind an OPEN. Whether its row never gets into another register.
bool row_stays(const Function& function, std::uint32_t pc) {
  const unsigned row = a_of(function.code[pc]);
  const std::uint32_t end = x_of(function.code[pc + 1]);
  for (std::uint32_t i = pc + 2; i < end; ++i)
    if (op_of(function.code[i]) == Op::move && b_of(function.code[i]) == row) return false;
  return true;
}

template <class T>
T* take(Arena& arena, std::size_t count, std::size_t reserved) {
  constexpr std::size_t align = alignof(T);
  char* const at = arena.take(count * sizeof(T) + align - 1, reserved);
  if (at == nullptr) return nullptr;
  const std::size_t over = reinterpret_cast<std::uintptr_t>(at) % align;
  return reinterpret_cast<T*>(over == 0 ? at : at + (align - over));
}
}  // namespace

Fault Machine::Impl::open(const Scan& scan, const Value* window, const Frame& frame, std::uint32_t pc, Value& to) {
  use->reserved = reserved();
  const std::size_t before = arena.used();
  KeyRange range;
  if (const Fault fault = tables->range(*use, scan, window, range); fault != Fault::none) return fault;
  to = Value();
  to.type = Type::cursor;
  to.handle = cursors;
  if (paged && depth == 0 && op_of(frame.code[pc]) == Op::ret) {
    page_scan = &scan;
    page_window = window;
    page_range = range;
    return Fault::none;
  }
  SLUICE_CHECK(cursors < kCursors);
  Cursor& c = cursor[cursors++];
  c.scan = &scan;
  c.left = scan.limit;
  c.reuses = row_stays(*frame.function, pc);
  c.before = before;
  c.key = nullptr;
  c.key_room = 0;
  c.taken = nullptr;
  c.at = 0;
  if (scan.streams) {
    c.steps.start(range);
  } else if (const Fault fault = take_keys(c, range); fault != Fault::none) {
    return fault;
  }
  c.behind = arena.used();
  return Fault::none;
}

Fault Machine::Impl::take_keys(Cursor& c, const KeyRange& range) {
  Keys* last = nullptr;
  Steps& steps = c.steps;
  steps.start(range);
  Entry chunk[Steps::kChunk];
  while (c.left != 0) {
    std::size_t count = 0;
    while (count < Steps::kChunk && c.left != 0) {
      const Entry* const entry = steps.next(use->records, c.left);
      if (entry == nullptr) {
        c.left = 0;
        break;
      }
      chunk[count++] = *entry;
      --c.left;
    }
    if (count == 0) break;
    Keys* const keys = take<Keys>(arena, 1, use->reserved);
    auto* const list = keys == nullptr ? nullptr : take<std::string_view>(arena, count, use->reserved);
    if (list == nullptr) return Fault::limit;
    new (keys) Keys{nullptr, count, list};
    for (std::size_t i = 0; i < count; ++i) {
      new (list + i) std::string_view(tables->row_of(*use, *c.scan, chunk[i]));
      if (list[i].empty() && !arena.has_room(KeyBuffer::kSize + use->reserved)) return Fault::limit;
    }
    if (last == nullptr) {
      c.taken = keys;
    } else {
      last->next = keys;
    }
    last = keys;
  }
  return Fault::none;
}

Fault Machine::Impl::next(Cursor& c, Value& to, bool& there) {
  if (c.scan->streams) return next_streaming(c, to, there);
  while (c.taken != nullptr) {
    if (c.at == c.taken->count) {
      c.taken = c.taken->next;
      c.at = 0;
      continue;
    }
    const std::string_view key = c.taken->keys[c.at++];
    // Deleted meanwhile, or the store is damaged there.
    if (key.empty() || load(c.scan->table, key) == nullptr) continue;
    to = Value::span(key, Type::row);
    return Fault::none;
  }
  there = false;
  close(c);
  return Fault::none;
}

Fault Machine::Impl::next_streaming(Cursor& c, Value& to, bool& there) {
  const std::uint32_t table = c.scan->table;
  use->reserved = reserved();
  while (c.left != 0) {
    const Entry* const entry = c.steps.next(use->records, c.left);
    if (entry == nullptr) break;
    --c.left;
    if (c.scan->order == 0) {
      RowCache::One& one = rows.place(table, entry->key);
      if (!tables->decode(table, entry->value, one.row)) continue;
      rows.keep(one);
      to = Value::span(entry->key, Type::row);
      return Fault::none;
    }
    const std::size_t before = arena.used();
    std::string_view key = tables->row_of(*use, *c.scan, *entry);
    if (key.empty()) {
      if (!arena.has_room(KeyBuffer::kSize + use->reserved)) return Fault::limit;
      continue;
    }
    if (c.reuses && key.size() <= c.key_room) {
      std::memcpy(c.key, key.data(), key.size());
      arena.give_back_to(before);
      key = {c.key, key.size()};
    } else {
      c.key = const_cast<char*>(key.data());      // the arena's
      c.key_room = key.size();
      if (c.behind == before) c.behind = arena.used();
    }
    if (load(table, key) == nullptr) continue;
    to = Value::span(key, Type::row);
    return Fault::none;
  }
  there = false;
  close(c);
  return Fault::none;
}

// Whether a loop may put its next key there, or gives that memory back at its end: then the key is no row for longer.
bool Machine::Impl::is_loops(const char* key) const {
  for (std::uint32_t i = 0; i < cursors; ++i)
    if (cursor[i].reuses && (key == cursor[i].key || arena.is_between(key, cursor[i].before, cursor[i].behind))) return true;
  return false;
}

// Loops nest, so the one that ends was opened last.
void Machine::Impl::close(Cursor& c) {
  --cursors;
  // What it took goes back when the body left nothing behind it.
  if (!c.reuses || arena.used() != c.behind) return;
  arena.give_back_to(c.before);
  rows.forget(arena.top(), arena.top() + (c.behind - c.before));
}

}  // namespace sluice::vm
