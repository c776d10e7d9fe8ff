#include "proxy/control_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vm/base/json.h"
#include "vm/base/number_text.h"

namespace sluice::proxy {
namespace {

std::string refusal(std::string_view sentence, std::string_view members = {}) {
  std::string line = "{\"ok\":false,\"error\":";
  append_json_text(line, sentence);
  if (!members.empty()) line.append(",").append(members);
  return line + "}\n";
}

// "a, b and c"
std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) out.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i]);
  return out;
}

}  // namespace

std::string control_path(const std::optional<std::string>& setting, const std::string& config) {
  const std::size_t slash = config.rfind('/');
  if (setting) {
    if (setting->empty() || setting->front() == '/' || slash == config.npos) return *setting;
    return config.substr(0, slash + 1) + *setting;
  }
  const std::size_t name = slash == config.npos ? 0 : slash + 1;
  const std::size_t dot = config.rfind('.');
  return (dot == config.npos || dot <= name ? config : config.substr(0, dot)) + ".sock";
}

Result<ControlAsked, std::string> ControlAsked::read(std::string_view line) {
  using Read = Result<ControlAsked, std::string>;
  ControlAsked asked;
  const std::size_t first = line.find_first_not_of(" \t\r");
  const bool is_object = first != line.npos && line[first] == '{' && json_each(line, [&asked](std::string_view name, std::string_view raw) {
    if (name == "do" && json_is_text(raw)) asked.command_ = json_unquote(raw);
    else asked.arguments_.emplace_back(name, raw);
  });
  if (!is_object) return Read::failure("a command is a line with a JSON object, such as {\"do\":\"stats\"}");
  if (asked.command_.empty()) return Read::failure("a command says what in \"do\", such as {\"do\":\"stats\"}");
  return asked;
}

std::string_view ControlAsked::raw(std::string_view name) const {
  for (const auto& [its_name, value] : arguments_)
    if (its_name == name) return value;
  return {};
}

std::optional<std::string> ControlAsked::text(std::string_view name) const {
  const std::string_view value = raw(name);
  if (!json_is_text(value)) return std::nullopt;
  return json_unquote(value);
}

std::optional<double> ControlAsked::number(std::string_view name) const { return read_number(raw(name)); }

std::optional<std::vector<std::string>> ControlAsked::texts(std::string_view name) const {
  const std::string_view value = raw(name);
  if (value.empty() || value.front() != '[') return std::nullopt;
  std::vector<std::string> all;
  bool good = true;
  json_each(value, [&](std::string_view, std::string_view one) {
    good = good && json_is_text(one);
    if (good) all.push_back(json_unquote(one));
  });
  if (!good) return std::nullopt;
  return all;
}

ControlSocket::ControlSocket(Streams* streams) : streams_(streams) {}
ControlSocket::~ControlSocket() { close(); }

void ControlSocket::close() {
  socket_.reset();
  if (streams_) stream();
  for (auto& c : clients_) {
    if (!c) continue;
    flush(*c);
    ::close(c->fd);
    c.reset();
  }
  clients_.clear();
  waited_.clear();
  sweep();
}

ControlSocket::Client* ControlSocket::find(Asker asker) {
  if (asker.client >= clients_.size()) return nullptr;
  Client* const c = clients_[asker.client].get();
  return c != nullptr && c->number == asker.number ? c : nullptr;
}

void ControlSocket::answer(Asker to, std::string_view members) {
  std::string line = "{\"ok\":true";
  if (!members.empty()) line.append(",").append(members);
  finish(to, line + "}\n");
}

void ControlSocket::refuse(Asker to, std::string_view sentence, std::string_view members) { finish(to, refusal(sentence, members)); }

void ControlSocket::finish(Asker to, std::string line) {
  Client* const c = find(to);
  if (c == nullptr || !c->answering) return;
  c->answering = false;
  c->out.append(line);
  if (c->working) return;
  go_on(*c);
  sweep();
}

void ControlSocket::watch(Asker who, const std::vector<Stream>& streams) {
  Client* const c = find(who);
  if (c == nullptr) return;
  c->watches = 0;
  for (const Stream s : streams) c->watches |= 1u << static_cast<unsigned>(s);
  sweep();
}

void ControlSocket::wait_for(std::vector<pollfd>& fds) {
  listens_ = socket_ != nullptr && !full_;
  if (listens_) fds.push_back({socket_->fd(), POLLIN, 0});
  if (streams_) fds.push_back({streams_->wake().fd(), POLLIN, 0});
  waited_.clear();
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    if (!clients_[i]) continue;
    const Client& c = *clients_[i];
    // Commands beyond the one that is answered stay in the socket, and in one line's room here.
    const bool reads = !c.ended && !c.closing && c.in.size() < kLineBytes && c.unsent() < kAnswersBytes;
    waited_.push_back(i);
    fds.push_back({c.fd, static_cast<short>((reads ? POLLIN : 0) | (c.unsent() != 0 ? POLLOUT : 0)), 0});
  }
}

void ControlSocket::hear(const pollfd* fds) {
  const bool comes = listens_ && (fds++)->revents != 0;
  full_ = false;
  if (streams_) {
    if (fds->revents != 0) {
      streams_->wake().quiet();
      streaming_ = true;
    }
    ++fds;
    if (streaming_) stream();
  }
  for (const std::uint32_t place : waited_) {
    const short what = (fds++)->revents;
    Client* const c = clients_[place].get();
    if (c == nullptr || what == 0) continue;
    if ((what & POLLOUT) != 0) flush(*c);
    if ((what & POLLIN) != 0) read(*c);
    // Both halves are closed: whatever is asked, nobody reads the answer.
    if ((what & (POLLHUP | POLLERR | POLLNVAL)) != 0 && (what & POLLIN) == 0) forget(*c);
    else go_on(*c);
  }
  if (comes) accept();
  sweep();
}

