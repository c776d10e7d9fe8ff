// The container of a module file taken apart and put together, for tests that break what is inside.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/base/hash.h"
#include "vm/wire.h"

namespace sluice::vm {

using SectionList = std::vector<std::pair<std::uint32_t, std::string>>;

// The same bytes with a size and checksum that fit, or no change would ever get past the header.
inline std::string sealed(std::string_view bytes) {
  std::string file(bytes);
  if (file.size() < kHeaderBytes) return file;
  const auto put = [&](std::size_t at, std::uint32_t n) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(n >> (8 * i));
  };
  put(8, static_cast<std::uint32_t>(file.size()));
  put(16, crc32c(std::string_view(file).substr(kHeaderBytes)));
  return file;
}

// Empty when the bytes are no container.
inline SectionList sections_of(std::string_view file) {
  SectionList sections;
  if (file.size() < kHeaderBytes || file.substr(0, 4) != kMagic) return sections;
  const std::uint32_t count = Reader(file.substr(12, 4)).u32();
  if (count > kSections || file.size() < kHeaderBytes + kEntryBytes * count) return sections;
  Reader list(file.substr(kHeaderBytes, kEntryBytes * count));
  while (list.left() > 0) {
    const std::uint32_t number = list.u32(), at = list.u32(), size = list.u32();
    if (at > file.size() || size > file.size() - at) return {};
    sections.emplace_back(number, file.substr(at, size));
  }
  return sections;
}

inline std::string joined(const SectionList& sections) {
  std::string out(kMagic);
  Writer w(out);
  w.u16(kFormat);
  w.u16(0);
  w.u32(0);
  w.u32(static_cast<std::uint32_t>(sections.size()));
  out.append(kHeaderBytes - out.size(), '\0');
  std::size_t offset = kHeaderBytes + kEntryBytes * sections.size();
  for (const auto& [number, bytes] : sections) {
    w.u32(number);
    w.u32(static_cast<std::uint32_t>(offset));
    w.u32(static_cast<std::uint32_t>(bytes.size()));
    offset += bytes.size();
  }
  for (const auto& [number, bytes] : sections) out += bytes;
  return sealed(out);
}

// The same file with section `number` replaced, put in, or taken out.
inline std::string with_section(std::string_view file, std::uint32_t number, std::optional<std::string> bytes) {
  SectionList sections = sections_of(file);
  std::erase_if(sections, [&](const auto& one) { return one.first == number; });
  if (bytes) sections.emplace_back(number, std::move(*bytes));
  std::sort(sections.begin(), sections.end());
  return joined(sections);
}

}  // namespace sluice::vm
