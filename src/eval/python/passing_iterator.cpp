#include "eval/python/passing_iterator.h"

namespace oxy::eval {
namespace {

struct PassingIterator {
  PyObject_HEAD PyObject* iterator;
};

PyObject*& iterator_of(PyObject* self) {
  return reinterpret_cast<PassingIterator*>(self)->iterator;
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* iterator = nullptr;
  if (!PyArg_ParseTuple(arguments, "O", &iterator)) return nullptr;
  if (!PyIter_Check(iterator)) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", Py_TYPE(iterator)->tp_name);
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self) iterator_of(self) = Py_NewRef(iterator);
  return self;
}

PyObject* next(PyObject* self) {
  return Py_TYPE(iterator_of(self))->tp_iternext(iterator_of(self));
}

PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(O)", Py_TYPE(self), iterator_of(self));
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(iterator_of(self));
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(iterator_of(self));
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* passing_type() {
  static PyObject* type = nullptr;
  cpy::made_once(type, [] {
    static PyMethodDef methods[] = {{"__reduce__", &reduce, METH_NOARGS, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&make)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                  {Py_tp_iter, reinterpret_cast<void*>(&PyObject_SelfIter)},
                                  {Py_tp_iternext, reinterpret_cast<void*>(&next)},
                                  {Py_tp_methods, methods},
                                  {0, nullptr}};
    static PyType_Spec spec = {"oxyfuel.PassingIterator", sizeof(PassingIterator), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    return PyType_FromSpec(&spec);
  });
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

cpy::Ref new_passing_iterator(PyObject* iterator) {
  PyTypeObject* type = passing_type();
  cpy::Ref made = cpy::Ref::steal(type->tp_alloc(type, 0));
  if (made) iterator_of(made.get()) = Py_NewRef(iterator);
  return made;
}

bool is_passing_iterator(PyObject* object) {
  return Py_TYPE(object) == passing_type();
}

}  // namespace oxy::eval
