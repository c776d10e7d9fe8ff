#include "vm/format.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "t/vm/assembler.h"
#include "vm/base/hash.h"
#include "vm/wire.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
Assembler everything() {
  Assembler a;
  a.module.version = 300;
  a.number(0.5);
  a.text("h\xc3\xa9");
  a.state("hits", ranged(Base::integer, Range::in, 0, 100), Value::number(3));
  a.state("lamp", slot(Base::boolean), Value::truth(true));
  a.state("level", ranged(Base::num, Range::clamp, 0, 1), Value::number(0.5));
  a.state("motto", slot(Base::text, 40), Value::span("be kind"));
  a.state("winner", maybe(slot(Base::slug)));
  a.documents(DocumentKind::json, 5000);
  const unsigned plus = a.input("plus", InputKind::key);
  const unsigned say = a.input("say", InputKind::text, 40);
  a.message("take", {{"n", ranged(Base::u32, Range::in, 1, 9)}, {"who", slot(Base::slug)}, {"body", slot(Base::bytes, 70000)}});
  a.message("show", {}, true);
  a.function("twice", "N", 'N', "", {word(Op::add, 0, 0, 0), word(Op::ret, 0)});
  a.handler(event_of(plus), "", {word(Op::done)});
  a.handler(event_of(plus, true), "", {word(Op::done)});
  a.handler(event_of(say), "T", {word_x(Op::field, 0, 0), word_x(Op::sets, 0, 3), word(Op::done)});
  a.view("twice", {{"n", slot(Base::num)}, {"t", slot(Base::text, 9)}}, Type::num, "NT", {word(Op::call, 0, 0, 0), word(Op::ret, 0)});
  a.module.lines = {{1, 1}, {}, {7}, {9, 9, 8}, {70000, 2}};
  return a;
}

// A file with one thing changed and its checksum and size made right again.
std::string sealed(std::string file) {
  const auto put = [&](std::size_t at, std::uint32_t n) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(n >> (8 * i));
  };
  put(8, static_cast<std::uint32_t>(file.size()));
  put(16, crc32c(std::string_view(file).substr(kHeaderBytes)));
  return file;
}
// The same file with section `number` replaced, or taken out.
std::string with_section(const std::string& file, std::uint32_t number, std::optional<std::string> bytes) {
  Reader head(std::string_view(file).substr(12, 4));
  std::vector<std::pair<std::uint32_t, std::string>> sections;
  Reader list(std::string_view(file).substr(kHeaderBytes, kEntryBytes * head.u32()));
  bool there = false;
  while (list.left() > 0) {
    const std::uint32_t n = list.u32(), at = list.u32(), size = list.u32();
    if (n == number) {
      there = true;
      if (bytes) sections.emplace_back(n, *bytes);
    } else {
      sections.emplace_back(n, file.substr(at, size));
    }
  }
  if (!there && bytes) sections.emplace_back(number, *bytes);
  std::sort(sections.begin(), sections.end());
  std::string out = file.substr(0, 12);
  Writer w(out);
  w.count(0);
  out.resize(12);
  w.u32(static_cast<std::uint32_t>(sections.size()));
  w.u32(0);
  out.append(12, '\0');
  std::size_t offset = kHeaderBytes + kEntryBytes * sections.size();
  for (const auto& [n, content] : sections) {
    w.u32(n);
    w.u32(static_cast<std::uint32_t>(offset));
    w.u32(static_cast<std::uint32_t>(content.size()));
    offset += content.size();
  }
  for (const auto& [n, content] : sections) out += content;
  return sealed(std::move(out));
}
std::string why(const std::string& file) {
  auto module = load(file);
  return module ? std::string() : module.error();
}
}  // namespace

TEST_CASE("a module comes back from its file as it was, and its file from the module") {
  const Assembler a = everything();
  const auto m = a.build();
  CHECK(m->name == "sample");
  CHECK(m->version == 300);
  CHECK(m->numbers == a.module.numbers);
  CHECK(m->texts == a.module.texts);
  REQUIRE(m->states.size() == 5);
  CHECK(m->states[0].slot == a.module.states[0].slot);
  CHECK(m->states[0].first->num == 3);
  CHECK(m->states[1].first->boolean);
  CHECK(m->states[3].first->text() == "be kind");
  CHECK(!m->states[4].first);
  CHECK(m->documents.kind == DocumentKind::json);
  CHECK(m->documents.max == 5000);
  REQUIRE(m->inputs.size() == 4);
  CHECK(m->inputs[2].fields[2].slot == a.module.inputs[2].fields[2].slot);
  CHECK(m->inputs[3].keyed);
  CHECK(m->functions[0].name == "fn twice");
  CHECK(m->functions[2].name == "on plus up");
  CHECK(m->functions[3].name == "on say");
  CHECK(m->lines == a.module.lines);
  CHECK(m->code_hash == xxh64(*encode(a.module)));
}

