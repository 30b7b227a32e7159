#include "eval/torch_definitions.h"

#include <fmt/format.h>

#include "eval/library_code.h"
#include "eval/objects.h"
#include "runtime/tensor_object.h"

namespace oxy::eval {
using cpy::Ref;

namespace {

void look_at(Evaluator& e, PyObject* found, PyObject* name) {
  if (!PyFunction_Check(found)) return;
  if (!is_library_code(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(found))))
    throw Break{
        fmt::format("calls a function of torch's under which {} is another one's", PyUnicode_AsUTF8(name)),
        "",
        {}};
  if (is_torch_function(found)) rely_on_definitions(e, found);
}

// Whether the module has something to call under this name, which is guarded then.
bool rely_on_entry(Evaluator& e, PyObject* dict, PyObject* module, PyObject* name) {
  PyObject* const found = PyDict_GetItemWithError(dict, name);
  if (!found) return false;
  if (!PyFunction_Check(found) && !PyCFunction_Check(found)) return true;
  if (module && PyModule_Check(module) && !e.get_attribute(e.pin(module).get(), name)) PyErr_Clear();
  look_at(e, found, name);
  return true;
}

}  // namespace

void rely_on_definitions(Evaluator& e, PyObject* function) {
  PyObject* const code = PyFunction_GET_CODE(function);
  if (e.is_external(code)) return;  // done
  const Ref seen = e.get_attribute(e.pin(function).get(), interned("__code__").get());
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
    if (rely_on_entry(e, globals, module, name)) continue;
    if (torch && PyModule_Check(torch)) rely_on_entry(e, PyModule_GetDict(torch), torch, name);
    if (_PyType_Lookup(runtime::tensor_class(), name))
      if (const Ref method = e.type_lookup(runtime::tensor_class(), name)) look_at(e, method.get(), name);
  }
  PyObject* const closure = PyFunction_GET_CLOSURE(function);
  for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); ++i)
    if (PyObject* held = PyCell_GET(PyTuple_GET_ITEM(closure, i)))
      if (PyFunction_Check(held) && is_torch_function(held)) rely_on_definitions(e, held);
}

}  // namespace oxy::eval
