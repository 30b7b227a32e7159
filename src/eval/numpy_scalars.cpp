// Numbers of numpy's (numpy.float64 ...): immutable, so that what is calculated from them while evaluating is
// a constant of the capture. One that was made before the call is guarded once it is looked at.
#include "eval/evaluator.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::is_numpy_scalar;

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
  return run();
}

std::optional<Ref> Evaluator::call_on_scalars(PyObject* callable, const Arguments& arguments) {
  if (std::string_view(Py_TYPE(callable)->tp_name) != "numpy.ufunc" || !arguments.keywords.empty())
    return std::nullopt;
  for (const Ref& value : arguments.positional) {
    if (!is_numpy_scalar(value.get()) && !guards::is_constant(value.get())) return std::nullopt;
    if (is_numpy_scalar(value.get())) known_scalar(value.get());
  }
  pin(callable);
  Ref result = call_real(callable, arguments);
  if (result && !is_numpy_scalar(result.get()) && !guards::is_constant(result.get())) return std::nullopt;
  return result;
}

}  // namespace oxy::eval
