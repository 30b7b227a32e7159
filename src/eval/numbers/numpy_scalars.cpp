// NumPy scalars: calculations with them run during the capture and give constants. An external one is guarded
// once the program looks at it.
#include "eval/numbers/numpy_scalars.h"

#include "eval/python/objects.h"
#include "eval/python/pending_error.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::is_numpy_scalar;

namespace {

// While one lives, NumPy raises for floating-point errors. The program may have told it to warn, to call a
// function or to ignore them. A capture cannot follow that.
class NumpyRaises {
 public:
  NumpyRaises() {
    PyObject* const make = well_known("numpy", "errstate");
    const Ref all = Ref::steal(Py_BuildValue("{s:s}", "all", "raise"));
    if (make && all) state_ = Ref::steal(PyObject_VectorcallDict(make, nullptr, 0, all.get()));
    if (state_ && !Ref::steal(PyObject_CallMethod(state_.get(), "__enter__", nullptr))) state_ = {};
    PyErr_Clear();
  }
  ~NumpyRaises() {
    const PendingError pending;
    if (!state_) return;
    const Ref left =
        Ref::steal(PyObject_CallMethod(state_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
    PyErr_Clear();
  }
  NumpyRaises(const NumpyRaises&) = delete;
  NumpyRaises& operator=(const NumpyRaises&) = delete;

 private:
  Ref state_;
};

}  // namespace

Ref run_quietly(const Interpreter& interpreter, const std::function<Ref()>& run) {
  const NumpyRaises raises;
  Ref result = run();
  if (result || !PyErr_ExceptionMatches(PyExc_FloatingPointError)) return result;
  PyErr_Clear();
  interpreter.stop("calculates with numbers of numpy's what it may warn of");
}

Ref known_scalar(Interpreter& interpreter, PyObject* scalar) {
  if (const SourceId source = interpreter.externals.source_of(scalar); source != guards::kNoSource)
    interpreter.guards().require(source, CheckKind::Equal, scalar);
  return Ref::borrow(scalar);
}

std::optional<Ref> with_scalars(Interpreter& interpreter, std::span<PyObject* const> operands,
                                const std::function<Ref()>& run) {
  bool has_some = false;
  for (PyObject* operand : operands) {
    if (!is_numpy_scalar(operand) && !guards::is_constant(operand)) return std::nullopt;
    has_some = has_some || is_numpy_scalar(operand);
  }
  if (!has_some) return std::nullopt;
  for (PyObject* operand : operands)
    if (is_numpy_scalar(operand)) known_scalar(interpreter, operand);
  return run_quietly(interpreter, run);
}

}  // namespace oxy::eval
