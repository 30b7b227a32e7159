// What explain() shows: the regions of the program that a call went through.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/state/metrics.h"

namespace oxy::driver {

struct Region {
  std::string function;
  std::string file;  // where it begins; empty for a call that is captured whole
  int line = 0;
  bool is_captured = false;  // otherwise eager runs it: `end` says why
  int64_t operators = 0;
  int64_t kernels = 0;
  int64_t extern_calls = 0;
  int64_t visits = 0;  // while it was watched
  std::vector<std::string> guards;
  std::optional<BreakRecord> end;  // why it ends where it does, or is not captured; none: it returns
};

// Collects regions while it lives, in the order of their first visits. One at a time: a second one watches
// nothing, so that explaining an explanation is harmless.
class RegionWatch {
 public:
  RegionWatch();
  ~RegionWatch();
  RegionWatch(const RegionWatch&) = delete;
  RegionWatch& operator=(const RegionWatch&) = delete;
  const std::vector<Region>& regions() const { return regions_; }

  // Null while nobody watches. With the GIL held.
  static RegionWatch* current();
  // Counts a visit. `key` tells regions apart; `describe` is called at the first visit.
  template <class Describe>
  void visit(const void* key, const Describe& describe) {
    const auto [it, inserted] = index_.try_emplace(key, regions_.size());
    if (inserted) regions_.push_back(describe());
    ++regions_[it->second].visits;
  }

 private:
  std::vector<Region> regions_;
  std::map<const void*, size_t> index_;
};

}  // namespace oxy::driver