void ControlSocket::accept() {
  while (socket_) {
    const int fd = accept4(socket_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      full_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return;
    }
    std::size_t place = 0;
    while (place < clients_.size() && clients_[place]) ++place;
    if (place == kMostClients) {
      const std::string line = refusal("there are " + std::to_string(kMostClients) + " clients already");
      [[maybe_unused]] const ssize_t n = send(fd, line.data(), line.size(), MSG_NOSIGNAL);
      ::close(fd);
      continue;
    }
    if (place == clients_.size()) clients_.emplace_back();
    clients_[place] = std::make_unique<Client>();
    clients_[place]->fd = fd;
    clients_[place]->number = ++last_number_;
  }
}

void ControlSocket::read(Client& c) {
  std::array<char, 4096> bytes;
  while (c.in.size() < kLineBytes) {
    const ssize_t n = recv(c.fd, bytes.data(), std::min(bytes.size(), kLineBytes - c.in.size()), 0);
    if (n > 0) {
      c.in.append(bytes.data(), static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || errno != EAGAIN) c.ended = true;
    return;
  }
}

void ControlSocket::go_on(Client& c) {
  c.working = true;
  while (!c.answering && !c.closing) {
    // What has no room waits for the socket's: then this is called again.
    if (c.unsent() >= kAnswersBytes) flush(c);
    if (c.unsent() >= kAnswersBytes) break;
    const std::size_t end = c.in.find('\n');
    if (end == c.in.npos) {
      if (c.in.size() >= kLineBytes) {
        c.out.append(refusal("a line has at most " + std::to_string(kLineBytes) + " bytes"));
        c.closing = true;
      } else if (c.ended) {
        // What has no line feed is no command: its end may be missing. Who watches may have closed its sending half.
        c.closing = c.watches == 0;
      }
      break;
    }
    const std::string line = c.in.substr(0, end);
    c.in.erase(0, end + 1);
    if (line.find_first_not_of(" \t\r") != line.npos) run(c, line);
  }
  c.working = false;
  flush(c);
}

void ControlSocket::run(Client& c, std::string_view line) {
  const Result<ControlAsked, std::string> asked = ControlAsked::read(line);
  if (!asked) {
    c.out.append(refusal(asked.error()));
    return;
  }
  std::vector<std::string> names;
  for (const Command& command : commands_) {
    names.push_back(command.name);
    if (command.name != asked->command()) continue;
    for (const auto& [name, value] : asked->arguments()) {
      if (std::find(command.takes.begin(), command.takes.end(), name) != command.takes.end()) continue;
      c.out.append(refusal(command.name + " takes " + (command.takes.empty() ? "no arguments" : listed(command.takes)) + ", not `" + name + "`"));
      return;
    }
    c.answering = true;
    const auto place = std::find_if(clients_.begin(), clients_.end(), [&c](const auto& other) { return other.get() == &c; });
    command.run(*asked, {static_cast<std::uint32_t>(place - clients_.begin()), c.number});
    return;
  }
  c.out.append(refusal("there is no command `" + asked->command() + "`; there are " + listed(names)));
}

void ControlSocket::flush(Client& c) {
  while (c.unsent() != 0) {
    const ssize_t n = send(c.fd, c.out.data() + c.sent, c.unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {                                 // it has gone
      c.out.clear();
      c.sent = 0;
      c.dropped = 0;
      c.closing = true;
      return;
    }
    c.sent += static_cast<std::size_t>(n);
    if (c.unsent() == 0) tell_dropped(c);
  }
  c.out.clear();
  c.sent = 0;
}

void ControlSocket::tell_dropped(Client& c) {
  if (c.dropped == 0) return;
  c.out.append("{\"dropped\":" + std::to_string(std::exchange(c.dropped, 0)) + "}\n");
}

void ControlSocket::put_line(Client& c, std::string_view line) {
  if (c.unsent() + line.size() > kWatchBytes) {
    ++c.dropped;
    return;
  }
  if (c.sent > kWatchBytes) {
    c.out.erase(0, c.sent);
    c.sent = 0;
  }
  tell_dropped(c);
  c.out.append(line);
}

void ControlSocket::stream() {
  const auto each = [this](Stream s, auto&& f) {
    for (auto& c : clients_)
      if (c && !c->closing && (c->watches >> static_cast<unsigned>(s) & 1) != 0) f(*c);
  };
  streaming_ = streams_->drain([&](Stream s, std::string_view line) { each(s, [&](Client& c) { put_line(c, line); }); },
                               [&](Stream s, std::uint64_t n) { each(s, [n](Client& c) { c.dropped += n; }); });
  for (auto& c : clients_)
    if (c && c->watches != 0) {
      flush(*c);
      if (c->unsent() == 0) tell_dropped(*c);
    }
}

void ControlSocket::forget(Client& c) {
  c.out.clear();
  c.sent = 0;
  c.closing = true;
}

// Closes who is done, and sees to it that only what somebody follows is said.
void ControlSocket::sweep() {
  std::uint32_t wanted = 0;
  for (auto& c : clients_) {
    if (!c) continue;
    if (c->closing && c->unsent() == 0) {
      ::close(c->fd);
      c.reset();
    } else {
      wanted |= c->watches;
    }
  }
  if (!streams_) return;
  for (std::size_t i = 0; i < kStreams.size(); ++i) streams_->watch(static_cast<Stream>(i), (wanted >> i & 1) != 0);
  if (wanted == 0) streaming_ = false;
}

}  // namespace sluice::proxy
