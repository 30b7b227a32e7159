// Python objects that stand for operators: those of torch.ops and of torch.library.
#pragma once

#include <Python.h>

namespace oxy::eval {

// An OpOverload or OpOverloadPacket, or an object made by torch.library.custom_op().
bool is_operator_object(PyObject* callable);
// An object made by torch.library.custom_op().
bool is_custom_op(PyObject* callable);
// An OpOverloadPacket: an operator without the overload.
bool is_operator_packet(PyObject* callable);

}  // namespace oxy::eval
