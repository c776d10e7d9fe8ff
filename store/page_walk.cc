// Source: LMDB 0.9.24, mdb.c. Little endian:
//
//   page   u64 number, u16 pad, u16 flags (1 branch, 2 leaf, 4 overflow, 8 meta), then
//          branch, leaf: u16 lower, u16 upper, u16 offset of each node up to `lower`; nodes from `upper` to the end
//          overflow: u32 how many pages
//   node   u16 low, u16 high, u16 flags, u16 key size, key, value
//          branch: page number = low | high << 16 | flags << 32; the first node's key does not count
//          leaf: value size = low | high << 16; flags 1: the value is the number of an overflow page; 2: a tree
//   tree   u32 pad, u16 flags, u16 depth, u64 branch, leaf and overflow pages, u64 entries, u64 root (all ones: empty)
//   free   database 0: u64 transaction -> u64 count, page numbers falling
#include "store/page_walk.h"

#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "store/bytes.h"

namespace sluice::store {

namespace {
constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
constexpr std::uint64_t kWalkMax = 65'536;
constexpr std::size_t kPageHead = 16, kNodeHead = 8, kTreeBytes = 48, kPageBytes = 4096;
constexpr std::uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8;
constexpr std::uint16_t kBigValue = 1, kSubTree = 2;
constexpr std::uint16_t kIntegerKey = 8;
constexpr std::uint16_t kDepthMax = 16;

using Page = std::array<char, kPageBytes>;

Tree read_tree(const char* at) {
  return {read_at<std::uint16_t>(at + 4),  read_at<std::uint16_t>(at + 6),  read_at<std::uint64_t>(at + 8),
          read_at<std::uint64_t>(at + 16), read_at<std::uint64_t>(at + 24), read_at<std::uint64_t>(at + 32),
          read_at<std::uint64_t>(at + 40)};
}

struct Node {
  std::string_view key, value;      // value: what lies in the page
  std::uint64_t child = 0;          // of a branch
  std::uint64_t value_bytes = 0;    // of the whole value
  std::uint16_t flags = 0;
};

std::size_t node_count(const Page& page) { return (read_at<std::uint16_t>(page.data() + 12) - kPageHead) / 2; }

// Header and node offsets; after it node() needs no more checks but its own length.
bool sound_page(const Page& page, std::uint64_t number, std::uint16_t flags) {
  const auto lower = read_at<std::uint16_t>(page.data() + 12), upper = read_at<std::uint16_t>(page.data() + 14);
  return read_at<std::uint64_t>(page.data()) == number && read_at<std::uint16_t>(page.data() + 10) == flags &&
         lower > kPageHead && (lower & 1) == 0 && lower <= upper && upper <= kPageBytes;
}

std::optional<Node> node_at(const Page& page, std::size_t index, bool branch) {
  const std::size_t offset = read_at<std::uint16_t>(page.data() + kPageHead + 2 * index);
  if (offset < read_at<std::uint16_t>(page.data() + 14) || offset + kNodeHead > kPageBytes) return std::nullopt;
  const char* at = page.data() + offset;
  const std::uint64_t low = read_at<std::uint16_t>(at), high = read_at<std::uint16_t>(at + 2);
  const std::size_t key_bytes = read_at<std::uint16_t>(at + 6);
  Node node;
  node.flags = read_at<std::uint16_t>(at + 4);
  if (offset + kNodeHead + key_bytes > kPageBytes) return std::nullopt;
  node.key = {at + kNodeHead, key_bytes};
  if (branch) {
    node.child = low | high << 16 | std::uint64_t{node.flags} << 32;
    return node;
  }
  node.value_bytes = low | high << 16;
  const std::uint64_t in_page = (node.flags & kBigValue) != 0 ? 8 : node.value_bytes;
  if (offset + kNodeHead + key_bytes + in_page > kPageBytes) return std::nullopt;
  node.value = {at + kNodeHead + key_bytes, in_page};
  return node;
}

class Walker {
 public:
  Walker(const PageReader& reader, const Meta& meta, std::string& why)
      : reader_(reader), meta_(meta), why_(why), seen_(meta.last_page + 1, false) {}

