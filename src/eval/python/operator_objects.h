// The objects that stand for operators of torch's.
#pragma once

#include <Python.h>

namespace oxy::eval {

// An OpOverload or OpOverloadPacket, or what torch.library.custom_op() makes.
bool is_operator_object(PyObject* callable);
// What torch.library.custom_op() makes of a function.
bool is_custom_op(PyObject* callable);
// An OpOverloadPacket: an operator without the overload.
bool is_operator_packet(PyObject* callable);

}  // namespace oxy::eval
