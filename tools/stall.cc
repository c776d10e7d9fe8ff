// How long does a reload keep a worker from its connections?
//
//   stall [ROUTES [HELD [SECONDS]]]         (400 routes, 2000 requests held in slots, 3 s)
//
// One worker's loop serves pipelined requests and holds HELD others in sleeping routes, first left alone, then with a
// reload every 20 ms: control reads a config of ROUTES routes, makes its VM, hands it over and destroys the old one, as
// the server does. Each turn of the loop is timed; turns in which the kernel gave the processor to others are counted
// apart. A line per phase: turns, the longest one, those over 1 ms, and what the hand-over itself took at most.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lua/config.h"
#include "proxy/engine.h"
#include "proxy/reload.h"
#include "proxy/worker_loop.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

long taken_away() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

struct Figures {
  std::uint64_t turns = 0, preempted = 0, over = 0, longest_ns = 0, longest_cpu_ns = 0, longest_install_ns = 0, installs = 0;
  void print(const char* phase) const {
    std::printf("%-10s turns %8lu  longest %7.1f us  (CPU %7.1f us, preempted ones too)  over 1 ms %lu  preempted %lu", phase, turns,
                static_cast<double>(longest_ns) / 1e3, static_cast<double>(longest_cpu_ns) / 1e3, over, preempted);
    if (installs) std::printf("  installs %lu, longest %.1f us", installs, static_cast<double>(longest_install_ns) / 1e3);
    std::printf("\n");
    std::fflush(stdout);
  }
};

// The worker's thread: what Worker::run() does, timed.
class Probe {
 public:
  Probe(EngineControl& engine, const Settings& settings)
      : limits_(settings), results_("stall.results", 65'536), news_("stall.news", 4'096), next_("stall.next", 16), engine_(engine.worker(0, results_)) {}
  ~Probe() { stop(); }
  Inbox<Generation>& next() { return next_; }
  Inbox<News>& news() { return news_; }
  // A socket that the worker serves.
  int connect() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) std::abort();
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    adopted_.push_back(fds[0]);
    return fds[1];
  }
  void start() { thread_ = std::thread([this] { run(); }); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void phase() { reset_ = true; while (reset_) std::this_thread::yield(); }
  Figures figures() { wanted_ = true; while (wanted_) std::this_thread::yield(); return out_; }

 private:
  void run() {
    Clock clock;
    WorkerLoop loop(0, limits_, results_, news_, counters_, std::move(engine_), clock);
    Figures now;
    while (!stop_) {
      const long before = taken_away();
      const std::uint64_t begin = now_ns(), begin_cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
      next_.drain([&](Generation g) {
        const std::uint64_t at = now_ns(CLOCK_THREAD_CPUTIME_ID);
        loop.install(std::move(g));
        ++now.installs;
        now.longest_install_ns = std::max(now.longest_install_ns, now_ns(CLOCK_THREAD_CPUTIME_ID) - at);
        for (const int fd : adopted_) loop.adopt(fd, "127.0.0.1");
        adopted_.clear();
      });
      loop.turn(Loop::Wait::look);
      const std::uint64_t wall = now_ns() - begin, cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu;
      ++now.turns;
      now.longest_cpu_ns = std::max(now.longest_cpu_ns, cpu);
      if (taken_away() != before) {
        ++now.preempted;
      } else {
        now.longest_ns = std::max(now.longest_ns, wall);
        now.over += wall > 1'000'000;
      }
      if (wanted_.exchange(false)) out_ = now;
      if (reset_.exchange(false)) now = {};
    }
    loop.end();
  }

  ProcessLimits limits_;
  Counters counters_;
  Inbox<EventPtr> results_;
  Inbox<News> news_;
  Inbox<Generation> next_;
  std::unique_ptr<Engine> engine_;
  std::vector<int> adopted_;                     // before the first generation
  std::atomic<bool> stop_{false}, reset_{false}, wanted_{false};
  Figures out_;
  std::thread thread_;
};

