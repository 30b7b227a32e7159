#include "cpy/interruption.h"

#include <csignal>
#include <vector>

#include "cpy/gil.h"
#include "cpy/ref.h"

namespace oxy::cpy {

namespace {

// That of a function or a method; null for callables of other kinds.
Ref code_of(PyObject* handler) {
  PyObject* const function = PyMethod_Check(handler) ? PyMethod_GET_FUNCTION(handler) : handler;
  return PyFunction_Check(function) ? Ref::borrow(PyFunction_GET_CODE(function)) : Ref();
}

std::vector<Ref> codes_of_handlers() {
  std::vector<Ref> codes;
  PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), "_signal");
  const Ref get = Ref::steal(module ? PyObject_GetAttrString(module, "getsignal") : nullptr);
  for (int number = 1; get && number < NSIG; ++number) {
    const Ref handler = Ref::steal(PyObject_CallFunction(get.get(), "i", number));
    PyErr_Clear();
    if (Ref code = handler ? code_of(handler.get()) : Ref()) codes.push_back(std::move(code));
  }
  PyErr_Clear();
  return codes;
}

}  // namespace

bool is_interruption(PyObject* type, PyObject* traceback) {
  if (!type) return false;
  if (PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt)) return true;
  if (!traceback || !PyTraceBack_Check(traceback)) return false;
  const SavedError pending;
  const std::vector<Ref> handlers = codes_of_handlers();
  for (auto* entry = reinterpret_cast<PyTracebackObject*>(traceback); entry && !handlers.empty();
       entry = entry->tb_next) {
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(entry->tb_frame)));
    for (const Ref& handler : handlers)
      if (handler == code) return true;
  }
  return false;
}

bool run_signal_handlers() {
  const WithGil gil;
  return PyErr_CheckSignals() < 0;
}

}  // namespace oxy::cpy
