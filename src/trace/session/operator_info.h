// How the recorder treats each operator of the dispatcher. This is decided once an operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

#include "aten/schema.h"
#include "ops/core/registry.h"

namespace oxy::trace {

enum class Treatment : uint8_t {
  Record,        // a node; shape rule or meta kernel
  Rename,        // recorded as `replacement`, which takes the same arguments
  Decompose,     // CompositeImplicit: PyTorch's own decomposition runs, its operators are recorded
  Lift,          // lift_fresh: a literal becomes a constant
  ViewInPlace,   // transpose_ and kin: recorded as their out-of-place view, whose result the argument becomes
  AnswerNow,     // results that are no tensors and depend on metadata alone
  NeedsData,     // results that depend on data: CannotTrace
  DynamicShape,  // output sizes that depend on data: CannotTrace
  Refuse,        // swaps or resizes storage, or has arguments that a graph cannot hold: CannotTrace. In
                 // backward passes recorded as its `replacement`, if it has one
};

// All that the recorder knows of an operator.
struct OperatorInfo {
  c10::OperatorHandle handle;
  const OperatorSchema* schema = nullptr;  // null only where treatment is not Record or ViewInPlace
  Treatment treatment = Treatment::Record;
  std::string reason;  // for Refuse
  bool has_tensor_argument = false;
  bool returns_tensor = false;
  // The entry with the shape rule for this operator, or null. For an in-place or out= operator it may be the
  // entry of its functional counterpart. `drops_out_arguments`: the rule does not take the written keyword
  // arguments.
  const ops::OperatorEntry* rule = nullptr;
  const OperatorSchema* rule_schema = nullptr;
  bool drops_out_arguments = false;
  // By argument: whether it is a tensor or a list of tensors.
  std::vector<bool> is_tensor_argument;
  // By return: the number of the argument that is written and returned, or -1.
  std::vector<int32_t> returned_argument;
  // For ViewInPlace the out-of-place view. For Record the form that declares its writes, if the operator
  // writes without declaring it (running statistics in training).
  std::optional<c10::OperatorHandle> replacement;
};

// Cached for the life of the process; thread-safe.
const OperatorInfo& operator_info(const c10::OperatorHandle& op);

// The operator without writes that computes what `op` writes, if the dispatcher or the registry has one; else
// null. Its schema is interned, so that functionalise() finds it by name.
const OperatorSchema* functional_counterpart(const OperatorSchema& op);

}  // namespace oxy::trace