TEST_CASE("a file cut anywhere, or with any byte changed, is refused") {
  const std::string file = *encode(everything().module);
  for (std::size_t n = 0; n < file.size(); ++n) CHECK(!load(file.substr(0, n)));
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string other = file;
    other[i] = static_cast<char>(other[i] ^ 0x10);
    CHECK(!load(other));
  }
  CHECK(why(file + "x") == "module: is not as long as it says");
}

TEST_CASE("the container says in one sentence what is wrong with it") {
  const std::string file = *encode(everything().module);
  const auto changed = [&](std::size_t at, char to, bool seal = true) {
    std::string other = file;
    other[at] = to;
    return why(seal ? sealed(other) : other);
  };
  CHECK(why("") == "module: is not a module file");
  CHECK(changed(0, 'Q') == "module: is not a module file");
  CHECK(changed(4, 2) == "module: has format 2, and this version reads format 1");
  CHECK(changed(6, 1) == "module: has flags that this version does not know");
  CHECK(changed(file.size() - 1, 1, false) == "module: is damaged: its checksum does not match");
  CHECK(changed(21, 1) == "module: has a header that this version does not know");
  CHECK(changed(12, 100) == "module: has more sections than there are");
  CHECK(changed(12, 9) == "module: section 1 (module) is not where the one before it ends");
  CHECK(changed(32, 13) == "module: has a section 13, which there is not");
  CHECK(changed(32 + 12, 1) == "module: has sections out of order");
  CHECK(why(sealed(file + "x")) == "module: goes on behind its last section");
  CHECK(why(sealed(file.substr(0, 40))) == "module: ends within its list of sections");
  CHECK(why(with_section(file, 5, std::nullopt)) == "module: section 5 (documents) is missing");
  std::string large = file;
  large.resize(kFileMax);
  CHECK(why(large) == "module: is too large: a file has less than 131072 bytes");
}

TEST_CASE("every section is well formed, used up, and written in its one form") {
  const std::string file = *encode(everything().module);
  for (std::uint32_t number = 1; number <= kSections; ++number) {
    if (number == 11) continue;
    const std::string broken = why(with_section(file, number, std::string()));
    CHECK_MESSAGE(!broken.empty(), number);
  }
  using namespace std::string_literals;
  CHECK(why(with_section(file, 5, "\x03\x88\x27x"s)) == "module: section 5 (documents) has bytes left over");
  CHECK(why(with_section(file, 5, "\x04\x88\x27"s)) == "module: section 5 (documents) is not well formed");
  CHECK(why(with_section(file, 5, "\x03\x88\xa7\x00"s)) == "module: section 5 (documents) is not well formed");
  CHECK(why(with_section(file, 5, "\x03\xff\xff\xff\xff\x1f"s)) == "module: section 5 (documents) is not well formed");
  CHECK(why(with_section(file, 2, "\xff\xff\xff\xff\x0f"s)) == "module: section 2 (constants) is not well formed");
  CHECK(why(with_section(file, 3, "\x01\x01" "a\x07\x00\x00"s)) == "module: section 3 (states) is not well formed");
  CHECK(why(with_section(file, 3, "\x01\x01" "a\x03\x00\x01\x02"s)) == "module: section 3 (states) is not well formed");
  CHECK(why(with_section(file, 12, std::string(5, '\0'))) == "module: section 12 (lines) is not well formed");
  CHECK(why(with_section(file, 12, "\x02\x01\x02\x01\x00\x00\x00\x00\x00"s)) == "module: section 12 (lines) is not well formed");
}

TEST_CASE("a module in memory that no file could be is not written") {
  Assembler parameters = everything();
  parameters.module.functions[0].parameters = {Type::text};
  CHECK(parameters.refusal() == "module: fn twice: parameters are not its first registers");
  parameters.module.functions[0].parameters = {Type::num, Type::num};
  CHECK(parameters.refusal() == "module: fn twice: has more parameters than registers");
  Assembler first = everything();
  first.module.states[0].first = Value::truth(true);
  CHECK(first.refusal() == "module: state `hits`: its first value is of another type");
  Assembler lines = everything();
  lines.module.lines.pop_back();
  CHECK(lines.refusal() == "module: lines are not one list per function");
  lines = everything();
  lines.module.lines[0].pop_back();
  CHECK(lines.refusal() == "module: fn twice: lines are not one per word");
  lines = everything();
  lines.module.lines[0][0] = 0x80000000u;
  CHECK(lines.refusal() == "module: fn twice: a line number is too large");
  Assembler large = everything();
  for (int i = 0; i < 3; ++i) large.text(std::string(60000, 'x'));
  CHECK(large.refusal() == "module: is too large: a file has less than 131072 bytes");
}
