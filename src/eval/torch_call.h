#pragma once

#include <initializer_list>
#include <string_view>

#include "eval/evaluator.h"
#include "eval/objects.h"
#include "eval/torch_call_log.h"
#include "eval/torch_warnings.h"

namespace oxy::eval {

[[noreturn]] void stop_on_torch_error(const Evaluator& evaluator);

// Whether an attribute or method of tensors must not be that of a trace tensor: its value is another one, or
// its use changes the real tensor in a way that no graph expresses.
bool is_untraceable(std::string_view tensor_attribute);

// Runs `call`, which may reach torch with trace tensors. Its exceptions end the segment here: the instruction
// then runs in eager, which raises the user's exception in its own words, or finds that there is none.
template <class Call>
Ref torch_result(Evaluator& evaluator, Call&& call) {
  const CollectedWarnings warnings;
  Ref result = call();
  if (!result) stop_on_torch_error(evaluator);
  if (!warnings.messages().empty()) evaluator.note_warnings(warnings.messages());
  return result;
}

// The same for what may compute tensors: `call` does what `module.name(*arguments)` does.
template <class Call>
Ref torch_result(Evaluator& evaluator, const char* module, const char* name,
                 std::initializer_list<PyObject*> arguments, Call&& call) {
  TorchCallLog* log = evaluator.torch_calls();
  if (!log) return torch_result(evaluator, call);
  std::vector<Ref> positional;
  for (PyObject* argument : arguments) positional.push_back(Ref::borrow(argument));
  TorchCallLog::Pending pending = log->begin(well_known(module, name), positional);
  Ref result = torch_result(evaluator, call);
  log->end(std::move(pending), result.get());
  return result;
}

}  // namespace oxy::eval
