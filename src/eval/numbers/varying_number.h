// Varying numbers: ints and floats that change from call to call. In the first compilation every number is a
// guarded constant. If a later call finds another number in its place, the next capture treats the place as
// varying:
//   - A calculation with it gives another varying number. That of an int is an expression of symbols
//     (symbolic_integer.h). Another's source calculates it again at each call
//     (guards::SourceKind::Calculated).
//   - If a tensor is combined with it, it becomes a graph input (number_operands.h).
//   - A comparison is guarded by its outcome alone.
//   - Everything else gets the present value as a constant, with a guard.
//
// The program holds an object of a type of ours in its place (python/varying_object.h).
#pragma once

#include <Python.h>

#include "eval/python/varying_object.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// The present value of a varying number, guarded. Other objects are given back as they are.
Ref constant_of(Interpreter& interpreter, PyObject* object);
// The class that the program sees: int or float. Precondition of this and the next: is_varying_number().
PyTypeObject* varying_class(Interpreter& interpreter, PyObject* varying);
// Whether the object is a float to the program: an exact one or one that varies; or one that varies alone.
bool is_float(Interpreter& interpreter, PyObject* object);
bool is_varying_float(Interpreter& interpreter, PyObject* object);
SourceId varying_source(Interpreter& interpreter, PyObject* varying);
// A new varying number. Its class is guarded already.
Ref make_varying(Interpreter& interpreter, Numbers::Varying number);
// Operators with a varying number as an operand: another varying number, or a trace tensor if the other
// operand is one. Nothing: neither operand varies, or the operator needs constants.
std::optional<Ref> varying_arithmetic(Interpreter& interpreter, bytecode::BinaryKind kind, bool in_place,
                                      PyObject* left, PyObject* right);
std::optional<Ref> varying_unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand);
// The same for a comparison, `operation` being Py_LT and so on. The outcome for two numbers is a guarded
// bool.
std::optional<Ref> varying_comparison(Interpreter& interpreter, PyObject* left, PyObject* right,
                                      int operation);
// The same for a call of int, float or bool, of abs(), round(), min() or max(), or of a function of math.
std::optional<Ref> call_on_varying(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);
// Admits a number at a place that varies. `number`: its present value, an exact int or float.
Ref admit_varying(Interpreter& interpreter, PyObject* number, SourceId source);

}  // namespace oxy::eval
