#include "tools/sluicectl.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace sluice::tools;

TEST_CASE("a tree of JSON is names and values") {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(flatten(R"({"a":{"b":1,"c":"x y"},"d":[true,{"e":null}],"f":{},"g":2.5})") ==
        Pairs{{"a.b", "1"}, {"a.c", "x y"}, {"d.0", "true"}, {"d.1.e", "null"}, {"g", "2.5"}});
  CHECK(flatten("7") == Pairs{{"", "7"}});
}

TEST_CASE("counters are lines; names and sections select, and what nothing has is told") {
  const std::string answer = R"({"ok":true,"server":{"active":0,"accepted":3},"stores":{"quota":{"shards":1,"bursts":2}},"user":{"hits":4,"hitstory":5}})";
  std::vector<std::string> missing;
  CHECK(show_stats(answer, {}, missing) == "active 0\naccepted 3\nstores.quota.shards 1\nstores.quota.bursts 2\nuser.hits 4\nuser.hitstory 5\n");
  CHECK(show_stats(answer, {"user.hits", "accepted"}, missing) == "accepted 3\nuser.hits 4\n");
  CHECK(show_stats(answer, {"server"}, missing) == "active 0\naccepted 3\n");
  CHECK(show_stats(answer, {"stores"}, missing) == "stores.quota.shards 1\nstores.quota.bursts 2\n");
  CHECK(missing.empty());
  CHECK(show_stats(answer, {"activ", "user.hit", "active"}, missing) == "active 0\n");
  CHECK(missing == std::vector<std::string>{"activ", "user.hit"});
}

TEST_CASE("generations are lines, and what each worker holds of them") {
  CHECK(show_generations(R"({"ok":true,"generation":4,"generations":[{"generation":3,"since":"S","serves":false,"workers":[
          {"worker":1,"requests":1,"events":2,"kept":3,"slots":4,"slots_in_use":1,"memory_bytes":5,"oldest":"GET /slow","oldest_us":6}]},
          {"generation":4,"since":"T","serves":true,"workers":[{"worker":0,"requests":0,"events":0,"kept":0,"slots":2,"slots_in_use":0,"memory_bytes":7}]}]})") ==
        "generation 3, since S\n  worker 1: 1 requests, 2 events, 3 behind their answers, 1 of 4 slots, 5 bytes of Lua; the oldest request is GET /slow, 6 us\n"
        "generation 4, since T, serves\n  worker 0: 0 requests, 0 events, 0 behind their answers, 0 of 2 slots, 7 bytes of Lua\n");
}

TEST_CASE("a line of a stream has its time, stream and level, then names and values") {
  CHECK(show_line(R"({"stream":"user","time":"T","level":"info","worker":0,"text":"two words"})") == "T user info worker=0 text=\"two words\"");
  CHECK(show_line(R"({"stream":"requests","time":"T","level":"info","worker":1,"method":"GET","path":"/x","elapsed":0.000120})") ==
        "T requests info worker=1 method=GET path=/x elapsed=0.000120");
  CHECK(show_line(R"({"dropped":12})") == "dropped=12");
  // Whatever a client can write into a log stays one line, and its end can be seen.
  CHECK(show_line("{\"stream\":\"user\",\"time\":\"T\",\"level\":\"info\",\"text\":\"a=b\\n\\u001b[31m\",\"empty\":\"\",\"quote\":\"\\\"\"}") ==
        "T user info text=\"a=b\\n\\u001b[31m\" empty=\"\" quote=\"\\\"\"");
}
