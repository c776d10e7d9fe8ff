// Counted read transactions: begun, shared by the loans of one commit, kept for the next.
#include <algorithm>

#include "store/impl.h"
#include "vm/base/check.h"

namespace sluice::store {

Generations::~Generations() { SLUICE_CHECK(in_use_.empty() && idle_.empty()); }

Result<Loan> Generations::begin(MDB_env* env, const Dbis& dbis) {
  Generation* made = nullptr;
  {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Generation> generation;
    int rc = 0;
    if (!idle_.empty()) {
      generation = std::move(idle_.back());
      idle_.pop_back();
      rc = mdb_txn_renew(generation->txn);
      if (rc) {
        generation->cursor.reset();
        mdb_txn_abort(generation->txn);
      }
    } else {
      generation = std::make_unique<Generation>();
      generation->dbis = &dbis;
      generation->home = this;
      rc = mdb_txn_begin(env, nullptr, MDB_RDONLY, &generation->txn);
    }
    if (rc) return lmdb_error(rc, "no snapshot can be taken");
    generation->commit = mdb_txn_id(generation->txn);
    made = generation.get();
    in_use_.push_back(std::move(generation));
  }
  return Loan(made, [](const Generation* g) { g->home->end(g); });
}

void Generations::end(const Generation* generation) {
  std::lock_guard lock(mutex_);
  auto at = std::find_if(in_use_.begin(), in_use_.end(), [&](const auto& g) { return g.get() == generation; });
  SLUICE_CHECK(at != in_use_.end());
  mdb_txn_reset((*at)->txn);
  (*at)->cursor_renewed = false;
  idle_.push_back(std::move(*at));
  *at = std::move(in_use_.back());
  in_use_.pop_back();
}

std::uint64_t Generations::alive() const {
  std::lock_guard lock(mutex_);
  return in_use_.size();
}

std::uint64_t Generations::oldest(std::uint64_t otherwise) const {
  std::lock_guard lock(mutex_);
  std::uint64_t oldest = otherwise;
  for (const auto& g : in_use_) oldest = std::min(oldest, g->commit);
  return oldest;
}

void Generations::finish() {
  std::lock_guard lock(mutex_);
  // A loan that is still out points into the mapping that is about to go.
  SLUICE_CHECK(in_use_.empty());
  for (auto& g : idle_) {
    g->cursor.reset();
    mdb_txn_abort(g->txn);
  }
  idle_.clear();
}

}  // namespace sluice::store
