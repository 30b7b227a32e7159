// Functional forms: for an operator that writes, the operator without writes that computes the same.
#pragma once

#include "aten/schema.h"

namespace oxy::trace {

// Registers a pair that the names do not tell (`bernoulli_.float` is `bernoulli.p`). Thread-safe.
void remember_functional_form(const OperatorSchema& writing, const OperatorSchema& functional);

// The functional form of `writing`; null if there is none. It takes the same arguments, by name, without the
// out= ones. It returns what `writing` returns, with new values in place of written arguments. Behind these
// come the new values of the written arguments that `writing` does not return.
const OperatorSchema* functional_form(const OperatorSchema& writing);

// Whether `candidate` takes the arguments of `writing`, by name and kind, without its out= arguments, and
// writes to none.
bool takes_the_same_arguments(const OperatorSchema& candidate, const OperatorSchema& writing);
// A keyword argument that is only written.
inline bool is_out_argument(const ArgumentInfo& argument) {
  return argument.is_written && argument.kwarg_only;
}
// "aten::add" for "aten::add_.Tensor": without overload and without the in-place underscore.
std::string functional_base_name(const OperatorSchema& writing);

}  // namespace oxy::trace
