#include "eval/torch/torch_call.h"

#include <fmt/format.h>
#include <torch/csrc/Exceptions.h>

#include <algorithm>

#include "eval/externals/c_calls.h"
#include "eval/numbers/float_of_data.h"
#include "eval/numbers/number_operands.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/torch/attention_masks.h"
#include "eval/torch/legacy_tensors.h"
#include "eval/torch/number_arguments.h"
#include "eval/torch/number_tensors.h"
#include "eval/torch/sized_functions.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {

namespace {

constexpr std::array<std::string_view, 36> kUntraceable = {"grad",
                                                           "grad_fn",
                                                           "_grad",
                                                           "_base",
                                                           "_version",
                                                           "data_ptr",
                                                           "const_data_ptr",
                                                           "mutable_data_ptr",
                                                           "detach_",  // refuses views
                                                           "ldexp_",  // refuses integers, in a way of its own
                                                           "storage",
                                                           "untyped_storage",
                                                           "_typed_storage",
                                                           "_backward_hooks",
                                                           "register_post_accumulate_grad_hook",
                                                           "retain_grad",
                                                           "retains_grad",
                                                           "set_",
                                                           "resize_",
                                                           "resize_as_",
                                                           "share_memory_",
                                                           "pin_memory",
                                                           "__dlpack__",
                                                           "__array__",
                                                           "_cdata",
                                                           "__reduce_ex__",
                                                           "__reduce__",
                                                           "__setstate__",
                                                           "_post_accumulate_grad_hooks",
                                                           "__deepcopy__",
                                                           "storage_offset",
                                                           "storage_offset_",
                                                           "_is_view",
                                                           "__dict__",
                                                           "_make_subclass",
                                                           "as_subclass"};

constexpr std::string_view kForeach = "_foreach_";

// The name of a method of tensors, bound or not; empty for anything else.
std::string_view tensor_method_name(PyObject* callable) {
  if (PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    return self && runtime::is_tensor(self) ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name
                                            : "";
  }
  PyObject* name = nullptr;
  if (Py_TYPE(callable) == &PyMethodDescr_Type) {
    name = PyDescr_NAME(callable);
  } else if (PyFunction_Check(callable)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(callable);
    if (PyUnicode_Check(function->func_qualname) &&
        std::string_view(PyUnicode_AsUTF8(function->func_qualname)).starts_with("Tensor."))
      name = function->func_name;
  }
  const char* utf8 = name ? PyUnicode_AsUTF8(name) : nullptr;
  return utf8 ? utf8 : "";
}

}  // namespace
void stop_on_torch_error(const Interpreter& interpreter) {
  cpy::Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  Ref text = value ? Ref::steal(PyObject_Str(value.get())) : Ref();
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  std::string message = utf8 ? utf8 : "unknown error";
  if (const size_t line_end = message.find('\n'); line_end != std::string::npos) message.resize(line_end);
  if (type == trace::trace_error()) interpreter.stop(message);
  if (type == trace::internal_trace_error())
    interpreter.stop("an error of the compiler's own, while it recorded a call of torch");
  if (message.find(trace::tracing_key_name()) != std::string::npos)
    interpreter.stop("torch looks for the memory of a tensor, which has none while it is captured");
  if (message.find("INTERNAL ASSERT FAILED") != std::string::npos)
    interpreter.stop("torch does something with a tensor that it cannot do while that is captured");
  interpreter.stop(fmt::format("torch raises {}: {}",
                               type ? reinterpret_cast<PyTypeObject*>(type.get())->tp_name : "an error",
                               message));
}

void set_torch_error() {
  torch::translate_exception_to_python(std::current_exception());
}

bool is_untraceable(std::string_view tensor_attribute) {
  return std::find(kUntraceable.begin(), kUntraceable.end(), tensor_attribute) != kUntraceable.end();
}

