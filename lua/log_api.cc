#include "lua/log_api.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>

#include "lua/box.h"
#include "lua/context_args.h"
#include "lua/response_object.h"

namespace sluice::lua {
namespace {

// Of what clients choose: a line stays a line one can read.
constexpr std::size_t kPathBytes = 300, kDetailBytes = 150, kWordBytes = 64;

using proxy::Field;

int worker_of(const Home& h) { return h.services != nullptr ? h.services->worker_index() : proxy::Streams::kNoWorker; }

Home& home(lua_State* L) { return *static_cast<Home*>(lua_touserdata(L, lua_upvalueindex(1))); }

const ResponseObject* response_at(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return nullptr;
  const ResponseObject& r = check_boxed<ResponseObject>(L, index, Kind::response, "a response");
  if (!r.alive) luaL_error(L, "a response that is no more: its request is answered");
  return &r;
}

// Spaces would end a word of the line.
void add_word(std::string& line, std::string_view value, std::size_t most) {
  for (const char c : value.substr(0, most)) line.push_back(c == ' ' ? '+' : c);
  if (value.size() > most) line.append("...");
}

std::size_t most_of(std::string_view field) {
  return field == "path" ? kPathBytes : field == "client" ? 64 : field == "backend" ? 80 : kWordBytes;
}

// The arguments from `first` on: request, response or nil, detail, cfd.
void write_line(lua_State* L, Home& h, int first) {
  const RequestObject& request = live_request_at(L, first);
  const ResponseObject* response = response_at(L, first + 1);
  const std::string_view detail = lua_isnoneornil(L, first + 2) ? std::string_view() : (luaL_checkstring(L, first + 2), text_at(L, first + 2));
  const double cfd = luaL_optnumber(L, first + 3, -1);
  std::array<Field, 10> fields;
  std::size_t n = 0;
  fields[n++] = {"method", proxy::name(request.its_method())};
  fields[n++] = {"path", request.owned ? std::string_view(request.path) : request.live->path};
  char elapsed[32];
  if (response) {
    static constexpr const char* kClasses[] = {"none", "any", "ok", "good"};
    const int length = std::snprintf(elapsed, sizeof elapsed, "%.6f", static_cast<double>(response->elapsed_us) / 1e6);
    fields[n++] = {"status", std::uint64_t{response->status()}};
    fields[n++] = {"class", kClasses[static_cast<int>(class_of(response->status()))]};
    fields[n++] = {"error", response->error_name()};
    fields[n++] = Field::raw("elapsed", {elapsed, static_cast<std::size_t>(length)});
    if (!response->backend.empty()) fields[n++] = {"backend", response->backend};
  }
  if (!request.owned) fields[n++] = {"client", request.live->client_ip};
  if (cfd >= 0 && cfd <= 1e9) fields[n++] = {"cfd", static_cast<std::uint64_t>(cfd)};
  // The last, so that it may have spaces.
  if (!detail.empty()) fields[n++] = {"detail", detail.substr(0, kDetailBytes)};

  if (h.log->takes(proxy::LogLevel::info)) {
    std::string& line = h.scratch;
    line.assign("req");
    for (std::size_t i = 0; i < n; ++i) {
      const Field& f = fields[i];
      line.append(" ").append(f.name).append("=");
      if (f.kind == Field::Kind::number) line.append(std::to_string(f.number));
      else if (f.name == "detail") line.append(f.text);
      else add_word(line, f.text, most_of(f.name));
    }
    h.log->write(proxy::LogLevel::info, line);
  }
  if (h.log->watched(proxy::Stream::requests))
    h.log->streams()->say(proxy::Stream::requests, proxy::LogLevel::info, worker_of(h), std::span<const Field>(fields.data(), n));
}

bool wanted(const Home& h) {
  return h.log != nullptr && (h.log->takes(proxy::LogLevel::info) || h.log->watched(proxy::Stream::requests));
}

// log_req(request, response or nil [, detail [, cfd]])
int log_req(lua_State* L) {
  Home& h = home(L);
  live_request_at(L, 1);
  response_at(L, 2);
  if (wanted(h)) write_line(L, h, 1);
  return 0;
}

// log_reqsample(ms, rate, all_errors, request, response or nil [, detail [, cfd]]): when it is an error and all of those are
// wanted, or took longer than ms, or is one of `rate`. 0: not by that. Returns whether it was written.
int log_reqsample(lua_State* L) {
  Home& h = home(L);
  const double ms = luaL_checknumber(L, 1), rate = luaL_checknumber(L, 2);
  const bool errors = lua_toboolean(L, 3) != 0;
  if (!(ms >= 0) || !(rate >= 0 && rate <= 1e9) || rate != std::floor(rate))
    return luaL_error(L, "log_reqsample: the deadline is milliseconds from 0, the rate a whole number from 0");
  live_request_at(L, 4);
  const ResponseObject* response = response_at(L, 5);
  if (!wanted(h)) {
    lua_pushboolean(L, 0);
    return 1;
  }
  bool take = rate >= 1 && h.draw(static_cast<std::uint64_t>(rate)) == 0;
  if (response) {
    take = take || (errors && class_of(response->status()) == Class::any);
    take = take || (ms > 0 && static_cast<double>(response->elapsed_us) > ms * 1000);
  } else {
    take = take || errors;
  }
  if (take) write_line(L, h, 4);
  lua_pushboolean(L, take);
  return 1;
}

}  // namespace

void write_text(const Home& home, proxy::LogLevel level, std::string_view text) {
  if (home.log == nullptr) return;
  if (home.log->takes(level)) home.log->write(level, text);
  if (home.log->watched(proxy::Stream::user))
    home.log->streams()->say(proxy::Stream::user, level, worker_of(home), {{"text", text}});
}

void open_request_log(lua_State* L, const Home& its_home) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kPublic[] = {{"log_req", log_req}, {"log_reqsample", log_reqsample}, {nullptr, nullptr}};
  lua_getglobal(L, "sluice");
  push_pointer(L, &its_home);
  luaL_setfuncs(L, kPublic, 1);
}

}  // namespace sluice::lua
