// One socket to a backend: connects, carries one request at a time, and takes its answer.
//
// One in flight, so an answer has no other request to be mistaken for: whatever comes beyond it, or while nothing was
// asked, ends the connection. Its callbacks hand a finished call to the client as their last step.
#pragma once
#include <cstdint>

#include "proxy/loop.h"
#include "proxy/remote/call.h"
#include "proxy/remote/response_reader.h"

namespace sluice::proxy {

class BackendClient;

// Thread: worker. Life: pooled by its client.
class BackendConnection final {
 public:
  enum class State : std::uint8_t { closed, connecting, idle, busy };

  explicit BackendConnection(BackendClient& client) : client_(client) {}
  ~BackendConnection() { close(); }
  BackendConnection(const BackendConnection&) = delete;
  BackendConnection& operator=(const BackendConnection&) = delete;

  // Begins to connect, to each address in turn. Errors: false when none can even be tried; error() is the last errno.
  bool open(std::uint64_t deadline_us);
  // Sends the call; `call.connection` is this. What goes wrong is told to the client later, by an event or a timer.
  void send(BackendCall& call);
  // An idle one that can still be used: nothing has come and nobody has closed. Looks at the socket.
  bool is_fresh() const;
  // Idle from now on, until then at most.
  void park(std::uint64_t until_us);
  // Ends it at once; what it carries is the caller's to take care of.
  void close();

  State state() const { return state_; }
  BackendCall* call() const { return call_; }
  const ResponseReader& reader() const { return reader_; }
  std::uint32_t served() const { return served_; }
  int error() const { return error_; }        // errno of the last failure to connect
  bool written() const { return sent_bytes_ == call_->head.size() + call_->body.size(); }

 private:
  static void on_event(evutil_socket_t fd, short what, void* self);
  static void on_timer(void* self, std::uint32_t tag);
  bool try_address();
  void connect_done();
  void write_some();
  void read_some();
  void answer_done();
  void watch(short what);
  void arm(std::uint64_t at_us);
  void next_address(int error);
  void broken(int error, const char* why, Errc code = Errc::backend);

  BackendClient& client_;
  FdEvent event_;
  int fd_ = -1;
  int error_ = 0;
  State state_ = State::closed;
  bool write_failed_ = false;
  std::uint32_t address_ = 0;                 // which of the backend's is being tried
  std::uint32_t served_ = 0;
  BackendCall* call_ = nullptr;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t connect_by_us_ = 0;           // all addresses together
  std::uint64_t due_us_ = 0;                  // when time is up: of this address, of the call, or of idleness
  TimerId timer_;
  std::uint64_t timer_at_us_ = 0;             // 0: none. May be early, is never late
  ResponseReader reader_;
};

}  // namespace sluice::proxy
