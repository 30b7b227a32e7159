// The numbers of a prepared plan that differ between sets of sizes.
// A plan with symbolic sizes is prepared once. For other sizes write() puts the values that its expressions
// have then where the prepared plan has them.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/call_site.h"
#include "runtime/execution/prepared_plan.h"
#include "runtime/execution/specialise.h"

namespace oxy::runtime {

struct NumberPlace {
  int64_t* target;    // in the prepared plan
  size_t expression;  // SymbolicPlan::value()
};

// A call whose way depends on numbers that differ.
struct SizedCall {
  size_t step;  // in the prepared plan
  CallSite site;
  bool has_numbers = false;  // among its arguments that are no tensors
  Invoke general;            // the general way, once it was needed; serves all sizes unless has_numbers
};

struct PlanNumbers {
  std::vector<NumberPlace> places;
  std::vector<SizedCall> calls;
};

// Chooses the way of a call for the sizes that its site has.
Invoke choose_way(const DeviceRuntime& runtime, SizedCall& call);
// What follows from the numbers of a plan: which launches have work, which outputs share blocks of memory.
void derive(PreparedPlan& plan);
// For the sizes that `symbolic` evaluated last. `plan` was prepared from it.
void write(PlanNumbers& numbers, SymbolicPlan& symbolic, PreparedPlan& plan);

}  // namespace oxy::runtime
