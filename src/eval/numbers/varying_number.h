// Numbers of the program's that change from call to call. An int or a float is a constant of the first
// compilation, guarded; a place whose number was another one at a later call holds a *varying* number from
// then on. What is calculated from it is a varying number too, of a source that calculates it again
// (guards::SourceKind::Calculated). It becomes an input of the graph, a tensor of no dimensions, where a
// tensor is calculated with it; a comparison is guarded by its outcome; wherever a value is looked at
// otherwise it is the constant that it is, guarded.
//
// In the evaluated program such a number is an object of a type of its own that can do nothing: what looks at
// it without knowing of it fails, which ends the capture.
#pragma once

#include <Python.h>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The constant that a varying number is at this call, guarded; other objects are themselves.
Ref constant_of(Interpreter& interpreter, PyObject* object);
// int or float.
PyTypeObject* varying_class(Interpreter& interpreter, PyObject* varying);
SourceId varying_source(Interpreter& interpreter, PyObject* varying);
// A pure function of one or two numbers, of which some vary. Nothing if it needs the constants.
std::optional<Ref> calculated(Interpreter& interpreter, PyObject* function,
                              std::span<PyObject* const> operands);
std::optional<Ref> varying_arithmetic(Interpreter& interpreter, bytecode::BinaryKind kind, bool in_place,
                                      PyObject* left, PyObject* right);
std::optional<Ref> varying_comparison(Interpreter& interpreter, PyObject* left, PyObject* right,
                                      int operation);
std::optional<Ref> call_on_varying(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);
// The arguments with tensors in place of varying numbers, if that is how the method of tensors can take
// them.
std::optional<Arguments> tensors_for_varying(Interpreter& interpreter, PyObject* callable,
                                             std::string_view method, const Arguments& arguments);
Ref admit_varying(Interpreter& interpreter, PyObject* number, SourceId source);

bool is_varying_number(PyObject* object);

}  // namespace oxy::eval
