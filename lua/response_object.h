// A response as Lua sees it: how a store or another route answered, or one that the route made.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lua/box.h"
#include "proxy/event.h"
#include "proxy/response.h"

namespace sluice::lua {

// The set of numbers that RES_* and WAIT_* share.
enum class Class : std::uint8_t { none = 0, any = 1, ok = 2, good = 3 };
inline constexpr int kWaitFastGood = 4;
inline constexpr int kWaitResume = 5;

inline Class class_of(std::uint16_t status) {
  if ((status >= 200 && status < 300) || status == 304) return Class::good;
  return status >= 300 && status < 500 ? Class::ok : Class::any;
}

// Where a header is written that has no text of its own.
using HeaderRoom = std::array<char, 40>;

// Thread: worker. Life: its slot's, like RequestObject.
struct ResponseObject {
  bool alive = false;
  bool owned = false;
  bool kept = false;                  // made by the generator: every request of the slot may return it
  bool passed_on = false;             // its body has gone to the client
  proxy::EventPtr event;              // of a store; nullptr: `response` holds it
  proxy::Response response;
  std::uint64_t elapsed_us = 0;
  std::string_view backend;           // the store's or route's name. Life: the generation's
  int ref = LUA_NOREF;
  Box* box = nullptr;

  std::uint16_t status() const { return event ? event->answer.status : response.status; }
  const proxy::Body& body() const { return event ? event->answer.body : response.body; }
  std::uint64_t revision() const { return event ? event->answer.revision : response.revision; }
  std::string_view error_name() const { return name(event ? event->answer.error : response.error); }
  std::string_view content_type() const { return event ? proxy::text_of(event->answer.type) : response.content_type; }
  // As a client would see it. Life: the object's, or the room's.
  std::optional<std::string_view> header(std::string_view wanted, HeaderRoom& room) const;
  // Those of its own lines, and its type.
  template <class F>
  void each_header(F&& f) const;
  // Moves the answer into `out`, which is reset; of a kept one it copies.
  void pass_on(proxy::Response& out);
};

// The next of "name: value\r\n" lines, which is taken off `lines`; false: there is none.
bool next_header_line(std::string_view& lines, std::string_view& name, std::string_view& value);
void drop_header_line(std::string& lines, std::string_view name);   // all of that name
// What a route's own headers may have in one answer. Setting one looks through all: a table of a hundred thousand took the
// worker away for 20 s, and few clients take more.
inline constexpr std::size_t kHeaderLinesBytes = 32 * 1024;
// Appends "name: value\r\n". Errors: false when it may not be sent, or with it they were more than that.
bool append_header(std::string& lines, std::string_view name, std::string_view value);
// Drops what `r` has under that name, its own lines and what the server would write by itself, so that a value put there
// stands alone.
void drop_header(proxy::Response& r, std::string_view name);

template <class F>
void ResponseObject::each_header(F&& f) const {
  if (!content_type().empty()) f(std::string_view("Content-Type"), content_type());
  if (event) return;
  std::string_view lines = response.headers, name, value;
  while (next_header_line(lines, name, value)) f(name, value);
}

// `decode` is cjson's, in the registry under this name.
inline constexpr const char* kJsonDecode = "sluice.json_decode";
void register_response(lua_State* L);

}  // namespace sluice::lua