std::string config(const std::string& folder, int routes) {
  std::string text = "settings { workers = 1, connections = 100000, request_timeout = 600, idle_timeout = 600 }\n"
                     "stores { a = { module = \"" + folder + "/a.aup\", path = \"" + folder + "/a\" } }\nroutes { map = {\n"
                     "  [\"/hold\"] = route_lua { f = function(rctx) return function() rctx:sleep(1.5) return \"held\" end end },\n"
                     "  [\"/ask\"] = route_lua { children = { \"a\" }, f = function(rctx, h) return function() return rctx:view(h[1], \"n\") and rctx:wait_handle(h[1]) end end },\n";
  for (int i = 0; i < routes; ++i)
    text += "  [\"/r" + std::to_string(i) + "/:id\"] = route_lua { children = { \"a\" }, f = function(rctx, h) local e = rctx:event(h[1], \"plus\") "
            "return function(r) return rctx:enqueue_and_wait(e, h[1]) end end },\n";
  return text + "} }\n";
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Keeps `ask` on its way over each socket; what comes back is dropped. Until `stop`.
void press(const std::vector<int>& sockets, const std::string& ask, const std::atomic<bool>& stop) {
  char answers[65'536];
  while (!stop) {
    for (const int fd : sockets) {
      while (recv(fd, answers, sizeof answers, MSG_DONTWAIT) > 0) {}
      send(fd, ask.data(), ask.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int routes = argc > 1 ? std::atoi(argv[1]) : 400;
  const int held = argc > 2 ? std::atoi(argv[2]) : 2'000;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 3;
  char folder_text[] = "/tmp/stall-XXXXXX";
  if (!mkdtemp(folder_text)) return 1;
  const std::string folder = folder_text, path = folder + "/stall.lua";
  write(folder + "/a.aup", "module a 1\nstate n: int in 0..1_000_000_000\ninput key plus\non plus down { n += 1 }\nview n: num = n\n");
  write(path, config(folder, routes));
  int code = 0;
  {
    const std::unique_ptr<EngineControl> engine = make_engine();
    const std::unique_ptr<ConfigReader> reader = lua::make_config_reader(nullptr);
    Reloader reloader(*reader, *engine, path, {});
    const std::uint16_t only[] = {0};
    std::uint64_t longest_load_ns = 0;
    const auto make = [&]() -> Result<Generation, std::string> {
      const std::uint64_t at = now_ns();
      Result<Prepared, std::string> ready = reloader.read_next();
      if (!ready) return std::move(ready).error();
      if (auto made = reloader.prepare(*ready, only); !made) return std::move(made).error();
      longest_load_ns = std::max(longest_load_ns, now_ns() - at);
      return std::move(reloader.apply(*std::move(ready))[0]);
    };
    Result<Generation, std::string> first = make();
    if (!first) {
      std::fprintf(stderr, "stall: %s\n", first.error().c_str());
      code = 1;
    } else {
      Probe probe(*engine, reloader.settings());
      std::vector<int> holding, asking;
      for (int i = 0; i < held; ++i) holding.push_back(probe.connect());
      for (int i = 0; i < 16; ++i) asking.push_back(probe.connect());
      if (!probe.next().push(*std::move(first))) return 1;
      probe.start();
      const auto hear = [&] { probe.news().drain([](News) {}); };   // what comes back is destroyed here
      std::atomic<bool> stop{false};
      std::thread asks([&] { press(asking, "GET /ask HTTP/1.1\r\nHost: h\r\n\r\nGET /r7/x HTTP/1.1\r\nHost: h\r\n\r\n", stop); });
      std::thread holds([&] {
        while (!stop) {
          // One after the other, so that no turn has many of them: what is timed is not a burst.
          for (const int fd : holding) {
            char answers[4'096];
            while (recv(fd, answers, sizeof answers, MSG_DONTWAIT) > 0) {}
            const std::string ask = "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n";
            send(fd, ask.data(), ask.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            std::this_thread::sleep_for(std::chrono::microseconds(500));
            if (stop) break;
          }
        }
      });
      std::this_thread::sleep_for(std::chrono::seconds(3));     // all slots are made
      std::printf("%d routes, %d requests held, %.1f s each\n", routes, held, seconds);
      probe.phase();
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      probe.figures().print("alone");
      probe.phase();
      const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
      while (now_ns() < end) {
        Result<Generation, std::string> next = make();
        if (!next || !probe.next().push(*std::move(next))) std::abort();
        hear();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      probe.figures().print("reloads");
      std::printf("longest preparation on control: %.1f ms\n", static_cast<double>(longest_load_ns) / 1e6);
      stop = true;
      asks.join();
      holds.join();
      probe.stop();
      hear();
      for (const int fd : holding) close(fd);
      for (const int fd : asking) close(fd);
    }
    engine->stop();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
