// Arithmetic, comparison, attributes and items.
#include <array>

#include "bytecode/calls.h"
#include "cpy/ref.h"
#include "cpy/type.h"
#include "hook/native.h"

namespace oxy::hook {
namespace {

using bytecode::Instruction;
using bytecode::Op;
using cpy::Ref;

PyObject* power(PyObject* left, PyObject* right) {
  return PyNumber_Power(left, right, Py_None);
}
PyObject* power_in_place(PyObject* left, PyObject* right) {
  return PyNumber_InPlacePower(left, right, Py_None);
}

// In the order of BinaryKind.
constexpr std::array<binaryfunc, 13> kBinary = {
    PyNumber_Add,      PyNumber_And,        PyNumber_FloorDivide, PyNumber_Lshift, PyNumber_MatrixMultiply,
    PyNumber_Multiply, PyNumber_Remainder,  PyNumber_Or,          power,           PyNumber_Rshift,
    PyNumber_Subtract, PyNumber_TrueDivide, PyNumber_Xor};
constexpr std::array<binaryfunc, 13> kBinaryInPlace = {PyNumber_InPlaceAdd,
                                                       PyNumber_InPlaceAnd,
                                                       PyNumber_InPlaceFloorDivide,
                                                       PyNumber_InPlaceLshift,
                                                       PyNumber_InPlaceMatrixMultiply,
                                                       PyNumber_InPlaceMultiply,
                                                       PyNumber_InPlaceRemainder,
                                                       PyNumber_InPlaceOr,
                                                       power_in_place,
                                                       PyNumber_InPlaceRshift,
                                                       PyNumber_InPlaceSubtract,
                                                       PyNumber_InPlaceTrueDivide,
                                                       PyNumber_InPlaceXor};

Outcome binary_op(const Machine& machine, const Instruction& instruction) {
  const binaryfunc function = (instruction.arg2 ? kBinaryInPlace : kBinary)[size_t(instruction.arg)];
  return replace(machine, 2, function(machine.peek(2), machine.peek(1)));
}

template <PyObject* (*function)(PyObject*)>
Outcome unary(const Machine& machine, const Instruction&) {
  return replace(machine, 1, function(machine.peek(1)));
}

// -1 (an error is set) stays null.
PyObject* as_bool(int truth) {
  return truth < 0 ? nullptr : PyBool_FromLong(truth);
}

Outcome unary_not(const Machine& machine, const Instruction&) {
  const int truth = PyObject_IsTrue(machine.peek(1));
  return replace(machine, 1, as_bool(truth < 0 ? truth : !truth));
}

Outcome to_bool(const Machine& machine, const Instruction&) {
  return replace(machine, 1, as_bool(PyObject_IsTrue(machine.peek(1))));
}

Outcome compare_op(const Machine& machine, const Instruction& instruction) {
  Ref result = Ref::steal(PyObject_RichCompare(machine.peek(2), machine.peek(1), instruction.arg));
  if (result && instruction.arg2) result = Ref::steal(as_bool(PyObject_IsTrue(result.get())));
  return replace(machine, 2, result.release());
}

Outcome is_op(const Machine& machine, const Instruction& instruction) {
  const bool same = machine.peek(2) == machine.peek(1);
  return replace(machine, 2, PyBool_FromLong(same != bool(instruction.arg)));
}

Outcome contains_op(const Machine& machine, const Instruction& instruction) {
  const int found = PySequence_Contains(machine.peek(1), machine.peek(2));
  return replace(machine, 2, as_bool(found < 0 ? found : found != instruction.arg));
}

Outcome binary_subscr(const Machine& machine, const Instruction&) {
  return replace(machine, 2, PyObject_GetItem(machine.peek(2), machine.peek(1)));
}

Outcome finish_store(const Machine& machine, int operands, int failed) {
  machine.drop(operands);
  return failed ? Outcome::Raised : Outcome::Next;
}

Outcome store_subscr(const Machine& machine, const Instruction&) {
  return finish_store(machine, 3, PyObject_SetItem(machine.peek(2), machine.peek(1), machine.peek(3)));
}

Outcome delete_subscr(const Machine& machine, const Instruction&) {
  return finish_store(machine, 2, PyObject_DelItem(machine.peek(2), machine.peek(1)));
}

Outcome binary_slice(const Machine& machine, const Instruction&) {
  const Ref slice = Ref::steal(PySlice_New(machine.peek(2), machine.peek(1), nullptr));
  return replace(machine, 3, slice ? PyObject_GetItem(machine.peek(3), slice.get()) : nullptr);
}

Outcome store_slice(const Machine& machine, const Instruction&) {
  const Ref slice = Ref::steal(PySlice_New(machine.peek(2), machine.peek(1), nullptr));
  const int failed = slice ? PyObject_SetItem(machine.peek(3), slice.get(), machine.peek(4)) : -1;
  return finish_store(machine, 4, failed);
}

Outcome load_attr(const Machine& machine, const Instruction& instruction) {
  return replace(machine, 1, PyObject_GetAttr(machine.peek(1), machine.name(instruction.arg)));
}

// Replaces the `operands` on top by a callable without self.
Outcome push_plain_callable(const Machine& machine, int operands, PyObject* callable) {
  machine.drop(operands);
  if (callable == nullptr) return Outcome::Raised;
  const bool null_first = bytecode::kCallLayout == bytecode::CallLayout::NullBelow;
  machine.push(null_first ? nullptr : callable);
  machine.push(null_first ? callable : nullptr);
  return Outcome::Next;
}

Outcome load_method(const Machine& machine, const Instruction& instruction) {
  Ref found;
  if (!cpy::find_method(machine.peek(1), machine.name(instruction.arg), found))
    return push_plain_callable(machine, 1, found.release());
  PyObject* self = machine.pop();
  machine.push(found.release());
  machine.push(self);
  return Outcome::Next;
}

// global super, class, self: without arguments super() finds the last two in the frame, which is the current
// one.
PyObject* super_attribute(const Machine& machine, const Instruction& instruction) {
  PyObject* arguments[] = {machine.peek(2), machine.peek(1)};
  const Ref super =
      Ref::steal(PyObject_Vectorcall(machine.peek(3), arguments, instruction.arg2 ? 2 : 0, nullptr));
  return super ? PyObject_GetAttr(super.get(), machine.name(instruction.arg)) : nullptr;
}

Outcome load_super_attr(const Machine& machine, const Instruction& instruction) {
  return replace(machine, 3, super_attribute(machine, instruction));
}

Outcome load_super_method(const Machine& machine, const Instruction& instruction) {
  return push_plain_callable(machine, 3, super_attribute(machine, instruction));
}

Outcome store_attr(const Machine& machine, const Instruction& instruction) {
  const int failed = PyObject_SetAttr(machine.peek(1), machine.name(instruction.arg), machine.peek(2));
  return finish_store(machine, 2, failed);
}

Outcome delete_attr(const Machine& machine, const Instruction& instruction) {
  return finish_store(machine, 1, PyObject_SetAttr(machine.peek(1), machine.name(instruction.arg), nullptr));
}

constexpr NativeEntry kEntries[] = {
    {Op::BinaryOp, binary_op},
    {Op::UnaryNegative, unary<PyNumber_Negative>},
    {Op::UnaryPositive, unary<PyNumber_Positive>},
    {Op::UnaryInvert, unary<PyNumber_Invert>},
    {Op::UnaryNot, unary_not},
    {Op::ToBool, to_bool},
    {Op::CompareOp, compare_op},
    {Op::IsOp, is_op},
    {Op::ContainsOp, contains_op},
    {Op::BinarySubscr, binary_subscr},
    {Op::StoreSubscr, store_subscr},
    {Op::DeleteSubscr, delete_subscr},
    {Op::BinarySlice, binary_slice},
    {Op::StoreSlice, store_slice},
    {Op::LoadAttr, load_attr},
    {Op::LoadMethod, load_method},
    {Op::LoadSuperAttr, load_super_attr},
    {Op::LoadSuperMethod, load_super_method},
    {Op::StoreAttr, store_attr},
    {Op::DeleteAttr, delete_attr},
};

}  // namespace

std::span<const NativeEntry> native_operators() {
  return kEntries;
}

}  // namespace oxy::hook