namespace {

// tensor.requires_grad_() of a fresh tensor, or where it changes nothing. Stops otherwise.
Ref require_grad(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  std::vector<Ref> given = arguments.positional;
  if (PyCFunction_Check(callable)) given.insert(given.begin(), Ref::borrow(PyCFunction_GET_SELF(callable)));
  for (const auto& [name, value] : arguments.keywords) given.push_back(value);
  const bool is_plain = !given.empty() && given.size() <= 2 && runtime::is_tensor(given[0].get()) &&
                        (given.size() == 1 || PyBool_Check(given[1].get()));
  const bool wanted = given.size() == 1 || given.back() == Py_True;
  if (!is_plain || interpreter.torch_calls) interpreter.stop("calls .requires_grad_ of a tensor");
  const at::Tensor& tensor = runtime::tensor_of(given[0].get());
  if (tensor.requires_grad() == wanted) return given[0];
  const bool can = trace::is_trace_tensor(given[0].get()) &&
                   !interpreter.externals.is_external(given[0].get()) && wanted && !tensor.is_view() &&
                   !tensor.is_inference() && at::isFloatingType(tensor.scalar_type());
  if (!can) interpreter.stop("calls .requires_grad_ of a tensor");
  tensor.set_requires_grad(true);
  return given[0];
}

// torch.asarray(tensor, requires_grad=True): the tensor itself, which requires grad from then on.
bool requires_grad_of_argument(PyObject* callable, const Arguments& arguments) {
  return callable == well_known("torch", "asarray") && !arguments.positional.empty() &&
         runtime::is_tensor(arguments.positional[0].get()) &&
         std::ranges::any_of(arguments.keywords, [](const auto& keyword) {
           return text_of_str(keyword.first.get()) == "requires_grad" && keyword.second.get() != Py_False;
         });
}

// tensor.new_tensor(data): a tensor of the data, with the dtype and device of `tensor` unless others are
// given.
Ref make_like(Interpreter& interpreter, PyObject* tensor, Arguments arguments) {
  for (const char* name : {"dtype", "device"}) {
    const auto is_asked = [&](const auto& given) {
      return PyUnicode_CompareWithASCIIString(given.first.get(), name) == 0;
    };
    if (std::ranges::none_of(arguments.keywords, is_asked))
      arguments.keywords.emplace_back(interned(name), Ref::steal(PyObject_GetAttrString(tensor, name)));
  }
  for (const Ref& value : arguments.positional)
    if (runtime::is_tensor(value.get())) interpreter.stop("copies a tensor by new_tensor()");
  return call(interpreter, well_known("torch", "tensor"), std::move(arguments));
}

// tensor.tolist() of a tensor whose elements are known. Nothing: they are not known.
std::optional<Ref> known_list(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  const bool is_bound = PyCFunction_Check(callable);
  if (arguments.positional.size() != (is_bound ? 0 : 1)) return std::nullopt;  // the real one raises
  PyObject* const self = is_bound ? PyCFunction_GET_SELF(callable) : arguments.positional[0].get();
  const std::optional<at::Tensor> elements = self ? interpreter.recorder.known_elements(self) : std::nullopt;
  if (!elements) return std::nullopt;
  const trace::Recorder::Pause pause;
  const Ref tensor = Ref::steal(runtime::wrap_tensor(*elements));
  return Ref::steal(PyObject_CallMethod(tensor.get(), "tolist", nullptr));
}

constexpr int64_t kMostNumbers = 32;  // each of which the host may have to read

int64_t known_size(Interpreter& interpreter, const at::Tensor& tensor, int64_t dim) {
  const sym::Expr size = torch_api::expression_of(tensor.sym_size(dim));
  return size.is_constant() ? size.constant() : PyLong_AsLongLong(specialised(interpreter, size).get());
}

// tensor.tolist() of a tensor of few numbers: their numbers, in lists as deep as the tensor has dimensions.
Ref list_of_numbers(Interpreter& interpreter, const at::Tensor& tensor) {
  if (tensor.dim() == 0) {
    if (std::optional<Ref> number = item_of_data(interpreter, tensor)) return *number;
    const Ref item = Ref::steal(runtime::wrap_tensor(tensor));
    return torch_result(interpreter,
                        [&] { return Ref::steal(PyObject_CallMethod(item.get(), "item", nullptr)); });
  }
  Ref list = Ref::steal(PyList_New(0));
  for (int64_t i = 0; i < known_size(interpreter, tensor, 0); ++i) {
    const Ref part = list_of_numbers(interpreter, tensor.select(0, i));
    if (!part || PyList_Append(list.get(), part.get()) != 0) return {};
  }
  return list;
}

// The tensor whose method is called without arguments; null for other calls.
PyObject* traced_self(PyObject* callable, const Arguments& arguments) {
  const bool is_bound = PyCFunction_Check(callable);
  if (arguments.positional.size() != (is_bound ? 0 : 1)) return nullptr;
  PyObject* const self = is_bound ? PyCFunction_GET_SELF(callable) : arguments.positional[0].get();
  return self && trace::is_trace_tensor(self) ? self : nullptr;
}

// tensor.item() of a float or bool that only data tell. Nothing: it is another number.
std::optional<Ref> computed_item(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  PyObject* const self = traced_self(callable, arguments);
  return self ? item_of_data(interpreter, runtime::tensor_of(self)) : std::nullopt;
}

// The same for any call of tolist(). Nothing: the tensor is another one.
std::optional<Ref> computed_list(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  PyObject* const self = traced_self(callable, arguments);
  if (!self || !interpreter.numbers.symbols) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(self);
  if (tensor.is_complex()) return std::nullopt;
  int64_t count = 1;
  for (int64_t d = 0; d < tensor.dim(); ++d) count *= known_size(interpreter, tensor, d);
  if (count > kMostNumbers) return std::nullopt;
  return list_of_numbers(interpreter, tensor);
}

}  // namespace

