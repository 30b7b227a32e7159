// The regions of the program that a call went through, for oxyfuel.explain().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/state/metrics.h"
#include "guards/symbol_guards.h"
#include "runtime/execution/executable.h"

namespace oxy::driver {

struct Region {
  std::string function;
  std::string file;  // where it begins; empty for a call that is captured whole
  int line = 0;
  bool is_captured = false;  // false: it runs in eager, and `end` says why
  bool is_pending = false;   // it runs in eager while its kernels are compiled
  int64_t operators = 0;
  int64_t kernels = 0;
  int64_t extern_calls = 0;
  runtime::DeviceGraphState device_graphs;
  int64_t visits = 0;  // calls that went through it during the watch
  std::vector<std::string> guards;
  std::vector<guards::DescribedSymbol> symbols;
  std::optional<BreakRecord> end;  // why it ends early, or is not captured; nothing: it ends with a return
};

// Collects regions while it lives, in the order of their first visits. Only one is active at a time. A second
// one collects nothing, so explain() inside of explain() is harmless.
class RegionWatch {
 public:
  RegionWatch();
  ~RegionWatch();
  RegionWatch(const RegionWatch&) = delete;
  RegionWatch& operator=(const RegionWatch&) = delete;
  const std::vector<Region>& regions() const { return regions_; }

  // The active one, or null. The GIL is held.
  static RegionWatch* current();
  // Counts a visit. `key`: an address that tells regions apart. `describe` gives the Region at the first
  // visit.
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
