#include "eval/torch/program_functions.h"

#include <unordered_set>

#include "eval/externals/admission.h"
#include "eval/externals/identity.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/treatment/library_code.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::SourceId;
using guards::SourceKind;

namespace {

class Reader {
 public:
  explicit Reader(Interpreter& interpreter) : interpreter_(interpreter) {}

  void read(PyObject* function) {
    if (!PyFunction_Check(function) || !seen_.insert(function).second) return;
    auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
    if (is_library_code(code)) return;
    const SourceId source = interpreter_.guards().pinned(function);
    interpreter_.guards().require(interpreter_.guards().derived(SourceKind::FunctionCode, source),
                                  CheckKind::Identity, reinterpret_cast<PyObject*>(code));
    read_names(PyFunction_GET_GLOBALS(function), code);
    PyObject* const closure = PyFunction_GET_CLOSURE(function);
    for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); ++i) {
      PyObject* const cell = PyTuple_GET_ITEM(closure, i);
      if (PyObject* value = PyCell_GET(cell))
        depend(value,
               interpreter_.guards().derived(SourceKind::CellContents, interpreter_.guards().pinned(cell)));
    }
  }

 private:
  // Guards the globals that the code reads by name, also in functions that it defines, whose code is among
  // its constants.
  void read_names(PyObject* globals, PyCodeObject* code) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(code->co_names, i);
      if (PyObject* value = PyDict_GetItemWithError(globals, name))
        depend(value, interpreter_.guards().dict_item(interpreter_.guards().pinned(globals), name));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); ++i)
      if (PyObject* inner = PyTuple_GET_ITEM(code->co_consts, i); PyCode_Check(inner))
        read_names(globals, reinterpret_cast<PyCodeObject*>(inner));
  }

  // Guards a value that is read by name. A tensor needs no guard: it becomes a foreign constant of the
  // recording, which ends the capture.
  void depend(PyObject* value, SourceId source) {
    if (runtime::is_tensor(value)) return;
    if (guards::is_constant(value)) {
      constant_of(interpreter_, admit(interpreter_, value, source).get());
      return;
    }
    interpreter_.guards().require(source, CheckKind::Identity, value);
    read(value);
  }

  Interpreter& interpreter_;
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

void rely_on_what_it_reads(Interpreter& interpreter, PyObject* function) {
  if (interpreter.externals.is_known_by_code(function)) require_identity(interpreter, function);
  pin(interpreter, function);
  Reader(interpreter).read(function);
}

}  // namespace oxy::eval
