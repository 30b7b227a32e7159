#pragma once

#include "eval/evaluator.h"

namespace oxy::eval {

[[noreturn]] void stop_on_torch_error(const Evaluator& evaluator);

// Runs `call`, which may reach torch with trace tensors. Its exceptions end the segment here: the instruction
// then runs in eager, which raises the user's exception in its own words, or finds that there is none.
template <class Call>
Ref torch_result(const Evaluator& evaluator, Call&& call) {
  Ref result = call();
  if (!result) stop_on_torch_error(evaluator);
  return result;
}

}  // namespace oxy::eval