  bool run() {
    seen_[0] = seen_[1] = true;
    in_main_ = true;
    if (!tree(meta_.main, 0)) return false;
    in_main_ = false;
    std::uint64_t all = meta_.free.pages() + meta_.main.pages();
    for (const Tree& t : subtrees_) {
      if (t.pages() > reader_.pages()) return no("a database counts more pages than the file has");
      all += t.pages();
    }
    if (all > reader_.pages()) return no("its databases count more pages than the file has");
    if (all > kWalkMax) return roots();
    const std::vector<Tree> subtrees = std::move(subtrees_);
    for (const Tree& t : subtrees)
      if (!tree(t, t.flags)) return false;
    in_free_ = true;
    if (!tree(meta_.free, kIntegerKey)) return false;
    for (std::uint64_t page : free_) {
      if (page > meta_.last_page || page < 2) return no("the free list names a page that is not there");
      if (seen_[page]) return no("a page is free and in use");
      seen_[page] = true;
    }
    return true;
  }

 private:
  bool no(std::string_view why) {
    why_ = why;
    return false;
  }

  bool tree(const Tree& t, std::uint16_t flags) {
    if (t.flags != flags || (flags & ~kIntegerKey) != 0) return no("a database has wrong flags");
    if (t.root == kNoPage)
      return (t.depth == 0 && t.pages() == 0 && t.entries == 0) || no("an empty database counts pages");
    if (t.depth == 0 || t.depth > kDepthMax) return no("a database has no depth");
    counted_ = {};
    integers_ = (flags & kIntegerKey) != 0;
    if (!page(t.root, t.depth, {}, {})) return false;
    return (counted_.branches == t.branches && counted_.leafs == t.leafs && counted_.overflows == t.overflows &&
            counted_.entries == t.entries) ||
           no("a database counts other pages than it has");
  }

  bool claim(std::uint64_t number) {
    if (number < 2 || number > meta_.last_page || number >= reader_.pages())
      return no("a page number points outside the file");
    if (seen_[number]) return no("a page is used twice");
    seen_[number] = true;
    return true;
  }

  bool less(std::string_view a, std::string_view b) const {
    return integers_ ? read_at<std::uint64_t>(a.data()) < read_at<std::uint64_t>(b.data()) : a < b;
  }

  using Bound = std::optional<std::string_view>;

  bool page(std::uint64_t number, std::uint16_t levels, Bound low, Bound high) {
    if (!claim(number)) return false;
    Page bytes;
    if (!reader_.read(number, bytes.data(), bytes.size())) return no("a page cannot be read");
    const bool branch = levels > 1;
    if (!sound_page(bytes, number, branch ? kBranch : kLeaf)) return no("a page is not what it should be");
    ++(branch ? counted_.branches : counted_.leafs);
    const std::size_t count = node_count(bytes);
    Bound before;
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<Node> node = node_at(bytes, i, branch);
      if (!node) return no("an entry does not fit its page");
      const bool keyed = !branch || i > 0;
      if (keyed) {
        if (node->key.empty() || (integers_ && node->key.size() != 8)) return no("a key has a wrong size");
        if ((before && !less(*before, node->key)) || (low && less(node->key, *low)) ||
            (high && !less(node->key, *high)))
          return no("keys are out of order");
        before = node->key;
      }
      if (branch) {
        Bound until = high;
        std::optional<Node> next;
        if (i + 1 < count) {
          next = node_at(bytes, i + 1, true);
          if (!next || (integers_ && next->key.size() != 8)) return no("an entry does not fit its page");
          until = next->key;
        }
        if (!page(node->child, static_cast<std::uint16_t>(levels - 1), keyed ? Bound(node->key) : low, until))
          return false;
      } else if (!leaf(*node)) {
        return false;
      }
    }
    return true;
  }

  bool leaf(const Node& node) {
    ++counted_.entries;
    if (node.flags == kSubTree) {
      if (node.value.size() != kTreeBytes || !in_main_) return no("a database's entry is damaged");
      subtrees_.push_back(read_tree(node.value.data()));
      return true;
    }
    if ((node.flags & ~kBigValue) != 0) return no("an entry has wrong flags");
    std::uint64_t first = 0;
    if ((node.flags & kBigValue) != 0) {
      first = read_at<std::uint64_t>(node.value.data());
      const std::uint64_t pages = (kPageHead - 1 + node.value_bytes) / kPageBytes + 1;
      for (std::uint64_t i = 0; i < pages; ++i)
        if (!claim(first + i)) return false;
      std::array<char, kPageHead> head;
      if (!reader_.read(first, head.data(), head.size())) return no("a page cannot be read");
      if (read_at<std::uint64_t>(head.data()) != first || read_at<std::uint16_t>(head.data() + 10) != kOverflow ||
          read_at<std::uint32_t>(head.data() + 12) != pages)
        return no("a page is not what it should be");
      counted_.overflows += pages;
    }
    return !in_free_ || free_list(node, first);
  }

