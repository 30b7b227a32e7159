// Calls of callables that the user has marked by disable(), allow_in_graph() or assume_constant_result().
#include "eval/builtins/treated_calls.h"

#include <fmt/format.h>

#include "eval/externals/admission.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/plain.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "eval/torch/torch_call.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

namespace {

Ref call_in_graph(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

[[noreturn]] void stop_on_error(const Interpreter& interpreter, PyObject* callable) {
  if (PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(interpreter);
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw Interrupted{};
  Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  Ref text = value ? Ref::steal(PyObject_Str(value.get())) : Ref();
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  interpreter.stop(fmt::format("{} raises {}: {}", describe_callable(callable),
                               reinterpret_cast<PyTypeObject*>(type.get())->tp_name, utf8 ? utf8 : ""));
}

// The result of a function in the graph, with copies of its containers, since the function may keep those
// that it made. Tensors and constants stay themselves.
Ref own(const Interpreter& interpreter, PyObject* callable, PyObject* object) {
  if (runtime::is_tensor(object) || is_value_object(object)) return Ref::borrow(object);
  if (PyTuple_Check(object) || PyList_CheckExact(object)) {
    Ref items = Ref::steal(PyList_New(0));
    bool same = true;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      Ref item = own(interpreter, callable, PySequence_Fast_GET_ITEM(object, i));
      same = same && item == PySequence_Fast_GET_ITEM(object, i);
      PyList_Append(items.get(), item.get());
    }
    if (PyList_CheckExact(object)) return items;
    if (same) return Ref::borrow(object);
    if (PyTuple_CheckExact(object)) return Ref::steal(PyList_AsTuple(items.get()));
  }
  if (PyDict_CheckExact(object)) {
    Ref dict = Ref::steal(PyDict_New());
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      Ref item = own(interpreter, callable, value);
      if (!is_value_object(key)) interpreter.stop("a function of allow_in_graph() returns a dict of objects");
      PyDict_SetItem(dict.get(), key, item.get());
    }
    return dict;
  }
  interpreter.stop(
      fmt::format("{} returns an object of type {}", describe_callable(callable), Py_TYPE(object)->tp_name),
      "functions of allow_in_graph() return tensors, constants, and tuples, lists and dicts of these");
}

bool holds_tensor(PyObject* object) {
  return any_tensor(object, [](PyObject*) { return true; });
}

// While one lives, code of the program's may run (CodeGate::include_own_code()), under its default device.
// `gate` may be null.
class IncludedCode {
 public:
  IncludedCode(CodeGate* gate, const DefaultDevices& devices) : gate_(gate), devices_(devices) {
    if (gate_) gate_->include_own_code(true);
  }
  ~IncludedCode() {
    if (gate_) gate_->include_own_code(false);
  }
  IncludedCode(const IncludedCode&) = delete;
  IncludedCode& operator=(const IncludedCode&) = delete;

 private:
  CodeGate* gate_;
  WithDefaultDevices devices_;
};

}  // namespace

Ref call_treated(Interpreter& interpreter, const Treatment& treatment, PyObject* callable,
                 const Arguments& arguments) {
  switch (treatment.kind) {
    case TreatmentKind::Disabled:
    case TreatmentKind::Skipped:
      interpreter.stop(fmt::format("calls {}, which oxyfuel.disable() keeps in eager{}{}",
                                   describe_callable(callable), treatment.reason.empty() ? "" : ": ",
                                   treatment.reason));
    case TreatmentKind::InGraph:
      return call_in_graph(interpreter, callable, arguments);
    case TreatmentKind::Constant:
      return call_for_constant(interpreter, callable, arguments);
  }
  return {};
}

namespace {

Ref call_in_graph(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  pin(interpreter, callable);
  Ref result;
  {
    const IncludedCode included(interpreter.options.gate, interpreter.default_devices);
    result = call_real_plain(interpreter, callable, arguments);
  }
  if (!result) stop_on_error(interpreter, callable);
  return own(interpreter, callable, result.get());
}

}  // namespace

Ref call_for_constant(Interpreter& interpreter, PyObject* callable, const Arguments& arguments,
                      bool runs_code) {
  pin(interpreter, callable);
  const std::string name = describe_callable(callable);
  // External objects are passed as they are. That is right as long as the region has written to none.
  const auto shown = [&](const Ref& value) {
    const bool whole = interpreter.externals.is_external(value.get()) && !trace::is_trace_tensor(value.get());
    const bool is_read = runs_code || Py_TYPE(value.get())->tp_hash != PyBaseObject_Type.tp_hash;
    if (whole && is_read && interpreter.shadows.has_written() && !is_identity_object(value.get()) &&
        !is_logger(value.get()))
      interpreter.stop(fmt::format("calls {} after writing to objects made before the call", name));
    Ref result = whole ? value : plain(interpreter, value.get(), name.c_str());
    if (!whole && holds_tensor(result.get()))
      interpreter.stop(fmt::format("{} is given a tensor", name),
                       "what assume_constant_result() marks must not depend on tensors");
    return result;
  };
  Arguments given;
  for (const Ref& value : arguments.positional) given.positional.push_back(shown(value));
  for (const auto& [key, value] : arguments.keywords) given.keywords.emplace_back(key, shown(value));
  Ref result;
  {
    const trace::Recorder::Pause pause;
    const WithDefaultDevices devices(interpreter.default_devices);
    result = call_real(interpreter, callable, given);
  }
  if (!result) stop_on_error(interpreter, callable);
  return pin(interpreter, result.get());
}

}  // namespace oxy::eval