Ref call_torch(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  // The method may have been looked up before the segment began, so get_attribute() has not refused it.
  const std::string_view method = tensor_method_name(callable);
  if (method == "requires_grad_") return require_grad(interpreter, callable, arguments);
  if (requires_grad_of_argument(callable, arguments)) interpreter.stop("calls asarray with requires_grad");
  if (method == "new" || method == "new_tensor") {
    Arguments others = arguments;
    Ref self = PyCFunction_Check(callable) ? Ref::borrow(PyCFunction_GET_SELF(callable)) : Ref();
    if (!self && !others.positional.empty()) {
      self = others.positional[0];
      others.positional.erase(others.positional.begin());
    }
    if (!self || !runtime::is_tensor(self.get()))
      interpreter.stop(fmt::format("calls Tensor.{}() without a tensor", method));
    return method == "new" ? new_like(interpreter, self.get(), others)
                           : make_like(interpreter, self.get(), std::move(others));
  }
  if (std::optional<Ref> result = call_fused_optimizer(interpreter, callable, arguments)) return *result;
  if (std::optional<Ref> result = call_number_form(interpreter, callable, method, arguments)) return *result;
  if (arguments.keywords.empty() && arguments.positional.size() == 1 &&
      callable == well_known("torch", "tensor"))
    if (std::optional<Ref> tensor = tensor_of_floats(interpreter, arguments.positional[0].get()))
      return *tensor;
  if (callable == well_known("torch", "tensor") || callable == well_known("torch", "as_tensor"))
    if (std::optional<Ref> tensor = tensor_of_varying(interpreter, arguments)) return *tensor;
  try {
    if (const std::optional<Ref> result = call_with_size(interpreter, callable, arguments)) return *result;
  } catch (const c10::Error&) {
    set_torch_error();
    stop_on_torch_error(interpreter);
  }
  if (method == "item" && arguments.keywords.empty())
    if (std::optional<Ref> number = computed_item(interpreter, callable, arguments)) return *number;
  if (method == "tolist" && arguments.keywords.empty())
    for (const auto& way : {&known_list, &computed_list})
      if (std::optional<Ref> list = way(interpreter, callable, arguments)) return *list;
  if (is_untraceable(method)) interpreter.stop(fmt::format("calls .{} of a tensor", method));
  if (const std::optional<Arguments> plain = with_plain_mask(callable, arguments))
    return call_torch(interpreter, callable, *plain);
  if (const std::optional<Arguments> tensors = tensors_for_varying(interpreter, callable, method, arguments))
    return call_torch(interpreter, callable, *tensors);
  if (PyCFunction_Check(callable)) {
    auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
    const std::string_view name = function->m_ml->ml_name;
    if (name.ends_with('_') && is_untraceable(name)) interpreter.stop(fmt::format("calls torch.{}", name));
    if (name.starts_with(kForeach)) return call_foreach(interpreter, name.substr(kForeach.size()), arguments);
    if (!arguments.keywords.empty()) {
      Arguments others = arguments;
      PyObject* self = method.empty() ? nullptr : function->m_self;
      if (!self && !others.positional.empty()) {
        self = arguments.positional[0].get();
        others.positional.erase(others.positional.begin());
      }
      if (auto result = self ? call_with_factor(interpreter, self, name, others) : std::nullopt)
        return std::move(*result);
    }
  }
  return torch_result(interpreter,
                      [&] { return call_real_plain(interpreter, callable, arguments, ShownAs::Symbols); });
}

