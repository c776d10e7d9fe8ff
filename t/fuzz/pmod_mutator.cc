// Changes module files behind their container: a section's bytes, a word of code, a whole section of another file; sizes
// and checksum are made right again, so that what is changed is read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "t/vm/container.h"
#include "vm/opcode.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size, const std::uint8_t* other,
                                                 std::size_t other_size, std::uint8_t* out, std::size_t max_size, unsigned seed);

using namespace sluice::vm;

namespace {
constexpr std::uint32_t kCode = static_cast<std::uint32_t>(Section::code);

struct Dice {
  std::uint64_t state;
  std::uint32_t roll(std::uint32_t sides) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 33) % sides;
  }
};

std::string_view view(const std::uint8_t* data, std::size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// Zero when it does not fit.
std::size_t give(const SectionList& sections, std::uint8_t* out, std::size_t max_size) {
  const std::string file = joined(sections);
  if (file.size() > max_size) return 0;
  std::memcpy(out, file.data(), file.size());
  return file.size();
}

void mutate_bytes(std::string& bytes, Dice& dice) {
  const std::size_t before = bytes.size();
  bytes.resize(before + 1 + dice.roll(16));
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), before, bytes.size()));
}

// One word becomes another one, or one of its operands something near or small.
void mutate_code(std::string& code, Dice& dice) {
  const auto words = static_cast<std::uint32_t>(code.size() / sizeof(Word));
  if (words == 0) return;
  char* const at = code.data() + sizeof(Word) * dice.roll(words);
  const std::uint32_t part = dice.roll(4);
  switch (dice.roll(6)) {
    case 0: std::memcpy(at, code.data() + sizeof(Word) * dice.roll(words), sizeof(Word)); break;
    case 1: at[part] = static_cast<char>(at[part] + (dice.roll(2) == 0 ? 1 : -1)); break;
    case 2: at[1 + dice.roll(3)] = static_cast<char>(dice.roll(12)); break;
    case 3: {
      unsigned op = 0;
      while (mnemonic(static_cast<Op>(op = dice.roll(0x98))).empty()) {}
      at[0] = static_cast<char>(op);
      break;
    }
    case 4: std::memset(at, 0, sizeof(Word)); break;
    default: {
      char* const other = code.data() + sizeof(Word) * dice.roll(words);
      std::swap_ranges(at, at + sizeof(Word), other);
      break;
    }
  }
}
}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  Dice dice{seed};
  SectionList sections = sections_of(view(data, size));
  if (sections.empty() || dice.roll(50) == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (std::uint32_t times = 1 + dice.roll(3); times > 0; --times) {
    auto& [number, bytes] = sections[dice.roll(static_cast<std::uint32_t>(sections.size()))];
    if (number == kCode && dice.roll(8) != 0) mutate_code(bytes, dice);
    else if (dice.roll(3) != 0) mutate_bytes(bytes, dice);
    else
      for (auto& [other, code] : sections)
        if (other == kCode) mutate_code(code, dice);
  }
  const std::size_t made = give(sections, data, max_size);
  return made != 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}

// Sections of one file, some of them the other's.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size, const std::uint8_t* other,
                                                 std::size_t other_size, std::uint8_t* out, std::size_t max_size, unsigned seed) {
  Dice dice{seed};
  SectionList sections = sections_of(view(one, one_size));
  const SectionList others = sections_of(view(other, other_size));
  if (sections.empty() || others.empty()) return 0;
  for (auto& [number, bytes] : sections)
    for (const auto& [theirs, their_bytes] : others)
      if (number == theirs && dice.roll(3) == 0) bytes = their_bytes;
  return give(sections, out, max_size);
}
