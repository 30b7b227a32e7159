// Calls of torch with trace tensors.
#pragma once

#include <initializer_list>
#include <string_view>

#include "eval/python/objects.h"
#include "eval/rebuild/torch_warnings.h"
#include "eval/state/interpreter.h"
#include "eval/state/torch_call_log.h"

namespace oxy::eval {

Ref call_torch(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);
// torch has warned (warnings.WarningMessage): stops at what warns each time.
void note_warnings(Interpreter& interpreter, std::span<const Ref> messages);
Ref torch_result_or_error(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

[[noreturn]] void stop_on_torch_error(const Interpreter& interpreter);

// Whether an attribute or method of tensors must not be that of a trace tensor: its value is another one, or
// its use changes the real tensor in a way that no graph expresses.
bool is_untraceable(std::string_view tensor_attribute);

// Runs `call`, which may reach torch with trace tensors. Its exceptions end the segment here: the instruction
// then runs in eager, which raises the user's exception in its own words, or finds that there is none.
template <class Call>
Ref torch_result(Interpreter& interpreter, Call&& call) {
  const CollectedWarnings warnings;
  Ref result = call();
  if (!result) stop_on_torch_error(interpreter);
  if (!warnings.messages().empty()) note_warnings(interpreter, warnings.messages());
  return result;
}

// The same for what may compute tensors: `call` does what `module.name(*arguments)` does.
template <class Call>
Ref torch_result(Interpreter& interpreter, const char* module, const char* name,
                 std::initializer_list<PyObject*> arguments, Call&& call) {
  TorchCallLog* log = interpreter.torch_calls.get();
  if (!log) return torch_result(interpreter, call);
  std::vector<Ref> positional;
  for (PyObject* argument : arguments) positional.push_back(Ref::borrow(argument));
  TorchCallLog::Pending pending = log->begin(well_known(module, name), positional);
  Ref result = torch_result(interpreter, call);
  log->end(std::move(pending), result.get());
  return result;
}

}  // namespace oxy::eval
