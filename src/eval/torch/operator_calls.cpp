#include "eval/torch/operator_calls.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "eval/externals/admission.h"
#include "eval/python/objects.h"
#include "eval/python/operator_objects.h"
#include "eval/state/evaluation.h"
#include "eval/torch/program_functions.h"
#include "eval/torch/torch_call.h"
#include "runtime/values/tensor_object.h"
#include "trace/metadata/fake_functions.h"
#include "trace/session/set_aside.h"

namespace oxy::eval {
namespace {

// Operators of these libraries are C++ at every dispatch key.
constexpr std::array<std::string_view, 4> kNativeLibraries = {"aten", "prims", "quantized", "torchvision"};

// "library::name", without the overload.
std::string qualified_name(PyObject* callable) {
  const bool is_packet = is_operator_packet(callable);
  Ref text = Ref::steal(PyObject_GetAttrString(callable, is_packet ? "_qualified_op_name" : "_qualname"));
  if (!text && !is_packet) {
    PyErr_Clear();
    text = Ref::steal(PyObject_GetAttrString(callable, "_name"));
  }
  const char* utf8 = text && PyUnicode_Check(text.get()) ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) {
    PyErr_Clear();
    return "";
  }
  const std::string name = utf8;
  return name.substr(0, name.find('.', name.find("::") == std::string::npos ? 0 : name.find("::")));
}

// Whether some overload is composed of other operators: it would be decomposed while it is recorded.
bool is_composite(const std::string& name) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto names = dispatcher.getAllOpNames();
  return std::any_of(names.begin(), names.end(), [&](const c10::OperatorName& candidate) {
    if (candidate.name != name) return false;
    const auto handle = dispatcher.findSchema(candidate);
    return handle && handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  });
}

}  // namespace

namespace {

bool gives_results(const std::string& name) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto handle = dispatcher.findSchema({name, ""});
  return !handle || !handle->schema().returns().empty();
}

bool takes_part_in_autograd(const Arguments& arguments) {
  const auto requires_grad = [](PyObject* tensor) { return runtime::tensor_of(tensor).requires_grad(); };
  const auto holds_some = [&](const Ref& value) { return any_tensor(value.get(), requires_grad); };
  return at::GradMode::is_enabled() && (std::ranges::any_of(arguments.positional, holds_some) ||
                                        std::ranges::any_of(arguments.keywords, [&](const auto& given) {
                                          return holds_some(given.second);
                                        }));
}

// The Python functions of a custom_op() run while it is recorded, so they and everything that they read by
// name are guarded.
void rely_on_formulas(Interpreter& interpreter, const std::string& name, const Arguments& arguments) {
  const Ref custom = trace::custom_op_object(name);
  if (!custom) return;
  const Ref object = pin(interpreter, custom.get());
  for (const char* member : {"_abstract_fn", "_setup_context_fn", "_backward_fn"}) {
    const Ref function = get_attribute(interpreter, object.get(), interned(member).get());
    if (!function) {
      PyErr_Clear();
      continue;
    }
    if (function != Py_None) rely_on_what_it_reads(interpreter, function.get());
    if (function == Py_None && std::string_view(member) == "_backward_fn" && gives_results(name) &&
        takes_part_in_autograd(arguments))
      interpreter.stop(
          fmt::format("calls {}, which has no formula for gradients, with a tensor that requires grad", name),
          "register one with register_autograd(), or call it under torch.no_grad()");
  }
}

}  // namespace

Ref call_operator(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  if (is_custom_op(callable)) {
    const Ref overload = get_attribute(interpreter, callable, interned("_opoverload").get());
    if (!overload || is_custom_op(overload.get()))
      interpreter.stop(fmt::format("calls {}, which is no operator", describe_callable(callable)));
    return call_operator(interpreter, overload.get(), arguments);
  }
  const std::string name = qualified_name(callable);
  const std::string library = name.substr(0, name.find("::"));
  if (std::find(kNativeLibraries.begin(), kNativeLibraries.end(), library) == kNativeLibraries.end()) {
    if (is_composite(name))
      interpreter.stop(fmt::format("calls the custom operator {}, which is made of other calls", name));
    rely_on_formulas(interpreter, name, arguments);
  }
  const trace::PartOfRecording part;
  if (interpreter.externals.is_external(callable)) pin(interpreter, callable);
  return call_torch(interpreter, callable, arguments);
}

}  // namespace oxy::eval
