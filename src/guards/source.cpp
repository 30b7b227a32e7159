#include "guards/source.h"

#include <array>
#include <cstring>
#include <optional>

#include "cpy/object_dict.h"
#include "guards/integer_part.h"
#include "runtime/device/stream.h"

namespace oxy::guards {

bool is_deque(PyObject* object) {
  return std::strcmp(Py_TYPE(object)->tp_name, "collections.deque") == 0;
}

Py_ssize_t length_of(PyObject* value) {
  if (PyList_Check(value)) return PyList_GET_SIZE(value);
  if (PyTuple_Check(value)) return PyTuple_GET_SIZE(value);
  if (PyDict_Check(value)) return PyDict_GET_SIZE(value);
  if (PyAnySet_Check(value)) return PySet_GET_SIZE(value);
  return is_deque(value) ? PyObject_Size(value) : -1;
}

bool is_made(SourceKind kind) {
  return kind == SourceKind::Calculated || kind == SourceKind::TensorSize ||
         kind == SourceKind::TensorStride || kind == SourceKind::TensorOffset ||
         kind == SourceKind::TensorElement;
}

namespace {

cpy::Ref calculate(const Source& source, PyObject* base, PyObject* other) {
  const auto is_operand = [](PyObject* object) {
    return object && (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) ||
                      runtime::is_stream(object));
  };
  const size_t count = source.base == kNoSource ? 0 : source.other == kNoSource ? 1 : 2;
  if ((count > 0 && !is_operand(base)) || (count > 1 && !is_operand(other))) return {};
  const std::array<PyObject*, 2> operands = {base, other};
  cpy::Ref result = cpy::Ref::steal(PyObject_Vectorcall(source.key.get(), operands.data(), count, nullptr));
  if (!result) PyErr_Clear();
  return result;
}

IntegerPart part_of(SourceKind kind) {
  return kind == SourceKind::TensorSize      ? IntegerPart::Size
         : kind == SourceKind::TensorStride  ? IntegerPart::Stride
         : kind == SourceKind::TensorElement ? IntegerPart::Element
                                             : IntegerPart::Offset;
}

}  // namespace

cpy::Ref make_number(const Source& source, PyObject* base, PyObject* other) {
  if (source.kind == SourceKind::Calculated) return calculate(source, base, other);
  const std::optional<int64_t> value = read_integer(part_of(source.kind), source.index, base);
  return value ? cpy::Ref::steal(PyLong_FromLongLong(*value)) : cpy::Ref();
}

namespace {

// A field of a Python function; null for other objects.
PyObject* const* place_in_function(PyObject* base, PyObject* PyFunctionObject::* field) {
  return PyFunction_Check(base) ? &(reinterpret_cast<PyFunctionObject*>(base)->*field) : nullptr;
}

}  // namespace

PyObject* const* place_of(const Source& source, PyObject* base) {
  switch (source.kind) {
    case SourceKind::InstanceDict:
      return cpy::dict_place(base);
    case SourceKind::TupleItem:
      if (!PyTuple_Check(base) || source.index >= PyTuple_GET_SIZE(base)) return nullptr;
      return &PyTuple_GET_ITEM(base, source.index);
    case SourceKind::CellContents:
      return PyCell_Check(base) ? &reinterpret_cast<PyCellObject*>(base)->ob_ref : nullptr;
    case SourceKind::FunctionCode:
      return place_in_function(base, &PyFunctionObject::func_code);
    case SourceKind::FunctionDefaults:
      return place_in_function(base, &PyFunctionObject::func_defaults);
    case SourceKind::FunctionKwDefaults:
      return place_in_function(base, &PyFunctionObject::func_kwdefaults);
    case SourceKind::FunctionGlobals:
      return place_in_function(base, &PyFunctionObject::func_globals);
    case SourceKind::FunctionClosure:
      return place_in_function(base, &PyFunctionObject::func_closure);
    case SourceKind::MethodFunction:
      return PyMethod_Check(base) ? &reinterpret_cast<PyMethodObject*>(base)->im_func : nullptr;
    case SourceKind::MethodSelf:
      return PyMethod_Check(base) ? &reinterpret_cast<PyMethodObject*>(base)->im_self : nullptr;
    case SourceKind::Member:
      return cpy::member_place(source.key.get(), base);
    default:
      return nullptr;
  }
}

PyObject* read(const Source& source, PyObject* base) {
  if (PyObject* const* place = place_of(source, base); place != nullptr && *place != nullptr) return *place;
  switch (source.kind) {
    case SourceKind::Pinned:
      return source.key.get();
    case SourceKind::InstanceDict:
      return cpy::materialized_dict(base);
    case SourceKind::DictItem:
      if (!PyDict_Check(base)) return nullptr;
      return PyDict_GetItem(base, source.key.get());
    case SourceKind::ListItem:
      if (!PyList_Check(base) || source.index >= PyList_GET_SIZE(base)) return nullptr;
      return PyList_GET_ITEM(base, source.index);
    case SourceKind::MethodSelf:
      return PyCFunction_Check(base) ? PyCFunction_GET_SELF(base) : nullptr;
    case SourceKind::Member: {
      PyObject* descriptor = source.key.get();
      PyObject* value =
          Py_TYPE(descriptor)->tp_descr_get(descriptor, base, reinterpret_cast<PyObject*>(Py_TYPE(base)));
      if (!value) {
        PyErr_Clear();
        return nullptr;
      }
      const bool is_new = Py_REFCNT(value) == 1;
      Py_DECREF(value);  // the member of the base still holds it
      return is_new ? nullptr : value;
    }
    case SourceKind::ContextVariable: {
      PyObject* value = nullptr;
      if (PyContextVar_Get(base, nullptr, &value) < 0) {
        PyErr_Clear();
        return nullptr;
      }
      Py_XDECREF(value);  // the context still holds it
      return value;
    }
    case SourceKind::WeakReferent:
      return PyWeakref_CheckRef(base) ? PyWeakref_GET_OBJECT(base) : nullptr;
    case SourceKind::DequeItem: {
      if (!is_deque(base) || source.index >= PyObject_Size(base)) return nullptr;
      PyObject* item = PySequence_GetItem(base, source.index);
      Py_XDECREF(item);  // the deque still holds it
      return item;
    }
    case SourceKind::SetMember: {
      const int found = PyAnySet_Check(base) ? PySet_Contains(base, source.key.get()) : 0;
      if (found < 0) PyErr_Clear();
      return found == 1 ? source.key.get() : nullptr;
    }
    default:
      return nullptr;
  }
}

}  // namespace oxy::guards
