#include "eval/torch/torch_definitions.h"

#include <fmt/format.h>

#include "eval/externals/admission.h"
#include "eval/externals/type_lookup.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/treatment/library_code.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {
using cpy::Ref;

namespace {

void look_at(Interpreter& interpreter, PyObject* found, PyObject* name) {
  if (!PyFunction_Check(found)) return;
  if (!is_library_code(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(found))))
    throw Break{
        fmt::format("calls a function of torch's under which {} is another one's", PyUnicode_AsUTF8(name)),
        "",
        BreakKind::Instruction,
        {}};
  if (is_torch_function(found)) rely_on_definitions(interpreter, found);
}

// Whether the module has a callable under this name. Guards it if it has.
bool rely_on_entry(Interpreter& interpreter, PyObject* dict, PyObject* module, PyObject* name) {
  PyObject* const found = PyDict_GetItemWithError(dict, name);
  if (!found) return false;
  if (!PyFunction_Check(found) && !PyCFunction_Check(found)) return true;
  if (module && PyModule_Check(module) && !get_attribute(interpreter, pin(interpreter, module).get(), name))
    PyErr_Clear();
  look_at(interpreter, found, name);
  return true;
}

}  // namespace

void rely_on_definitions(Interpreter& interpreter, PyObject* function) {
  PyObject* const code = PyFunction_GET_CODE(function);
  if (interpreter.externals.is_external(code)) return;  // it was guarded before
  const Ref seen = get_attribute(interpreter, pin(interpreter, function).get(), interned("__code__").get());
  if (!seen) {
    PyErr_Clear();
    return;
  }
  PyObject* const globals = PyFunction_GET_GLOBALS(function);
  PyObject* const own_name = PyDict_GetItemString(globals, "__name__");
  PyObject* const modules = PyImport_GetModuleDict();
  PyObject* const module = own_name ? PyDict_GetItemWithError(modules, own_name) : nullptr;
  PyObject* const torch = PyDict_GetItemString(modules, "torch");
  PyObject* const names = reinterpret_cast<PyCodeObject*>(code)->co_names;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    if (rely_on_entry(interpreter, globals, module, name)) continue;
    if (torch && PyModule_Check(torch)) rely_on_entry(interpreter, PyModule_GetDict(torch), torch, name);
    if (_PyType_Lookup(runtime::tensor_class(), name))
      if (const Ref method = type_lookup(interpreter, runtime::tensor_class(), name))
        look_at(interpreter, method.get(), name);
  }
  PyObject* const closure = PyFunction_GET_CLOSURE(function);
  for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); ++i)
    if (PyObject* held = PyCell_GET(PyTuple_GET_ITEM(closure, i)))
      if (PyFunction_Check(held) && is_torch_function(held)) rely_on_definitions(interpreter, held);
}

}  // namespace oxy::eval
