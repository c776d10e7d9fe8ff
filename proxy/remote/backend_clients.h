// All remote backends of one worker, over its generations, and the calls that are under way to them.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "proxy/remote/backend_client.h"

namespace sluice::proxy {

class WorkerLoop;

// Thread: worker.
class BackendClients final {
 public:
  explicit BackendClients(WorkerLoop& worker);
  ~BackendClients();
  BackendClients(const BackendClients&) = delete;
  BackendClients& operator=(const BackendClients&) = delete;

  // The worker's client of that backend, made when there is none; one give_back() for each take(). The last one closes it.
  BackendClient& take(const BackendPtr& backend);
  void give_back(BackendClient& client);

  BackendCall& take_call();
  void release(BackendCall& call);
  BackendCall& call(std::uint32_t index) { return *calls_[index]; }

  WorkerLoop& worker() { return worker_; }
  double chance();                            // 0 to 1

 private:
  WorkerLoop& worker_;
  std::vector<std::unique_ptr<BackendCall>> calls_;
  std::vector<BackendCall*> free_calls_;
  std::vector<std::unique_ptr<BackendClient>> clients_;   // goes before the calls that it may hold
  std::uint64_t random_;
};

}  // namespace sluice::proxy
