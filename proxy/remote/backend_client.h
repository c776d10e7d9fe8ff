// One backend as one worker knows it: its connections, the requests that wait for one, and whether it is well.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "proxy/remote/backend.h"
#include "proxy/remote/backend_connection.h"
#include "proxy/remote/call.h"
#include "proxy/remote/health.h"

namespace sluice::proxy {

class BackendClients;
class WorkerLoop;

// Thread: worker. Life: BackendClients'; as long as a generation of config on this worker has the backend.
class BackendClient final {
 public:
  BackendClient(BackendClients& all, BackendPtr backend);
  ~BackendClient();                           // closes its connections; calls that are left are dropped without a word
  BackendClient(const BackendClient&) = delete;
  BackendClient& operator=(const BackendClient&) = delete;

  // Takes a call on, whose head is written: it is answered, perhaps at once, unless cancel() comes first.
  void start(BackendCall& call);
  // Its sender does not wait any more. One that waits is dropped; one that was sent ends with its connection, unless little
  // of the answer is left to come: then the connection is worth that.
  void cancel(BackendCall& call);

  const Backend& backend() const { return *backend_; }
  const BackendPtr& shared() const { return backend_; }
  const BackendOptions& options() const { return backend_->spec.options; }
  const Health& health() const { return health_; }
  BackendClients& all() { return all_; }
  WorkerLoop& worker();
  BackendCounters& counters() { return counters_; }
  std::uint32_t holders = 0;                  // generations

  // For its connections. Each is a connection's last step.
  void connected(BackendConnection& connection);
  void connect_failed(BackendConnection& connection);
  void answered(BackendConnection& connection, BackendCall& call, bool reusable);
  void failed(BackendConnection& connection, BackendCall& call, Errc code, const char* why, bool nothing_came);
  void idle_ended(BackendConnection& connection);

 private:
  static void on_waited(void* self, std::uint32_t tag);
  static void on_retry(void* self, std::uint32_t tag);
  void refuse(BackendCall& call, std::uint16_t status, Errc code, const char* why, std::uint32_t retry_after_s);
  void fail(BackendCall& call, Errc code, const char* why);
  void deliver(BackendCall& call);
  void wait(BackendCall& call, bool first);
  void leave_queue(BackendCall& call);
  void arm_waited(std::uint64_t at_us);
  void pump();
  bool open_one();
  void send_on(BackendConnection& connection, BackendCall& call);
  BackendConnection* take_idle();
  void park(BackendConnection& connection);
  void end(BackendConnection& connection);    // closed, and free for the next
  void note_success();
  void note_failure(bool trial, const char* why, int error);
  void fail_waiting(const char* why);
  void note_health();
  void say(const char* what, const char* why, int error);

  BackendClients& all_;
  const BackendPtr backend_;
  BackendCounters& counters_;
  Health health_;
  std::vector<std::unique_ptr<BackendConnection>> connections_;
  std::vector<BackendConnection*> spare_, idle_;   // closed; open and without a call, the last used at the end
  std::uint32_t connecting_ = 0, busy_ = 0;
  BackendCall* first_waiting_ = nullptr;
  BackendCall* last_waiting_ = nullptr;
  std::uint32_t waiting_ = 0;
  TimerId waited_timer_, retry_timer_;
  std::uint64_t waited_at_us_ = 0;            // 0: no timer
  bool counted_down_ = false;
};

}  // namespace sluice::proxy
