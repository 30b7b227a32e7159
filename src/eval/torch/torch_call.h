// Calls of torch's functions and methods on trace tensors. They run for real, and the recorder appends nodes.
#pragma once

#include <initializer_list>
#include <string_view>

#include "eval/numbers/symbolic_size.h"
#include "eval/python/objects.h"
#include "eval/rebuild/torch_warnings.h"
#include "eval/state/interpreter.h"
#include "eval/state/torch_call_log.h"
#include "runtime/values/tensor_object.h"
#include "sym/environment/data_dependence.h"

namespace oxy::eval {

// Calls a function or method of torch's (is_torch_function()). Stops if torch raises: eager is to raise
// instead.
Ref call_torch(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);
// Takes note of the warnings of a call (warnings.WarningMessage). Stops at one that comes at every call.
void note_warnings(Interpreter& interpreter, std::span<const Ref> messages);
// Calls the function for real. If it raises, gives null with the exception set, for a program that handles
// it. Stops only if the recorder cannot record the call.
Ref torch_result_or_error(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

// Clears the Python exception that is set, and stops with its text as the reason.
[[noreturn]] void stop_on_torch_error(const Interpreter& interpreter);

// Whether an attribute or method of tensors cannot be used on a trace tensor. Either its value is not that of
// the real tensor, or it changes the real tensor in a way that no graph expresses.
bool is_untraceable(std::string_view tensor_attribute);

// Gives what `call` gives, which may call torch with trace tensors. If it raises, this stops: the instruction
// then runs in eager, which raises the exception in its own words, or finds that there is none.
template <class Call>
Ref torch_result(Interpreter& interpreter, Call&& call) {
  const CollectedWarnings warnings;
  Ref result = call();
  if (!result) stop_on_torch_error(interpreter);
  if (!warnings.messages().empty()) note_warnings(interpreter, warnings.messages());
  return from_torch(interpreter, std::move(result));
}

// Sets the Python exception that PyTorch's bindings would make of the C++ exception that is being handled.
void set_torch_error();

// The tensor that `compute` makes by calls of PyTorch's C++.
template <class Compute>
Ref torch_tensor(Interpreter& interpreter, Compute&& compute) {
  return torch_result(interpreter, [&]() -> Ref {
    try {
      return Ref::steal(runtime::wrap_tensor(compute()));
    } catch (const sym::DataDependence&) {
      throw;
    } catch (const std::exception&) {
      set_torch_error();
      return {};
    }
  });
}

// The same where `call` does what `module.name(*arguments)` does. The log of torch calls notes it so.
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
