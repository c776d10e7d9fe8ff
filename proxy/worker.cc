#include "proxy/worker.h"

#include <pthread.h>

#include <csignal>

#include "proxy/worker_loop.h"

namespace sluice::proxy {
namespace {
constexpr std::size_t kResults = 65'536;
constexpr std::size_t kCommands = 1'000;
}  // namespace

Worker::Worker(std::uint16_t index, ProcessLimits& limits, Inbox<News>& news, Counters& counters)
    : index_(index),
      limits_(limits),
      news_(news),
      results_("worker." + std::to_string(index) + ".results", kResults),
      commands_("worker." + std::to_string(index) + ".commands", kCommands),
      counters_(counters) {}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  end();
  join();
}

void Worker::start(std::unique_ptr<Engine> engine, std::vector<Listening> listening, Generation first) {
  // Signals are control's: a new thread inherits the mask.
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this, e = std::move(engine), l = std::move(listening), g = std::move(first)]() mutable {
    run(std::move(e), std::move(l), std::move(g));
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Worker::run(std::unique_ptr<Engine> engine, std::vector<Listening> listening, Generation first) {
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
          if (command.kind == Command::Kind::end) c.goes_on = false;
          else obey(c.loop, command);
        });
      },
      &commands);
  loop.install(std::move(first));
  loop.listen(std::move(listening));
  while (goes_on) loop.turn(Loop::Wait::block);
  command_event.stop();
  loop.end();
}

void Worker::obey(WorkerLoop& loop, Command& command) {
  switch (command.kind) {
    case Command::Kind::install: return loop.install(std::move(command.generation));
    case Command::Kind::install_and_listen:
      // Routes first: a new listener's connections must find those of its tag.
      loop.install(std::move(command.generation));
      loop.leave(command.leaving);
      return loop.listen(std::move(command.listening));
    case Command::Kind::listen: return loop.listen(std::move(command.listening));
    case Command::Kind::report: return loop.report(command.asked);
    case Command::Kind::drain: return loop.drain();
    case Command::Kind::post: return loop.post(command.posted->store, command.posted->event, command.posted->id);
    case Command::Kind::end: return;
  }
}

Result<void> Worker::install(Generation&& next) {
  Command c;
  c.generation = std::move(next);
  Result<void> pushed = commands_.push(std::move(c));
  if (!pushed) next = std::move(c.generation);
  return pushed;
}

Result<void> Worker::install(Generation&& next, std::vector<Listening> listening, bool leaving) {
  Command c;
  c.kind = Command::Kind::install_and_listen;
  c.leaving = leaving;
  c.generation = std::move(next);
  c.listening = std::move(listening);
  Result<void> pushed = commands_.push(std::move(c));
  if (!pushed) next = std::move(c.generation);
  return pushed;
}

Result<void> Worker::listen(std::vector<Listening> listening) {
  Command c;
  c.kind = Command::Kind::listen;
  c.listening = std::move(listening);
  return commands_.push(std::move(c));
}

Result<void> Worker::report(std::uint64_t asked) {
  Command c;
  c.kind = Command::Kind::report;
  c.asked = asked;
  return commands_.push(std::move(c));
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
