// Programs under a default device: factories are given it, and `with torch.device(...)` changes it.
#pragma once

#include <string_view>

#include "eval/state/arguments.h"
#include "eval/state/evaluation.h"

namespace oxy::eval {

// Adds `device=` to the arguments of a factory that is given none, if the program has a default device.
void give_default_device(const Interpreter& interpreter, PyObject* callable, Arguments& arguments);

// `name`: "__enter__" or "__exit__" of a torch.device.
Ref call_device_context(Interpreter& interpreter, PyObject* device, std::string_view name);

}  // namespace oxy::eval
