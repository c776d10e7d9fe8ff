// What holds for every module whatever it is asked: the modules of configs/modules under thousands of random requests.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "t/tools/play.h"
#include "t/tools/random_requests.h"
#include "vm/base/hash.h"

namespace sluice::tools {
namespace {

// Costs by the byte come on top of the static bound: at most so much for texts as long as those that are sent here.
constexpr std::uint64_t kBytesFuel = 5'000;
constexpr int kDerivedEvery = 50;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path.string());
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

std::vector<std::filesystem::path> modules() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_MODULES))
    if (entry.path().extension() == ".aup") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  REQUIRE(out.size() >= 12);
  return out;
}

std::uint64_t hash_of(std::uint64_t hash, std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  hash = xxh64({reinterpret_cast<const char*>(&size), sizeof size}, hash);
  return xxh64(bytes, hash);
}

std::uint64_t hash_of(const vm::MemoryRecords::Map& contents) {
  std::uint64_t hash = 0;
  for (const auto& [key, value] : contents) hash = hash_of(hash_of(hash, key), value);
  return hash;
}

Answer send(Player& player, const Request& request) {
  player.set_clock(request.clock_ms);
  if (request.timer.empty()) return player.ask(request.method, request.target, request.headers, request.body);
  bool found = false;
  Answer answer = player.fire(request.timer, found);
  REQUIRE(found);
  return answer;
}

bool is_key(const vm::Module& module, const Request& request) {
  const vm::Input* in = module.find_input(request.asked.substr(request.asked.find(' ') + 1));
  return request.asked.starts_with("on ") && in != nullptr && in->kind == vm::InputKind::key;
}

struct Ran {
  std::vector<Request> log;
  std::uint64_t store = 0, answers = 0;       // hashes
  std::set<std::string> succeeded;            // what of the module was asked and answered 200 or 204
};

// Asks, and checks after every request.
Ran run(const std::filesystem::path& path, int rounds, std::uint64_t seed) {
  const std::unique_ptr<Player> player = player_of(read(path), path.string());
  std::filesystem::path calls = path;
  calls.replace_extension(".calls");
  Result<std::vector<Step>, std::string> steps = parse_calls(read(calls));
  REQUIRE(steps);
  RandomRequests requests(player->module(), *steps, seed);
  Ran out;
  out.store = hash_of(player->store().contents());
  for (int i = 0; i < rounds; ++i) {
    const Request request = requests.next();
    INFO(path.filename().string() << ", request " << i << ": " << request.method << ' ' << request.target << request.timer
                                  << " body " << request.body);
    const std::uint64_t seq = player->seq();
    const Answer answer = send(*player, request);
    requests.learn(request, answer);
    const std::uint64_t store = hash_of(player->store().contents());
    if (player->seq() == seq) CHECK_MESSAGE(store == out.store, "what counts as no change changed the store");
    // A key's two edges are two events: one may stay when the other fails.
    if (answer.status >= 400 && !is_key(player->module(), request)) CHECK(store == out.store);
    if (answer.status < 300) out.succeeded.insert(request.asked);
    if (player->fuel_bound() != 0) CHECK(player->fuel_used() <= player->fuel_bound() + kBytesFuel);
    CHECK_MESSAGE(answer.status < 500, answer.body);
    if (i % kDerivedEvery == 0) CHECK(player->store().check_derived() == "");
    out.answers = hash_of(out.answers, write_answer(answer));
    out.store = store;
    out.log.push_back(request);
  }
  CHECK(player->store().check_derived() == "");
  return out;
}

int rounds() {
  const char* asked = std::getenv("SLUICE_PROPERTY_ROUNDS");
  return asked != nullptr ? std::max(1, std::atoi(asked)) : 300;
}

TEST_CASE("a failed request leaves the whole store as it was, what is derived equals a rebuild, fuel stays in its bound") {
  for (const std::filesystem::path& path : modules()) {
    std::set<std::string> succeeded;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) succeeded.merge(run(path, rounds(), seed).succeeded);
    // Whatever is asked is asked in earnest: everything that the module has succeeds at times.
    const std::unique_ptr<const vm::Module> module = module_of(read(path));
    for (const vm::Input& in : module->inputs)
      CHECK_MESSAGE(succeeded.count("on " + in.name) == 1, path.filename().string() << ": " << in.name << " never succeeds");
    for (const vm::View& v : module->views)
      CHECK_MESSAGE(succeeded.count("view " + v.name) == 1, path.filename().string() << ": " << v.name << " never succeeds");
  }
}

// The hashes are kept in a file, so that every compiler and machine that builds this is compared with every other.
TEST_CASE("the same events give the same store and the same answers, here and everywhere") {
  std::string hashes;
  for (const std::filesystem::path& path : modules()) {
    const Ran first = run(path, 500, 2);
    const std::unique_ptr<Player> again = player_of(read(path));
    std::uint64_t answers = 0;
    for (const Request& request : first.log) answers = hash_of(answers, write_answer(send(*again, request)));
    CHECK(hash_of(again->store().contents()) == first.store);
    CHECK(answers == first.answers);
    char line[128];
    std::snprintf(line, sizeof line, "%-12s store %016" PRIx64 " answers %016" PRIx64 "\n", path.stem().c_str(), first.store,
                  first.answers);
    hashes += line;
  }
  const std::string kept = read(SLUICE_HASHES);
  CHECK_MESSAGE(hashes == kept, "these came, and others are in " SLUICE_HASHES ":\n" << hashes);
}

}  // namespace
}  // namespace sluice::tools
