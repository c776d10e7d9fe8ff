// A request as Lua sees it: the client's own, read only, or one that the route made and may edit.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lua/box.h"
#include "proxy/request.h"
#include "proxy/route.h"

namespace sluice::lua {

// Thread: worker. Life: its slot's. `alive` is false between two requests, and Lua that kept it gets an error.
struct RequestObject {
  struct Field {
    std::string name, value;
  };

  bool alive = false;
  bool owned = false;
  // Not owned:
  const proxy::Request* live = nullptr;
  std::string_view live_path;                         // behind what mounting trimmed; starts with '/'
  std::vector<proxy::Match::Captured> captured;
  // Owned. Strings keep their capacity; the counts say how many of them mean something.
  proxy::Method method = proxy::Method::get;
  std::string path;
  std::vector<Field> query, headers;
  std::size_t query_count = 0, header_count = 0;
  std::string body;
  bool has_body = false;
  std::string own_key;                                // of pools, when set by the route

  int ref = LUA_NOREF;                                // of its userdata
  Box* box = nullptr;

  void reset_owned();
  void set_query(std::string_view name, std::string_view value);    // replaces
  void drop_query(std::string_view name);
  void set_header(std::string_view name, std::string_view value);
  void add_header(std::string_view name, std::string_view value);   // one more of that name
  void drop_header(std::string_view name);

  proxy::Method its_method() const { return owned ? method : live->method; }
  std::string_view its_path() const { return owned ? std::string_view(path) : live_path; }
  std::string_view its_body() const { return owned ? std::string_view(body) : live->body.view(); }
  // What a pool hashes: what the route set, else proxy::distribution_key().
  std::string_view its_key() const;
};

// "GET" and so on; other: not a method that routes can send.
proxy::Method method_named(std::string_view name);

void register_request(lua_State* L);

}  // namespace sluice::lua
