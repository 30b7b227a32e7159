#include "backend/shared/division.h"

#include <algorithm>

namespace oxy::backend {

namespace {

using loop::LoopVariable;

// Parts of equal length are preferred if they are at least this share of the parts that could be had with a
// shorter one. Fewer are enough if they consist of whole steps, since then nothing at all is masked.
constexpr double kEvenEnough = 0.85;
constexpr double kWholeStepsEnough = 0.7;
constexpr int64_t kStep = 64;  // iterations of the last loop that is divided
// At most this share of the iterations of all parts is masked.
constexpr double kMostMasked = 0.125;

int64_t extent_of(const LoopVariable& loop) {
  return loop.extent.as_constant().value_or(1);  // a loop over a symbol stays whole
}

class Search {
 public:
  Search(const std::vector<LoopVariable>& loops, int64_t most) : loops_(loops), most_(most) {}

  // The most parts; `uneven`: the loop with a shorter last part, of `length` but for that.
  std::vector<int64_t> run(std::optional<size_t> uneven, int64_t length) {
    uneven_ = uneven;
    uneven_count_ = uneven ? (extent_of(loops_[*uneven]) + length - 1) / length : 1;
    current_.clear();
    best_.assign(loops_.size(), 1);
    best_total_ = 0;
    go(1);
    return best_;
  }
  int64_t total() const { return best_total_; }

 private:
  void go(int64_t total) {
    const size_t k = current_.size();
    if (k == loops_.size()) {
      if (total > best_total_) {
        best_total_ = total;
        best_ = current_;
      }
      return;
    }
    if (k == uneven_) return take(total, uneven_count_);
    const int64_t extent = extent_of(loops_[k]);
    for (int64_t count = std::min(extent, most_ / total); count >= 1 && best_total_ < most_; --count)
      if (extent % count == 0) take(total, count);
  }
  void take(int64_t total, int64_t count) {
    if (total * count > most_) return;
    current_.push_back(count);
    go(total * count);
    current_.pop_back();
  }

  const std::vector<LoopVariable>& loops_;
  int64_t most_;
  std::optional<size_t> uneven_;
  int64_t uneven_count_ = 1;
  std::vector<int64_t> current_, best_;
  int64_t best_total_ = 0;
};

}  // namespace

Division divide(const std::vector<LoopVariable>& loops, int64_t most, bool may_be_uneven, int64_t alignment) {
  Search search(loops, most);
  Division division;
  division.counts = search.run(std::nullopt, 1);
  division.total = search.total();
  int64_t uneven_length = 0;
  bool has_whole_steps = false;
  for (size_t k = 0; k < loops.size(); ++k)
    if (division.counts[k] > 1) has_whole_steps = extent_of(loops[k]) / division.counts[k] % kStep == 0;
  const double enough = has_whole_steps ? kWholeStepsEnough : kEvenEnough;
  const bool is_even_enough = static_cast<double>(division.total) >= enough * static_cast<double>(most);
  for (size_t k = 0; may_be_uneven && !is_even_enough && k < loops.size(); ++k) {
    const int64_t extent = extent_of(loops[k]);
    int64_t before = 0;
    for (int64_t count = std::min(extent, most); count > 1; --count) {
      int64_t length = (extent + count - 1) / count;
      if (k + 1 == loops.size()) length = (length + alignment - 1) / alignment * alignment;
      if (length == before) continue;
      before = length;
      const int64_t parts = (extent + length - 1) / length;
      if (static_cast<double>(parts * length - extent) > kMostMasked * static_cast<double>(parts * length))
        continue;
      std::vector<int64_t> counts = search.run(k, length);
      if (search.total() <= division.total) continue;
      const bool is_uneven = parts * length != extent;
      division = {std::move(counts), {}, is_uneven ? std::optional(k) : std::nullopt, search.total()};
      uneven_length = length;
      if (division.total == most) break;
    }
  }
  for (size_t k = 0; k < loops.size(); ++k)
    division.lengths.push_back(k == division.uneven      ? Expr(uneven_length)
                               : division.counts[k] == 1 ? loops[k].extent
                                                         : Expr(extent_of(loops[k]) / division.counts[k]));
  return division;
}

}  // namespace oxy::backend
