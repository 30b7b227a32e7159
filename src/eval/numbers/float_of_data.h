// Floats that only data tell: `t.item()` and float(t) of a floating-point tensor, and what the program
// calculates with them. Each is a trace tensor without dimensions in float64, in which Python calculates too:
// sums, differences, products and quotients have Python's bits. A comparison is a bool that depends on data.
// What such a float cannot do in a graph (a format, a power, an argument of C code) stops the capture there,
// and the float is read from the results of the graph.
#pragma once

#include <Python.h>

#include <optional>
#include <span>

#include "bytecode/instruction.h"
#include "eval/state/interpreter.h"
#include "sym/relations/condition.h"

namespace oxy::eval {

// An int as a tensor of int64 without dimensions: what only data tell is not read on the host.
at::Tensor integer_tensor(Interpreter& interpreter, const sym::Expr& e, c10::Device device);

bool is_float_of_data(Interpreter& interpreter, PyObject* object);
// The tensor of such a float. Undefined for other objects.
at::Tensor float_of_data(Interpreter& interpreter, PyObject* object);
// When such a float is not zero. Precondition: is_float_of_data().
sym::Condition is_not_zero(Interpreter& interpreter, PyObject* number);

// Whether the number is in the range of the type, as a fact or as a check of the run: PyTorch raises where it
// makes elements of numbers that are not.
bool fits(Interpreter& interpreter, PyObject* number, at::ScalarType type);
// The same for a number that is finite besides.
bool is_finite_in(Interpreter& interpreter, PyObject* number, at::ScalarType type);

// torch.tensor() of such floats, or of a list of them and others, without further arguments. Nothing: it is
// another call.
std::optional<Ref> tensor_of_floats(Interpreter& interpreter, PyObject* values);

// What item() gives of a floating-point tensor or of one of bools. Nothing: of another tensor, of several
// elements, where elements are known, and where the capture must not depend on data.
std::optional<Ref> item_of_data(Interpreter& interpreter, const at::Tensor& tensor);
// When bool(tensor) is true, of such a tensor or of one of integers. Nothing: as item_of_data().
std::optional<sym::Condition> truth_of_tensor(Interpreter& interpreter, PyObject* tensor);
// float(tensor) and int(tensor), as item_of_data().
std::optional<Ref> converted_item(Interpreter& interpreter, PyTypeObject* type, const at::Tensor& tensor);

// Operators, comparisons and functions with such a float among the operands, or with ints of data whose
// result is one. Nothing: it is another call, or it cannot be done in the graph.
std::optional<Ref> float_arithmetic(Interpreter& interpreter, bytecode::BinaryKind kind, PyObject* left,
                                    PyObject* right);
std::optional<Ref> float_unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand);
std::optional<Ref> float_comparison(Interpreter& interpreter, PyObject* left, PyObject* right, int operation);
std::optional<Ref> float_call(Interpreter& interpreter, PyObject* callable, std::span<const Ref> positional);

}  // namespace oxy::eval
