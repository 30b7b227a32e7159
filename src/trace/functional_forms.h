// Which operator without writes computes what an operator that writes does.
#pragma once

#include "aten/schema.h"

namespace oxy::trace {

// What the dispatcher knows and names do not tell (`bernoulli_.float` is `bernoulli.p`). Thread-safe.
void remember_functional_form(const OperatorSchema& writing, const OperatorSchema& functional);

// The operator that returns, in this order, what `writing` returns (new values in place of written
// arguments), then the new values of the written arguments that it does not return. It takes the same
// arguments, by name, less the out= ones. nullptr if there is none.
const OperatorSchema* functional_form(const OperatorSchema& writing);

// `candidate` takes the arguments of `writing` without its out= arguments, by name and kind, and writes to
// none.
bool takes_the_same_arguments(const OperatorSchema& candidate, const OperatorSchema& writing);
// A keyword argument that is only written.
inline bool is_out_argument(const ArgumentInfo& argument) {
  return argument.is_written && argument.kwarg_only;
}
// "aten::add" for "aten::add_.Tensor": without overload and without the in-place underscore.
std::string functional_base_name(const OperatorSchema& writing);

}  // namespace oxy::trace