  bool free_list(const Node& node, std::uint64_t first) {
    std::string whole(node.value);
    if ((node.flags & kBigValue) != 0) {
      whole.assign(kPageHead + node.value_bytes, '\0');
      if (!reader_.read(first, whole.data(), whole.size())) return no("a page cannot be read");
      whole.erase(0, kPageHead);
    }
    if (read_at<std::uint64_t>(node.key.data()) > meta_.txn || whole.size() < 8 || whole.size() % 8 != 0)
      return no("the free list is damaged");
    const auto count = read_at<std::uint64_t>(whole.data());
    if (count > whole.size() / 8 - 1) return no("the free list is damaged");
    for (std::uint64_t i = 1; i <= count; ++i) free_.push_back(read_at<std::uint64_t>(whole.data() + 8 * i));
    return true;
  }

  bool roots() {
    for (const Tree& t : subtrees_) {
      Page bytes;
      if (t.root == kNoPage) continue;
      if (!claim(t.root)) return false;
      if (!reader_.read(t.root, bytes.data(), bytes.size()) ||
          !sound_page(bytes, t.root, t.depth > 1 ? kBranch : kLeaf))
        return no("a database's root is not what it should be");
    }
    return true;
  }

  const PageReader& reader_;
  const Meta& meta_;
  std::string& why_;
  std::vector<bool> seen_;
  std::vector<Tree> subtrees_;
  std::vector<std::uint64_t> free_;
  Tree counted_;
  bool integers_ = false, in_main_ = false, in_free_ = false;
};

}  // namespace

bool PageReader::read(std::uint64_t page, void* to, std::uint64_t bytes) const {
  return pread(fd, to, bytes, static_cast<off_t>(page * page_bytes)) == static_cast<ssize_t>(bytes);
}

bool read_meta(const PageReader& reader, std::uint64_t page, Meta& meta, std::string& why) {
  std::array<char, 152> bytes;
  why = "the head of data.mdb is not LMDB's";
  if (!reader.read(page, bytes.data(), bytes.size())) return false;
  const char* at = bytes.data();
  if (read_at<std::uint64_t>(at) != page || read_at<std::uint16_t>(at + 10) != kMeta ||
      read_at<std::uint32_t>(at + 16) != 0xBEEFC0DE || read_at<std::uint32_t>(at + 20) != 1)
    return false;
  why = "data.mdb has another page size";
  if (read_at<std::uint32_t>(at + 40) != reader.page_bytes) return false;
  meta.free = read_tree(at + 40);
  meta.main = read_tree(at + 88);
  meta.last_page = read_at<std::uint64_t>(at + 136);
  meta.txn = read_at<std::uint64_t>(at + 144);
  why = "a count in the head of data.mdb is impossible";
  // Not last_page: LMDB never writes pages that one transaction took and freed, so a sound file may end before it.
  for (const Tree* t : {&meta.free, &meta.main}) {
    if (t->branches > reader.pages() || t->leafs > reader.pages() || t->overflows > reader.pages() ||
        t->pages() + 2 > reader.pages() || (t->root != kNoPage && (t->root < 2 || t->root >= reader.pages())))
      return false;
  }
  return meta.last_page >= 1;
}

bool check_commit_number(const PageReader& reader, const Meta& meta, std::string& why) {
  why = "a commit's number is not the one it was written with";
  if (meta.txn == 0) return meta.main.root == kNoPage;
  Page page;
  if (meta.main.root == kNoPage || meta.main.depth != 1 || !reader.read(meta.main.root, page.data(), page.size()) ||
      !sound_page(page, meta.main.root, kLeaf))
    return false;
  for (std::size_t i = 0; i < node_count(page); ++i) {
    const std::optional<Node> node = node_at(page, i, false);
    if (node && node->key == "commit")
      return node->value.size() == 8 && read_at<std::uint64_t>(node->value.data()) == meta.txn;
  }
  return false;
}

bool walk(const PageReader& reader, const Meta& meta, std::string& why) { return Walker(reader, meta, why).run(); }

}  // namespace sluice::store
