// Ints that are expressions of symbols: sizes and strides of tensors, numbers that vary, and what the program
// calculates with them. They are varying numbers (varying_number.h) whose calculations need no source of
// their own: the graph has the expression, and the shape environment the guards.
#pragma once

#include <Python.h>

#include <optional>
#include <span>

#include "bytecode/instruction.h"
#include "eval/state/interpreter.h"
#include "sym/relations/condition.h"

namespace oxy::eval {

// The int that the program sees: a number, or a varying number with the expression.
Ref integer(Interpreter& interpreter, const sym::Expr& expression);
// A new symbol for the int or size `value` that is read there. Its class is guarded by the caller.
sym::Expr new_symbol(Interpreter& interpreter, const guards::SymbolSource& from, sym::SymbolKind kind,
                     int64_t value, const sym::Mark& mark = {});
// The expression of an exact int or a varying int. A varying int without one becomes a symbol. Nothing for
// other objects, for ints of more than 61 bits, and where the capture makes no symbols.
std::optional<sym::Expr> expression_of(Interpreter& interpreter, PyObject* object);
bool is_symbolic_integer(Interpreter& interpreter, PyObject* object);
// Whether it is an int, float or bool that depends on data, so that it is not known before the graph runs.
bool depends_on_data(Interpreter& interpreter, PyObject* object);
// When such an object is true. Nothing: it is another object, or it is known whether it is true.
std::optional<sym::Condition> undecided_truth(Interpreter& interpreter, PyObject* object);
// The bool of a condition: a guarded constant, or one that depends on data.
Ref truth_of(Interpreter& interpreter, const sym::Condition& condition);
// The program relies on the condition (`torch._check`): if only data tell, the run checks it. False: it does
// not hold.
bool rely_on(Interpreter& interpreter, const sym::Condition& condition);

// The answer for all calls, with a guard if need be.
bool decide(Interpreter& interpreter, const sym::Condition& condition);
// The int, guarded. Precondition: the varying number has an expression.
Ref specialised(Interpreter& interpreter, const sym::Expr& expression);
// A source for the value of the expression, for what a call calculates of it.
guards::SourceId source_of(Interpreter& interpreter, const sym::Expr& expression);

// Operators, comparisons and functions of ints, at least one of which has an expression. Nothing: the result
// is no such int, and the caller calculates it otherwise.
std::optional<Ref> integer_arithmetic(Interpreter& interpreter, bytecode::BinaryKind kind, PyObject* left,
                                      PyObject* right);
std::optional<Ref> integer_comparison(Interpreter& interpreter, PyObject* left, PyObject* right,
                                      int operation);
std::optional<Ref> integer_unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand);
std::optional<Ref> integer_call(Interpreter& interpreter, PyObject* callable,
                                std::span<const Ref> positional);

}  // namespace oxy::eval
