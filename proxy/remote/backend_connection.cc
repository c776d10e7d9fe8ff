#include "proxy/remote/backend_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "proxy/remote/backend_client.h"
#include "proxy/worker_loop.h"

namespace sluice::proxy {
namespace {
constexpr int kReadsPerEvent = 4;   // so that one large answer does not keep the others waiting
}  // namespace

bool BackendConnection::open(std::uint64_t deadline_us) {
  served_ = 0;
  address_ = 0;
  connect_by_us_ = deadline_us;
  state_ = State::connecting;
  if (try_address()) return true;
  close();
  return false;
}

// The first of those left that a connection can be begun to. Each gets its share of the time: one that swallows everything
// must not use up that of the next.
bool BackendConnection::try_address() {
  const std::vector<SocketAddress>& all = client_.backend().spec.addresses;
  for (; address_ < all.size(); ++address_) {
    const SocketAddress& to = all[address_];
    fd_ = socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
      error_ = errno;
      continue;
    }
    const int on = 1;
    if (to.family() != AF_UNIX) {
      setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (client_.options().tcp_keepalive) setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0 || errno == EINPROGRESS) {
      const std::uint64_t now = client_.worker().now_us();
      const std::uint64_t left = connect_by_us_ > now ? connect_by_us_ - now : 0;
      watch(EV_WRITE);
      arm(now + left / (all.size() - address_));
      return true;
    }
    error_ = errno;
    ::close(fd_);
    fd_ = -1;
  }
  return false;
}

void BackendConnection::connect_done() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) {
    state_ = State::idle;
    watch(EV_READ);
    return client_.connected(*this);
  }
  next_address(error);
}

void BackendConnection::next_address(int error) {
  error_ = error;
  event_.stop();
  ::close(fd_);
  fd_ = -1;
  ++address_;
  if (!try_address()) client_.connect_failed(*this);
}

void BackendConnection::send(BackendCall& call) {
  state_ = State::busy;
  call_ = &call;
  call.connection = this;
  sent_bytes_ = 0;
  write_failed_ = false;
  const BackendOptions& o = client_.options();
  reader_.begin(call.response, call.head_request, {o.head_bytes, o.body_bytes}, &client_.worker().limits().payload);
  write_some();
  arm(call.deadline_us);
}

void BackendConnection::write_some() {
  while (!written() && !write_failed_) {
    std::array<iovec, 2> pieces{};
    std::size_t count = 0;
    const std::string_view head = std::string_view(call_->head).substr(std::min<std::size_t>(sent_bytes_, call_->head.size()));
    const std::uint64_t body_at = sent_bytes_ - (call_->head.size() - head.size());
    const std::string_view body = call_->body.view().substr(static_cast<std::size_t>(body_at));
    for (const std::string_view piece : {head, body})
      if (!piece.empty()) pieces[count++] = {const_cast<char*>(piece.data()), piece.size()};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t n = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (n >= 0) {
      sent_bytes_ += static_cast<std::uint64_t>(n);
      client_.counters().bytes_sent.add(static_cast<std::uint64_t>(n));
    } else if (errno == EAGAIN) {
      // A backend may answer before it has read the whole body: keep reading, or both sides wait for each other.
      return watch(EV_READ | EV_WRITE);
    } else if (errno != EINTR) {
      write_failed_ = true;   // it may have answered and closed: what there is to read says which
    }
  }
  watch(EV_READ);
}

bool BackendConnection::is_fresh() const {
  char c = 0;
  return recv(fd_, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

void BackendConnection::on_event(evutil_socket_t, short what, void* self) {
  BackendConnection& me = *static_cast<BackendConnection*>(self);
  switch (me.state_) {
    case State::connecting: return me.connect_done();
    case State::idle: return me.client_.idle_ended(me);   // closed, or bytes that nobody asked for
    case State::busy:
      if (what & EV_WRITE) me.write_some();
      if (what & EV_READ) me.read_some();
      return;
    case State::closed: return;
  }
}

void BackendConnection::read_some() {
  char* const room = client_.worker().read_buffer();
  for (int i = 0; i < kReadsPerEvent; ++i) {
    const ssize_t n = recv(fd_, room, WorkerLoop::kReadBytes, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      return broken(errno, "the connection to the backend was lost");
    }
    if (n == 0) {
      reader_.end();
      write_failed_ = true;   // nothing more goes over it
    } else {
      client_.counters().bytes_received.add(static_cast<std::uint64_t>(n));
      const std::size_t used = reader_.feed({room, static_cast<std::size_t>(n)});
      write_failed_ |= used < static_cast<std::size_t>(n);   // a surplus belongs to no request
    }
    if (reader_.state() == ResponseReader::State::whole) return answer_done();
    if (reader_.state() == ResponseReader::State::refused) return broken(0, reader_.why(), reader_.code());
    if (static_cast<std::size_t>(n) < WorkerLoop::kReadBytes) return;
  }
}

void BackendConnection::answer_done() {
  const bool reusable = reader_.keep_alive() && written() && !write_failed_;
  BackendCall& call = *call_;
  call_ = nullptr;
  call.connection = nullptr;
  ++served_;
  state_ = State::idle;
  client_.answered(*this, call, reusable);
}

void BackendConnection::broken(int error, const char* why, Errc code) {
  BackendCall& call = *call_;
  error_ = error;
  client_.failed(*this, call, code, why, !reader_.began());
}

void BackendConnection::close() {
  event_.stop();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (timer_at_us_ != 0) client_.worker().wheel().stop(timer_);
  timer_at_us_ = 0;
  call_ = nullptr;
  state_ = State::closed;
}

void BackendConnection::watch(short what) { event_.watch(client_.worker().loop(), fd_, what, on_event, this); }

void BackendConnection::park(std::uint64_t until_us) { arm(until_us); }

void BackendConnection::arm(std::uint64_t at_us) {
  due_us_ = at_us;
  if (timer_at_us_ != 0 && timer_at_us_ <= at_us) return;   // an early one looks, and is set again
  if (timer_at_us_ != 0) client_.worker().wheel().stop(timer_);
  timer_at_us_ = at_us;
  timer_ = client_.worker().start_timer_at(at_us, this, 0, on_timer, nullptr);
}

void BackendConnection::on_timer(void* self, std::uint32_t) {
  BackendConnection& me = *static_cast<BackendConnection*>(self);
  me.timer_ = {};
  me.timer_at_us_ = 0;
  if (me.client_.worker().now_us() < me.due_us_) return me.arm(me.due_us_);
  switch (me.state_) {
    case State::connecting: return me.next_address(ETIMEDOUT);
    case State::idle: return me.client_.idle_ended(me);
    case State::busy: return me.broken(ETIMEDOUT, "the backend did not answer in time", Errc::backend_timeout);
    case State::closed: return;
  }
}

}  // namespace sluice::proxy
