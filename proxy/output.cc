#include "proxy/output.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::proxy {
namespace {
constexpr std::size_t kRetained = 64 * 1024;
constexpr std::size_t kPieces = 128;    // of one writev; a kernel takes 1024
}  // namespace

void Output::grow(std::size_t need) {
  std::size_t room = capacity_ ? capacity_ : 4096;
  while (room < need) room *= 2;
  std::unique_ptr<char[]> wider(new char[room]);
  if (size_) std::memcpy(wider.get(), bytes_.get(), size_);
  bytes_ = std::move(wider);
  capacity_ = room;
}

void Output::lend(std::string_view bytes) {
  if (bytes.empty()) return;
  lent_.push_back({size_, bytes});
  lent_bytes_ += bytes.size();
}

ssize_t Output::write_to(int fd) {
  if (lent_.empty()) {
    const ssize_t n = send(fd, bytes_.get() + own_at_, size_ - own_at_, MSG_NOSIGNAL);
    if (n > 0) own_at_ += static_cast<std::size_t>(n), written_ += static_cast<std::uint64_t>(n);
    return n;
  }
  std::array<iovec, kPieces> pieces{};
  std::size_t count = 0;
  std::size_t own = own_at_, lent = lent_at_, within = piece_at_;
  while (count < kPieces && (own < size_ || lent < lent_.size())) {
    const std::size_t own_end = lent < lent_.size() ? lent_[lent].behind : size_;
    if (own < own_end) {
      pieces[count++] = {bytes_.get() + own, own_end - own};
      own = own_end;
      continue;
    }
    const std::string_view b = lent_[lent].bytes.substr(within);
    pieces[count++] = {const_cast<char*>(b.data()), b.size()};
    ++lent, within = 0;
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
  if (n > 0) advance(static_cast<std::size_t>(n));
  return n;
}

std::string_view Output::front() const {
  const std::size_t own_end = lent_at_ < lent_.size() ? lent_[lent_at_].behind : size_;
  if (own_at_ < own_end) return {bytes_.get() + own_at_, own_end - own_at_};
  return lent_at_ < lent_.size() ? lent_[lent_at_].bytes.substr(piece_at_) : std::string_view();
}

void Output::advance(std::size_t n) {
  written_ += n;
  std::size_t rest = n;
  while (rest > 0) {
    const std::size_t own_end = lent_at_ < lent_.size() ? lent_[lent_at_].behind : size_;
    if (own_at_ < own_end) {
      const std::size_t step = std::min(rest, own_end - own_at_);
      own_at_ += step, rest -= step;
      continue;
    }
    const std::size_t step = std::min(rest, lent_[lent_at_].bytes.size() - piece_at_);
    piece_at_ += step, rest -= step;
    if (piece_at_ == lent_[lent_at_].bytes.size()) ++lent_at_, piece_at_ = 0;
  }
}

bool Output::take_over(Budget& budget) {
  const std::uint64_t left = lent_bytes_ + own_at_ - written_;   // what was written of both, less what of our own
  if (left == 0) return true;
  Buffer copy = Buffer::make(left, &budget);
  if (!copy) return false;
  for (std::size_t i = lent_at_; i < lent_.size(); ++i) {
    const std::string_view rest = lent_[i].bytes.substr(i == lent_at_ ? piece_at_ : 0);
    copy.append(rest);
    // A Buffer's room does not move while it is filled.
    lent_[i].bytes = copy.view().substr(copy.size() - rest.size());
  }
  piece_at_ = 0;   // left() counts all that was lent and all that was written, and stays as it is
  copied_ = std::move(copy);
  return true;
}

void Output::reset() {
  size_ = 0;
  lent_.clear();
  copied_.reset();
  lent_bytes_ = written_ = 0;
  own_at_ = lent_at_ = piece_at_ = 0;
  if (capacity_ > kRetained) {
    bytes_.reset();
    capacity_ = 0;
  }
}

}  // namespace sluice::proxy
