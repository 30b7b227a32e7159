#include "eval/python/varying_object.h"

#include <torch/csrc/Size.h>

#include <array>
#include <vector>

#include "cpy/ref.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {

namespace {

// Sets an error that handlers of the program do not catch.
PyObject* refuse(PyObject*) {
  PyErr_SetString(trace::trace_error(), "the value of an oxyfuel.VaryingNumber is looked at");
  return nullptr;
}

PyObject* refuse_binary(PyObject* self, PyObject*) {
  return refuse(self);
}

// Refuses all attributes but `__class__`, which isinstance() reads.
PyObject* refuse_attribute(PyObject* self, PyObject* name) {
  const bool is_class = PyUnicode_CompareWithASCIIString(name, "__class__") == 0;
  return is_class ? PyObject_GenericGetAttr(self, name) : refuse(self);
}

PyObject* refuse_ternary(PyObject* self, PyObject*, PyObject*) {
  return refuse(self);
}

PyObject* refuse_comparison(PyObject* self, PyObject*, int) {
  return refuse(self);
}

int refuse_truth(PyObject* self) {
  refuse(self);
  return -1;
}

Py_ssize_t refuse_size(PyObject* self) {
  refuse(self);
  return -1;
}

int refuse_item(PyObject* self, PyObject*, PyObject*) {
  refuse(self);
  return -1;
}

PyTypeObject* varying_type() {
  static PyObject* type = nullptr;
  cpy::made_once(type, [] {
    static std::vector<PyType_Slot> slots;
    for (const int slot : {Py_nb_add, Py_nb_subtract, Py_nb_multiply, Py_nb_remainder, Py_nb_divmod,
                           Py_nb_lshift, Py_nb_rshift, Py_nb_and, Py_nb_xor, Py_nb_or, Py_nb_floor_divide,
                           Py_nb_true_divide, Py_nb_matrix_multiply, Py_mp_subscript})
      slots.push_back({slot, reinterpret_cast<void*>(&refuse_binary)});
    for (const int slot : {Py_nb_negative, Py_nb_positive, Py_nb_absolute, Py_nb_invert, Py_nb_int,
                           Py_nb_float, Py_nb_index, Py_tp_iter, Py_tp_repr, Py_tp_str})
      slots.push_back({slot, reinterpret_cast<void*>(&refuse)});
    slots.push_back({Py_tp_getattro, reinterpret_cast<void*>(&refuse_attribute)});
    slots.push_back({Py_nb_power, reinterpret_cast<void*>(&refuse_ternary)});
    slots.push_back({Py_nb_bool, reinterpret_cast<void*>(&refuse_truth)});
    slots.push_back({Py_tp_richcompare, reinterpret_cast<void*>(&refuse_comparison)});
    slots.push_back({Py_tp_hash, reinterpret_cast<void*>(&refuse_size)});
    slots.push_back({Py_mp_length, reinterpret_cast<void*>(&refuse_size)});
    slots.push_back({Py_mp_ass_subscript, reinterpret_cast<void*>(&refuse_item)});
    slots.push_back({0, nullptr});
    static PyType_Spec spec = {"oxyfuel.VaryingNumber", sizeof(PyObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
    return PyType_FromSpec(&spec);
  });
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

bool is_varying_number(PyObject* object) {
  return object != nullptr && Py_TYPE(object) == varying_type();
}

PyObject* new_varying_object() {
  return PyObject_New(PyObject, varying_type());
}

bool has_varying_part(PyObject* object) {
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    return is_varying_number(slice->start) || is_varying_number(slice->stop) ||
           is_varying_number(slice->step);
  }
  if (!THPSize_Check(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (is_varying_number(PyTuple_GET_ITEM(object, i))) return true;
  return false;
}

}  // namespace oxy::eval
