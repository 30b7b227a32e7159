// Varying numbers as operands of calculations with tensors: trace tensors without dimensions in their place,
// so that one graph serves all numbers. A float, and a varying int that has to be one, is a graph input of
// float64. What only data tell is in the graph already.
#pragma once

#include <Python.h>

#include <optional>
#include <string_view>
#include <utility>

#include "eval/state/arguments.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// A trace tensor without dimensions in float64 for a varying float that is known before the graph runs.
at::Tensor varying_as_double(Interpreter& interpreter, PyObject* varying);

// Whether the tensor is of a floating-point type of 16 bits.
bool is_narrow(const at::Tensor& tensor);

// The operands of an operator, a trace tensor and a varying number in either order, as two trace tensors. The
// result has the type that PyTorch gives it for the number. Nothing: they are others, or the number has to be
// known.
std::optional<std::pair<Ref, Ref>> as_tensors(Interpreter& interpreter, PyObject* left, PyObject* right);
// The same where PyTorch rounds the number to the type of the tensor first, as comparisons and remainders do.
std::optional<std::pair<Ref, Ref>> as_rounded_tensors(Interpreter& interpreter, PyObject* left,
                                                      PyObject* right);
// Whether a float, varying or not, is finite and in the range of the floating-point type. If it varies, that
// becomes a guard; if only data tell it, a check of the run.
bool fits_finite(Interpreter& interpreter, PyObject* number, at::ScalarType type);

// A trace tensor without dimensions, of the type and device of `tensor`, that holds what an element of such a
// tensor would hold if the number were assigned to it. `number`: an int or float, varying or not. Nothing:
// it is another object, or has to be known, as where assigning it may raise.
std::optional<Ref> as_element(Interpreter& interpreter, PyObject* number, const at::Tensor& tensor);

// The arguments of a method of tensors with trace tensors in place of varying numbers. `method`: its name;
// empty for a function. Nothing: no argument varies, or the method does not take tensors there.
std::optional<Arguments> tensors_for_varying(Interpreter& interpreter, PyObject* callable,
                                             std::string_view method, const Arguments& arguments);

}  // namespace oxy::eval
