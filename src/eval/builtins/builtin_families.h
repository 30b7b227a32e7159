// The families of builtins: functions and classes that the interpreter performs itself. Each family is a
// table at the end of its file, builtins/<family>_functions.cpp.
#pragma once

#include <fmt/format.h>

#include <span>

#include "eval/builtins/builtins.h"
#include "eval/state/arguments.h"

namespace oxy::eval {

// `module`.`name` is what the handler stands for. "Class.method" is allowed for the name.
struct BuiltinEntry {
  const char* module;  // null: the prelude
  const char* name;
  BuiltinHandler handler;
};

std::span<const BuiltinEntry> object_builtins();
std::span<const BuiltinEntry> container_builtins();
std::span<const BuiltinEntry> iterator_builtins();
std::span<const BuiltinEntry> operator_builtins();
std::span<const BuiltinEntry> torch_builtins();
std::span<const BuiltinEntry> reduction_builtins();
std::span<const BuiltinEntry> number_form_builtins();
std::span<const BuiltinEntry> autograd_builtins();
std::span<const BuiltinEntry> autocast_builtins();
std::span<const BuiltinEntry> function_builtins();
std::span<const BuiltinEntry> checkpoint_builtins();
std::span<const BuiltinEntry> hook_builtins();
std::span<const BuiltinEntry> compiling_builtins();
std::span<const BuiltinEntry> stream_builtins();

// The frame that calls a function that looks at its caller, such as globals(). Stops outside of a frame.
// `name`: the function, for the reason.
inline Frame& calling_frame(Interpreter& interpreter, const char* name) {
  if (!interpreter.frame) interpreter.stop(fmt::format("calls {}() outside of a frame", name));
  return *interpreter.frame;
}

}  // namespace oxy::eval
