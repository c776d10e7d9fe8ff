// The control socket: a Unix socket at which this user asks a running server to do things, or follows what happens.
//
//   client to server   one command per line: a JSON object with "do" and the command's arguments, at most 16,384 bytes
//                      with its line feed (0x0a); an empty line is nothing
//   server to client   one line for each command, in their order, a JSON object:
//                        {"ok":true, what the command says}
//                        {"ok":false,"error":"a sentence", and perhaps more}
//   between them, to those who watch, lines of streams (proxy/streams.h), which have no "ok", and
//                        {"dropped":N}      so many lines were left out here: this client read too slowly
//
//   {"do":"stats"}                          {"ok":true,"server":{"active":0,...},...}
//   {"do":"watch","streams":["user"]}       {"ok":true} {"stream":"user",...} {"stream":"user",...} ...
//
// A client's next command begins when the last is answered. A client that ends its sending half is answered, then closed.
// A line that is too long is answered and ends the connection. At most 64 clients; one more is told so and closed.
#pragma once
#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/streams.h"
#include "proxy/unix_socket.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// Where a server has its socket. `setting` is Settings::control; what it leaves open is beside the config: FOLDER/shop.lua has
// FOLDER/shop.sock. Empty: there is none.
std::string control_path(const std::optional<std::string>& setting, const std::string& config);

// One command as it was asked.
class ControlAsked {
 public:
  // Errors: a sentence.
  static Result<ControlAsked, std::string> read(std::string_view line);

  const std::string& command() const { return command_; }
  // Absent: not given, or of another type.
  std::optional<std::string> text(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  bool flag(std::string_view name) const { return raw(name) == "true"; }
  // The texts of a list; absent: not given, or not all of them are texts.
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  // As written; empty: not given.
  std::string_view raw(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& arguments() const { return arguments_; }

 private:
  std::string command_;
  std::vector<std::pair<std::string, std::string>> arguments_;
};

// Who waits for an answer; it may have gone meanwhile.
struct Asker {
  std::uint32_t client = 0;
  std::uint64_t number = 0;                     // of the connection
};

// Thread: control. Never waits for a client.
class ControlSocket {
 public:
  struct Command {
    std::string name;
    std::vector<std::string> takes;             // the arguments that it knows
    // Answers by answer() or refuse(), once, now or later.
    std::function<void(const ControlAsked&, Asker)> run;
  };

  // `streams` may be null: then nothing can be watched. It outlives this.
  explicit ControlSocket(Streams* streams);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  void add(Command command) { commands_.push_back(std::move(command)); }
  // From now on clients come by `socket`; those that are there stay. Null: nobody comes.
  void listen(std::unique_ptr<UnixSocket> socket) { socket_ = std::move(socket); }
  const UnixSocket* socket() const { return socket_.get(); }

  // `members` is what stands behind "ok", such as `"generation":4`; may be empty.
  void answer(Asker to, std::string_view members = {});
  void refuse(Asker to, std::string_view sentence, std::string_view members = {});
  // Sends these streams, and no others, from now on.
  void watch(Asker who, const std::vector<Stream>& streams);

  // For the loop: what to wait for is appended, and handed to hear() when the wait is over; how long to wait at most
  // (-1: for ever).
  void wait_for(std::vector<pollfd>& fds);
  int timeout_ms() const { return streaming_ ? kStreamPauseMs : full_ ? kAcceptPauseMs : -1; }
  void hear(const pollfd* fds);
  // Says what it can without waiting, and lets everybody go.
  void close();

 private:
  static constexpr std::size_t kLineBytes = 16'384;
  static constexpr std::size_t kMostClients = 64;
  static constexpr std::size_t kAnswersBytes = 64u << 10;   // unread beyond this, no further command is begun
  static constexpr std::size_t kWatchBytes = 256u << 10;    // unread beyond this, lines are left out
  static constexpr int kStreamPauseMs = 5;                  // lines are sent in batches
  static constexpr int kAcceptPauseMs = 100;                // without descriptors

  struct Client {
    int fd = -1;
    std::uint64_t number = 0;
    std::string in, out;
    std::size_t sent = 0;                       // of `out`
    std::uint64_t dropped = 0;                  // lines, not told yet
    std::uint32_t watches = 0;                  // a bit for each stream
    bool answering = false;                     // a command is not answered yet
    bool working = false;                       // go_on() is under way
    bool ended = false;                         // it sends no more
    bool closing = false;                       // when `out` has left
    std::size_t unsent() const { return out.size() - sent; }
  };
  void accept();
  Client* find(Asker asker);
  void finish(Asker to, std::string line);
  void read(Client& c);
  void go_on(Client& c);
  void run(Client& c, std::string_view line);
  void flush(Client& c);
  void put_line(Client& c, std::string_view line);
  void tell_dropped(Client& c);
  void stream();
  void forget(Client& c);
  void sweep();

  Streams* const streams_;
  std::unique_ptr<UnixSocket> socket_;
  std::vector<Command> commands_;
  std::vector<std::unique_ptr<Client>> clients_;   // null: a free place
  std::vector<std::uint32_t> waited_;              // places in clients_, in the order of wait_for()
  std::uint64_t last_number_ = 0;
  bool listens_ = false;                           // wait_for() had the listener
  bool streaming_ = false;                         // lines came in the last look: look again soon
  bool full_ = false;                              // no descriptor was left: the queue stays readable, look away for a while
};

}  // namespace sluice::proxy
