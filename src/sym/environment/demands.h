// Demands: what has to hold at a later call, and how little of it has to be checked.
#pragma once

#include <string>
#include <vector>

#include "sym/relations/condition.h"

namespace oxy::sym {

// A condition and the user's lines that asked for it.
struct Demand {
  Condition condition;
  std::vector<std::string> asked_at;
};

// Fewer and simpler demands that the same assignments satisfy, given the ranges of the variables as they
// stand in the conditions: none follows from the others as far as Facts tell, equal variables are one, and
// both bounds of an expression are one demand. A demand's lines are those of what it was made from.
std::vector<Demand> minimal(std::vector<Demand> demands);

}  // namespace oxy::sym
