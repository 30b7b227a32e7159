// What an extern call's implementation knows when a plan is prepared, and the form in which it runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "plan/plan.h"
#include "runtime/device/device.h"

namespace oxy::runtime {

// A slot is a place in the table of tensors of a running call: one for each distinct window on a buffer that
// an extern call reads or writes.
using Slot = int32_t;
inline constexpr Slot kNoSlot = -1;

struct ResultSlot {
  Slot slot = kNoSlot;   // kNoSlot: nobody wants this result
  bool planned = false;  // true: tensors[slot] exists and is to be written; false: the call defines it
};

struct CallSite {
  const plan::Call& call;
  const std::vector<TensorSpec>& specs;           // by slot
  std::vector<std::vector<Slot>> argument_slots;  // one list an argument: empty unless it holds tensors
  std::vector<ResultSlot> results;                // one a returned tensor

  // The only tensor of an argument; kNoSlot if it is None. InternalError if it is something else.
  Slot tensor(size_t argument) const;
  // Lives as long as the prepared call. Where sizes are symbols, its numbers change between calls; a call
  // that has read them is prepared again then.
  const TensorSpec& spec(Slot slot) const { return specs.at(static_cast<size_t>(slot)); }
  bool flag(size_t argument) const;
  double number(size_t argument) const;  // bool, integer or float
  std::vector<int64_t> integers(size_t argument) const;
  const std::string& text(size_t argument) const;
  bool planned(size_t result) const { return results[result].slot != kNoSlot && results[result].planned; }
};

// Puts `result` where the plan wants it: copied into a planned buffer, else taken over. What the call
// returned is copied first if its strides are not the planned ones or if it shares memory with something else
// that lives on
// (`owned` false).
void deliver(at::Tensor* tensors, const ResultSlot& where, const TensorSpec& spec, at::Tensor result,
             bool owned);

}  // namespace oxy::runtime
