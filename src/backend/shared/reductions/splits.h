// Into how many parts reductions are divided, and into how many else they might be: mode="max-autotune" tries
// these on the device (tuned_splits.h).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "loop/program.h"

namespace oxy::backend {

// What the best number of parts depends on. Symbols count as their estimates.
struct ReductionShape {
  loop::ReductionKind kind = loop::ReductionKind::None;
  int64_t results = 1;
  int64_t elements = 1;  // of one result
  bool is_row = false;   // these lie side by side
  auto operator<=>(const ReductionShape&) const = default;
};

// Rows whose columns are added up by the kernel that reduces the rows (row_sums.h).
struct RowsShape {
  int64_t count = 1;
  int64_t length = 1;
  auto operator<=>(const RowsShape&) const = default;
};

using Divided = std::variant<ReductionShape, RowsShape>;

std::string to_string(const Divided& divided);  // "768 sums of 2048 elements"

// Parts of each result, and 1 where it stays whole; for rows, programs among which they are divided, and 0
// where their columns are added up on their own.
using PartCount = int64_t;

struct PartChoice {
  PartCount taken = 1;
  std::vector<PartCount> others;  // that are worth a trial
};

struct Splits {
  std::map<Divided, PartCount> tuned;  // in place of what the costs say
  std::map<Divided, PartChoice> made;  // of what is not tuned

  // The tuned number if there is one, else `choice.taken`.
  PartCount take(const Divided& divided, PartChoice choice) {
    const auto found = tuned.find(divided);
    if (found != tuned.end()) return found->second;
    return made.insert_or_assign(divided, std::move(choice)).first->second.taken;
  }
};

}  // namespace oxy::backend
