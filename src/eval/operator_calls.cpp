#include "eval/operator_calls.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "eval/objects.h"

namespace oxy::eval {
namespace {

// Operators of these libraries are C++ at every dispatch key.
constexpr std::array<std::string_view, 4> kNativeLibraries = {"aten", "prims", "quantized", "torchvision"};

bool is_instance_of(PyObject* object, const char* name) {
  PyObject* type = well_known("torch._ops", name);
  return type && PyType_Check(type) && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type));
}

// "library::name", without the overload.
std::string qualified_name(PyObject* callable) {
  const bool is_packet = is_instance_of(callable, "OpOverloadPacket");
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

// Whether some overload is a composition of other operators: it would be taken apart while it is recorded.
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

bool is_operator_object(PyObject* callable) {
  return is_instance_of(callable, "OpOverload") || is_instance_of(callable, "OpOverloadPacket");
}

Ref call_operator(Evaluator& evaluator, PyObject* callable, const Arguments& arguments) {
  const std::string name = qualified_name(callable);
  const std::string library = name.substr(0, name.find("::"));
  if (std::find(kNativeLibraries.begin(), kNativeLibraries.end(), library) == kNativeLibraries.end()) {
    if (at::GradMode::is_enabled())
      evaluator.stop(fmt::format("calls the custom operator {} while gradients are recorded", name));
    if (is_composite(name))
      evaluator.stop(fmt::format("calls the custom operator {}, which is made of other calls", name));
  }
  if (evaluator.is_external(callable)) evaluator.pin(callable);
  return evaluator.call_torch(callable, arguments);
}

}  // namespace oxy::eval
