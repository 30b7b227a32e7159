#include "eval/program_functions.h"

#include <unordered_set>

#include "eval/library_code.h"
#include "eval/objects.h"
#include "guards/constants.h"
#include "runtime/tensor_object.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::SourceId;
using guards::SourceKind;

namespace {

class Reader {
 public:
  explicit Reader(Evaluator& evaluator) : evaluator_(evaluator) {}

  void read(PyObject* function) {
    if (!PyFunction_Check(function) || !seen_.insert(function).second) return;
    auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
    if (is_library_code(code)) return;
    const SourceId source = evaluator_.guards().pinned(function);
    evaluator_.guards().require(evaluator_.guards().derived(SourceKind::FunctionCode, source),
                                CheckKind::Identity, reinterpret_cast<PyObject*>(code));
    read_names(PyFunction_GET_GLOBALS(function), code);
    PyObject* const closure = PyFunction_GET_CLOSURE(function);
    for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); ++i) {
      PyObject* const cell = PyTuple_GET_ITEM(closure, i);
      if (PyObject* value = PyCell_GET(cell))
        depend(value,
               evaluator_.guards().derived(SourceKind::CellContents, evaluator_.guards().pinned(cell)));
    }
  }

 private:
  // Those of functions that the code defines itself are among its constants.
  void read_names(PyObject* globals, PyCodeObject* code) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(code->co_names, i);
      if (PyObject* value = PyDict_GetItemWithError(globals, name))
        depend(value, evaluator_.guards().dict_item(evaluator_.guards().pinned(globals), name));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); ++i)
      if (PyObject* inner = PyTuple_GET_ITEM(code->co_consts, i); PyCode_Check(inner))
        read_names(globals, reinterpret_cast<PyCodeObject*>(inner));
  }

  // Tensors that are read this way end the capture.
  void depend(PyObject* value, SourceId source) {
    if (runtime::is_tensor(value)) return;
    if (guards::is_constant(value)) {
      evaluator_.constant_of(evaluator_.admit(value, source).get());
      return;
    }
    evaluator_.guards().require(source, CheckKind::Identity, value);
    read(value);
  }

  Evaluator& evaluator_;
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

void rely_on_what_it_reads(Evaluator& evaluator, PyObject* function) {
  if (evaluator.is_known_by_code(function)) evaluator.require_identity(function);
  evaluator.pin(function);
  Reader(evaluator).read(function);
}

}  // namespace oxy::eval