namespace {

// The place that the warning would name in eager, where the interpreted frames are frames of the thread.
WarningPlace place_of_warning(Interpreter& interpreter, PyObject* filename, int line) {
  const Frame* evaluated = interpreter.frame;
  for (Ref real = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame())); real && evaluated;
       evaluated = evaluated->back) {
    auto* const frame = reinterpret_cast<PyFrameObject*>(real.get());
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    if (PyFrame_GetLineNumber(frame) == line &&
        PyUnicode_Compare(reinterpret_cast<PyCodeObject*>(code.get())->co_filename, filename) == 0)
      return {Ref::borrow(evaluated->pycode()->co_filename), evaluated->globals,
              evaluated->instruction().line};
    real = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
  }
  return {Ref::borrow(filename), Ref(), line};
}

}  // namespace

void note_warnings(Interpreter& interpreter, std::span<const Ref> messages) {
  for (const Ref& given : messages) {
    const auto member = [&](const char* name) {
      return Ref::steal(PyObject_GetAttrString(given.get(), name));
    };
    const Ref message = member("message"), category = member("category"), filename = member("filename");
    const Ref line = member("lineno");
    if (!message || !category || !filename || !line) {
      PyErr_Clear();
      interpreter.stop("torch warns here");
    }
    const int number = static_cast<int>(PyLong_AsLong(line.get()));
    if (interpreter.options.warnings &&
        !interpreter.options.warnings->note(message.get(), category.get(),
                                            place_of_warning(interpreter, filename.get(), number)))
      continue;
    const Ref text = Ref::steal(PyObject_Str(message.get()));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    PyErr_Clear();
    const std::string_view words = utf8 ? utf8 : "?";
    // Behind this text PyTorch names a line of its own source.
    const size_t end = std::min(words.find(" (Triggered internally"), words.size());
    interpreter.stop(fmt::format("torch warns here: {}", words.substr(0, end)), "it warns at every call");
  }
}

Ref torch_result_or_error(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  const CollectedWarnings warnings;
  Ref result = call_real_plain(interpreter, callable, arguments);
  if (!result && PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(interpreter);
  if (result && !warnings.messages().empty()) note_warnings(interpreter, warnings.messages());
  return result;
}

}  // namespace oxy::eval
