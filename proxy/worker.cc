#include "proxy/worker.h"

#include <pthread.h>

#include <csignal>

#include "proxy/worker_loop.h"

namespace sluice::proxy {
namespace {
constexpr std::size_t kResults = 65'536;
constexpr std::size_t kCommands = 1'000;
}  // namespace

Worker::Worker(std::uint16_t index, ProcessLimits& limits, Inbox<News>& news)
    : index_(index),
      limits_(limits),
      news_(news),
      results_("worker." + std::to_string(index) + ".results", kResults),
      commands_("worker." + std::to_string(index) + ".commands", kCommands) {}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  end();
  join();
}

void Worker::start(std::unique_ptr<Engine> engine, std::vector<int> listeners, Generation first, std::vector<std::string> tags) {
  // Signals are control's: a new thread inherits the mask.
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this, e = std::move(engine), l = std::move(listeners), g = std::move(first), t = std::move(tags)]() mutable {
    run(std::move(e), std::move(l), std::move(g), std::move(t));
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Worker::run(std::unique_ptr<Engine> engine, std::vector<int> listeners, Generation first, std::vector<std::string> tags) {
  Clock clock;
  WorkerLoop loop(index_, limits_, results_, news_, counters_, std::move(engine), clock);
  bool goes_on = true;
  // Commands are few: they are looked at once per turn, and their wake ends a wait.
  struct Commands {
    Worker& worker;
    WorkerLoop& loop;
    bool& goes_on;
  } commands{*this, loop, goes_on};
  FdEvent command_event;
  command_event.watch(
      loop.loop(), commands_.wake().fd(), EV_READ,
      [](evutil_socket_t, short, void* p) {
        Commands& c = *static_cast<Commands*>(p);
        c.worker.commands_.wake().quiet();
        c.worker.commands_.drain([&c](Command command) {
          switch (command.kind) {
            case Command::Kind::install: c.loop.install(std::move(command.generation)); break;
            case Command::Kind::drain: c.loop.drain(); break;
            case Command::Kind::end: c.goes_on = false; break;
            case Command::Kind::post: c.loop.post(command.posted->store, command.posted->event, command.posted->id); break;
          }
        });
      },
      &commands);
  loop.install(std::move(first));
  loop.listen(std::move(listeners), std::move(tags));
  while (goes_on) loop.turn(Loop::Wait::block);
  command_event.stop();
  loop.end();
}

Result<void> Worker::install(Generation&& next) {
  Command c;
  c.generation = std::move(next);
  Result<void> pushed = commands_.push(std::move(c));
  if (!pushed) next = std::move(c.generation);
  return pushed;
}

void Worker::command(Command::Kind kind) {
  Command c;
  c.kind = kind;
  // A full inbox is being emptied: its reader never blocks.
  while (!commands_.push(std::move(c))) std::this_thread::yield();
}

Result<void> Worker::post(StorePtr store, CronEvent event, std::uint32_t id) {
  Command c;
  c.kind = Command::Kind::post;
  c.posted = std::make_unique<Posted>(Posted{std::move(store), std::move(event), id});
  return commands_.push(std::move(c));
}

void Worker::drain() { command(Command::Kind::drain); }
void Worker::end() { command(Command::Kind::end); }
void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace sluice::proxy
