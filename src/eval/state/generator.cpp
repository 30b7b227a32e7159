#include "eval/state/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "cpy/generator.h"
#include "eval/python/objects.h"
#include "eval/python/pending_error.h"
#include "eval/state/stack.h"
#include "eval/treatment/library_code.h"
#include "eval/treatment/prelude.h"

namespace oxy::eval {
namespace {

struct GeneratorObject {
  PyObject_HEAD GeneratorData* data;
};

// A generator may hold another one, and that one the next. They are destroyed one after the other without
// recursion.
void destroy(std::unique_ptr<GeneratorData> data) {
  static thread_local AbandonedGenerators* dying = nullptr;
  if (!data) return;
  if (dying) {
    dying->push_back(std::move(data));
    return;
  }
  AbandonedGenerators rest;
  dying = &rest;
  data.reset();
  while (!rest.empty()) {
    std::unique_ptr<GeneratorData> next = std::move(rest.back());
    rest.pop_back();
    next.reset();
  }
  dying = nullptr;
}

void deallocate(PyObject* self) {
  std::unique_ptr<GeneratorData> data(reinterpret_cast<GeneratorObject*>(self)->data);
  if (auto abandoned = data->abandoned.lock(); abandoned && has_cleanup(*data))
    abandoned->push_back(std::move(data));
  destroy(std::move(data));
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// The methods of generator objects have names only, by which the interpreter finds them
// (generator_methods.cpp). They cannot be called by C code.
PyObject* refuse(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_SystemError, "only the interpreter can advance this generator");
  return nullptr;
}

PyTypeObject* generator_type() {
  static PyObject* type = nullptr;
  cpy::made_once(type, [] {
    static PyMethodDef methods[] = {
        {"send", &refuse, METH_O, nullptr},     {"throw", &refuse, METH_O, nullptr},
        {"close", &refuse, METH_O, nullptr},    {"__next__", &refuse, METH_O, nullptr},
        {"__iter__", &refuse, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)}, {Py_tp_methods, methods}, {0, nullptr}};
    static PyType_Spec spec = {kGeneratorClassName, sizeof(GeneratorObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return PyType_FromSpec(&spec);
  });
  check(type != nullptr, "cannot make the generator type");
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

Ref make_generator(std::unique_ptr<GeneratorData> data) {
  PyTypeObject* type = generator_type();
  auto* object = reinterpret_cast<GeneratorObject*>(type->tp_alloc(type, 0));
  if (!object) return {};
  object->data = data.release();
  return Ref::steal(reinterpret_cast<PyObject*>(object));
}

bool is_generator(PyObject* object) {
  return Py_TYPE(object) == generator_type() && class_of(generator_data(object)) == &PyGen_Type;
}

bool is_coroutine(PyObject* object) {
  return Py_TYPE(object) == generator_type() && class_of(generator_data(object)) != &PyGen_Type;
}

PyTypeObject* class_of(const GeneratorData& data) {
  return class_of_code(data.frame.pycode());
}

PyTypeObject* class_of_generator(const Interpreter& interpreter, PyObject* generator) {
  const GeneratorData& data = generator_data(generator);
  if (is_prelude_code(data.frame.pycode())) interpreter.stop("tests the class of an iterator");
  return class_of(data);
}

PyTypeObject* class_of_code(PyCodeObject* code) {
  const int flags = code->co_flags;
  if (flags & CO_COROUTINE) return &PyCoro_Type;
  return flags & CO_ASYNC_GENERATOR ? &PyAsyncGen_Type : &PyGen_Type;
}

GeneratorData& generator_data(PyObject* object) {
  return *reinterpret_cast<GeneratorObject*>(object)->data;
}

void set_stop_iteration(const Ref& returned) {
  if (returned == Py_None) {
    PyErr_SetNone(PyExc_StopIteration);
    return;
  }
  // PyErr_SetObject() would take a tuple or an exception apart.
  Ref stop = Ref::steal(PyObject_CallOneArg(PyExc_StopIteration, returned.get()));
  if (stop) PyErr_SetObject(PyExc_StopIteration, stop.get());
}

bool waits_for_another(const GeneratorData& data) {
  const Frame& frame = data.frame;
  return data.state == GeneratorState::Suspended && frame.current > 0 &&
         frame.code->instructions[frame.current - 1].op == bytecode::Op::Send;
}

Ref taken_stop_value() {
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return {};
  Ref value;
  {
    const PendingError pending;
    value = Ref::borrow(reinterpret_cast<PyStopIterationObject*>(pending.value())->value);
  }
  PyErr_Clear();
  return value;
}

// From Python 3.12 on, CPython adds handlers of its own: one around the whole body, which turns StopIteration
// into an error, and one around each wait for another generator, which takes its result. These do not count.
bool has_cleanup(const GeneratorData& data) {
  // A coroutine that was never awaited warns.
  if (data.state == GeneratorState::Created) return class_of(data) == &PyCoro_Type;
  if (data.state != GeneratorState::Suspended) return false;
  const bytecode::Code& code = *data.frame.code;
  int32_t at = data.frame.instruction().at;
  for (;;) {
    const auto covers = [&](const bytecode::ExceptionEntry& entry) {
      return at >= entry.begin && at < entry.end;
    };
    const auto entry = std::find_if(code.exception_table.begin(), code.exception_table.end(), covers);
    if (entry == code.exception_table.end()) return false;
    const bytecode::Op handler = code.at(entry->target).op;
    if (handler == bytecode::Op::StopIterationError) return false;
    if (handler != bytecode::Op::CleanupThrow) return true;
    at = entry->target;
  }
}

}  // namespace oxy::eval
