// Jumps, iteration, calls, functions, with, import, and the tests of match statements.
#include <vector>

#include "bytecode/calls.h"
#include "cpy/ref.h"
#include "cpy/type.h"
#include "hook/arguments.h"
#include "hook/native.h"

namespace oxy::hook {
namespace {

using bytecode::Instruction;
using bytecode::Op;
using cpy::Ref;

Outcome jump(const Machine&, const Instruction&) {
  return Outcome::Jump;
}

template <bool wanted>
Outcome pop_jump_if(const Machine& machine, const Instruction&) {
  const int truth = PyObject_IsTrue(machine.peek(1));
  machine.drop(1);
  if (truth < 0) return Outcome::Raised;
  return bool(truth) == wanted ? Outcome::Jump : Outcome::Next;
}

template <bool wanted>
Outcome pop_jump_if_none(const Machine& machine, const Instruction&) {
  const bool none = machine.peek(1) == Py_None;
  machine.drop(1);
  return none == wanted ? Outcome::Jump : Outcome::Next;
}

template <bool wanted>
Outcome jump_if_or_pop(const Machine& machine, const Instruction&) {
  const int truth = PyObject_IsTrue(machine.peek(1));
  if (truth < 0) return Outcome::Raised;
  if (bool(truth) == wanted) return Outcome::Jump;
  machine.drop(1);
  return Outcome::Next;
}

Outcome get_iter(const Machine& machine, const Instruction&) {
  return replace(machine, 1, PyObject_GetIter(machine.peek(1)));
}

Outcome for_iter(const Machine& machine, const Instruction&) {
  PyObject* iterator = machine.peek(1);
  PyObject* item = Py_TYPE(iterator)->tp_iternext(iterator);
  if (item != nullptr) {
    machine.push(item);
    return Outcome::Next;
  }
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return Outcome::Raised;
    PyErr_Clear();
  }
  machine.drop(1);
  return Outcome::Jump;
}

Outcome call(const Machine& machine, const Instruction& instruction) {
  const std::span<PyObject* const> stack = machine.stack();
  const bytecode::CallOperands operands = bytecode::call_operands(stack, instruction);
  PyObject* names = operands.has_names_on_stack ? stack[operands.names]
                    : instruction.arg2 >= 0     ? machine.constant(instruction.arg2)
                                                : nullptr;
  // A self lies just before the arguments. vectorcall may use the entry before the first argument.
  const size_t first = operands.has_self ? operands.self : operands.arguments;
  const size_t keywords = names == nullptr ? 0 : size_t(PyTuple_GET_SIZE(names));
  const size_t positional = operands.arguments + operands.count - first - keywords;
  PyObject** arguments = &machine.peek(int(stack.size() - first));
  PyObject* callable = stack[operands.callable];
  const PassedArguments passed(callable, arguments, positional + keywords);
  PyObject* result =
      PyObject_Vectorcall(callable, arguments, positional | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
  return replace(machine, int(stack.size() - operands.base), result);
}

Outcome call_function_ex(const Machine& machine, const Instruction& instruction) {
  const std::span<PyObject* const> stack = machine.stack();
  const bytecode::UnpackedCallOperands operands = bytecode::unpacked_call_operands(stack.size(), instruction);
  PyObject* arguments = stack[operands.arguments];
  PyObject* keywords = operands.has_keywords ? stack[operands.keywords] : nullptr;
  if (keywords != nullptr && !PyDict_CheckExact(keywords)) return Outcome::Refused;
  if (!PyTuple_CheckExact(arguments) && Py_TYPE(arguments)->tp_iter == nullptr &&
      !PySequence_Check(arguments))
    return Outcome::Refused;
  const Ref tuple =
      PyTuple_CheckExact(arguments) ? Ref::borrow(arguments) : Ref::steal(PySequence_Tuple(arguments));
  PyObject* result = tuple ? PyObject_Call(stack[operands.callable], tuple.get(), keywords) : nullptr;
  return replace(machine, int(stack.size() - operands.base), result);
}

enum FunctionFlags { Defaults = 1, KeywordDefaults = 2, Annotations = 4, Closure = 8 };

// The function's own field of an attribute; its setters would make a dict of lazily built annotations.
PyObject** function_field(PyObject* function, int flag) {
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  switch (flag) {
    case Defaults:
      return &object->func_defaults;
    case KeywordDefaults:
      return &object->func_kwdefaults;
    case Annotations:
      return &object->func_annotations;
    case Closure:
      return &object->func_closure;
    default:
      return nullptr;
  }
}

Outcome make_function(const Machine& machine, const Instruction& instruction) {
  PyObject* function = PyFunction_New(machine.peek(1), machine.frame().globals());
  machine.drop(1);
  if (function == nullptr) return Outcome::Raised;
  for (const int flag : {Closure, Annotations, KeywordDefaults, Defaults})
    if (instruction.arg & flag) *function_field(function, flag) = machine.pop();
  machine.push(function);
  return Outcome::Next;
}

Outcome set_function_attribute(const Machine& machine, const Instruction& instruction) {
  PyObject** field = function_field(machine.peek(1), instruction.arg);
  if (field == nullptr) return Outcome::Refused;
  PyObject* function = machine.pop();
  Py_XDECREF(std::exchange(*field, machine.pop()));
  machine.push(function);
  return Outcome::Next;
}

// manager -> bound __exit__, result of __enter__; or of their asynchronous counterparts.
template <bool is_async>
Outcome before_with(const Machine& machine, const Instruction&) {
  static PyObject* enter_name = PyUnicode_InternFromString(is_async ? "__aenter__" : "__enter__");
  static PyObject* exit_name = PyUnicode_InternFromString(is_async ? "__aexit__" : "__exit__");
  PyObject* manager = machine.peek(1);
  if (_PyType_Lookup(Py_TYPE(manager), enter_name) == nullptr ||
      _PyType_Lookup(Py_TYPE(manager), exit_name) == nullptr)
    return Outcome::Refused;
  const Ref enter = cpy::lookup_special(manager, enter_name);
  if (!enter) return Outcome::Raised;
  Ref exit = cpy::lookup_special(manager, exit_name);
  if (!exit) return Outcome::Raised;
  machine.drop(1);
  machine.push(exit.release());
  PyObject* result = PyObject_CallNoArgs(enter.get());
  if (result == nullptr) return Outcome::Raised;
  machine.push(result);
  return Outcome::Next;
}

// level, names -> module
Outcome import_name(const Machine& machine, const Instruction& instruction) {
  static PyObject* import_key = PyUnicode_InternFromString("__import__");
  PyObject* builtins = machine.frame().builtins();
  if (!PyDict_CheckExact(builtins)) return Outcome::Refused;
  const Ref import = Ref::borrow(PyDict_GetItemWithError(builtins, import_key));
  if (!import) return PyErr_Occurred() ? Outcome::Raised : Outcome::Refused;
  PyObject* names = machine.frame().names();
  PyObject* arguments[] = {machine.name(instruction.arg), machine.frame().globals(),
                           names != nullptr ? names : Py_None, machine.peek(1), machine.peek(2)};
  return replace(machine, 2, PyObject_Vectorcall(import.get(), arguments, 5, nullptr));
}

// module -> module, attribute. CPython performs it if the module is being imported or lacks the name.
Outcome import_from(const Machine& machine, const Instruction& instruction) {
  PyObject* value = PyObject_GetAttr(machine.peek(1), machine.name(instruction.arg));
  if (value == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return Outcome::Raised;
    PyErr_Clear();
    return Outcome::Refused;
  }
  machine.push(value);
  return Outcome::Next;
}

Outcome load_assertion_error(const Machine& machine, const Instruction&) {
  machine.push(Py_NewRef(PyExc_AssertionError));
  return Outcome::Next;
}

Outcome load_build_class(const Machine& machine, const Instruction&) {
  static PyObject* key = PyUnicode_InternFromString("__build_class__");
  PyObject* builtins = machine.frame().builtins();
  PyObject* value = PyDict_CheckExact(builtins) ? PyDict_GetItemWithError(builtins, key) : nullptr;
  if (value == nullptr) return PyErr_Occurred() ? Outcome::Raised : Outcome::Refused;
  machine.push(Py_NewRef(value));
  return Outcome::Next;
}

Outcome get_len(const Machine& machine, const Instruction&) {
  const Py_ssize_t length = PyObject_Length(machine.peek(1));
  PyObject* result = length < 0 ? nullptr : PyLong_FromSsize_t(length);
  if (result == nullptr) return Outcome::Raised;
  machine.push(result);
  return Outcome::Next;
}

template <unsigned long flag>
Outcome match_type(const Machine& machine, const Instruction&) {
  machine.push(PyBool_FromLong((Py_TYPE(machine.peek(1))->tp_flags & flag) != 0));
  return Outcome::Next;
}

constexpr NativeEntry kEntries[] = {
    {Op::Jump, jump},
    {Op::PopJumpIfTrue, pop_jump_if<true>},
    {Op::PopJumpIfFalse, pop_jump_if<false>},
    {Op::PopJumpIfNone, pop_jump_if_none<true>},
    {Op::PopJumpIfNotNone, pop_jump_if_none<false>},
    {Op::JumpIfTrueOrPop, jump_if_or_pop<true>},
    {Op::JumpIfFalseOrPop, jump_if_or_pop<false>},
    {Op::GetIter, get_iter},
    {Op::ForIter, for_iter},
    {Op::Call, call},
    {Op::CallFunctionEx, call_function_ex},
    {Op::MakeFunction, make_function},
    {Op::SetFunctionAttribute, set_function_attribute},
    {Op::BeforeWith, before_with<false>},
    {Op::BeforeAsyncWith, before_with<true>},
    {Op::ImportName, import_name},
    {Op::ImportFrom, import_from},
    {Op::LoadAssertionError, load_assertion_error},
    {Op::LoadBuildClass, load_build_class},
    {Op::GetLen, get_len},
    {Op::MatchMapping, match_type<Py_TPFLAGS_MAPPING>},
    {Op::MatchSequence, match_type<Py_TPFLAGS_SEQUENCE>},
};

}  // namespace

std::span<const NativeEntry> native_control() {
  return kEntries;
}

}  // namespace oxy::hook
