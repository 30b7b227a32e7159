// Numbers of numpy's (numpy.float64 ...): immutable, so that what is calculated from them while evaluating is
// a constant of the capture. One that was made before the call is guarded once it is looked at.
#include "eval/evaluator.h"
#include "eval/objects.h"
#include "eval/pending_error.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::is_numpy_scalar;

namespace {

// While one lives numpy raises where the program may have told it to warn, to call a function or to say
// nothing: what comes of that is not for a capture to decide.
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

Ref run_quietly(const Evaluator& evaluator, const std::function<Ref()>& run) {
  const NumpyRaises raises;
  Ref result = run();
  if (result || !PyErr_ExceptionMatches(PyExc_FloatingPointError)) return result;
  PyErr_Clear();
  evaluator.stop("calculates with numbers of numpy's what it may warn of");
}

}  // namespace

Ref Evaluator::known_scalar(PyObject* scalar) {
  if (const SourceId source = source_of(scalar); source != guards::kNoSource)
    guards().require(source, CheckKind::Equal, scalar);
  return Ref::borrow(scalar);
}

std::optional<Ref> Evaluator::with_scalars(std::span<PyObject* const> operands,
                                           const std::function<Ref()>& run) {
  bool has_some = false;
  for (PyObject* operand : operands) {
    if (!is_numpy_scalar(operand) && !guards::is_constant(operand)) return std::nullopt;
    has_some = has_some || is_numpy_scalar(operand);
  }
  if (!has_some) return std::nullopt;
  for (PyObject* operand : operands)
    if (is_numpy_scalar(operand)) known_scalar(operand);
  return run_quietly(*this, run);
}

std::optional<Ref> Evaluator::call_on_scalars(PyObject* callable, const Arguments& arguments) {
  if (c_class_name(Py_TYPE(callable)) != "numpy.ufunc" || !arguments.keywords.empty()) return std::nullopt;
  // Those that are made of Python functions are none of NumPy's.
  const Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text || well_known("numpy", text) != callable) {
    PyErr_Clear();
    return std::nullopt;
  }
  for (const Ref& value : arguments.positional) {
    if (!is_numpy_scalar(value.get()) && !guards::is_constant(value.get())) return std::nullopt;
    if (is_numpy_scalar(value.get())) known_scalar(value.get());
  }
  pin(callable);
  Ref result = run_quietly(*this, [&] { return call_real(callable, arguments); });
  if (result && !is_numpy_scalar(result.get()) && !guards::is_constant(result.get())) return std::nullopt;
  return result;
}

}  // namespace oxy::eval
