// Functions of torch that read a tensor's data without calling an operator. They are expressed by functions
// that call one.
#include <ATen/core/grad_mode.h>
#include <torch/csrc/Device.h>

#include <algorithm>

#include "eval/builtins/builtin_families.h"
#include "eval/externals/c_calls.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/torch/torch_call.h"
#include "runtime/device/current.h"
#include "runtime/values/host.h"
#include "runtime/values/tensor_object.h"
#include "trace/composites/masked_select.h"

namespace oxy::eval {
namespace {

// torch.max_pool1d(). Without gradients torch computes it without an operator, into a contiguous result.
Ref max_pool1d(Interpreter& interpreter, Arguments& a) {
  constexpr size_t kReturnIndices = 6;
  PyObject* with_indices = well_known("torch.nn.functional", "max_pool1d_with_indices");
  Ref asked =
      a.positional.size() > kReturnIndices ? a.positional[kReturnIndices] : keyword(a, "return_indices");
  if (!with_indices || (asked && asked != Py_False && asked != Py_True))
    interpreter.stop("calls max_pool1d() with unusual arguments");
  const Ref input = a.positional.empty() ? keyword(a, "input") : a.positional[0];
  if (!input || !trace::is_trace_tensor(input.get()))
    interpreter.stop("calls max_pool1d() with unusual arguments");
  const at::Tensor& tensor = runtime::tensor_of(input.get());
  const bool by_own_kernel = asked != Py_True && !(at::GradMode::is_enabled() && tensor.requires_grad());
  if (by_own_kernel && !tensor.is_floating_point())
    interpreter.stop("calls max_pool1d() of numbers that it refuses");
  Ref both = call_torch(interpreter, with_indices, a);
  if (asked == Py_True) return both;
  if (!PyTuple_Check(both.get())) interpreter.stop("calls max_pool1d() with unusual arguments");
  Ref values = Ref::borrow(PyTuple_GET_ITEM(both.get(), 0));
  if (!by_own_kernel) return values;
  Ref contiguous = Ref::steal(PyObject_GetAttrString(values.get(), "contiguous"));
  return contiguous ? call_torch(interpreter, contiguous.get(), {}) : Ref();
}

// _get_value() of torch.optim: an optimizer's counter as a number. A tensor without dimensions is used as the
// number would be, in the same precision.
Ref number_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch.optim.optimizer._get_value", 1, 1);
  PyObject* value = arg(a, 0);
  if (!trace::is_trace_tensor(value)) return a.positional[0];
  const at::Tensor& tensor = runtime::tensor_of(value);
  if (tensor.dim() != 0 || !tensor.is_floating_point()) interpreter.stop("reads a counter that is no float");
  return call_method(interpreter, call_method(interpreter, value, "detach", {}).get(), "double", {});
}

Ref numbers_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch.optim.optimizer._stack_if_compiling", 1, 1);
  return a.positional[0];
}

// What the function itself raises where its condition does not hold. `given`: its arguments before that.
// `message`: what the program gave it, called here, or null.
Ref raise_as(Interpreter& interpreter, const char* name, std::vector<Ref> given, PyObject* message) {
  given.push_back(Ref::borrow(Py_False));
  if (message && message != Py_None) {
    Ref text = PyCallable_Check(message) ? call(interpreter, message, {}) : Ref::borrow(message);
    if (!text) return {};
    if (PyCallable_Check(message)) {
      if (!PyUnicode_CheckExact(text.get()))
        interpreter.stop(fmt::format("makes an unusual message for {}()", name));
      text = Ref::steal(PyObject_GetAttrString(text.get(), "__str__"));
    }
    given.push_back(std::move(text));
  }
  return call_real(interpreter, well_known("torch", name), Arguments{std::move(given), {}});
}

PyObject* message_of(const Arguments& a, size_t position) {
  return a.positional.size() > position ? a.positional[position].get() : keyword(a, "message").get();
}

// Whether the condition of a check holds: a known bool, a relation of sizes with a guard, or what the run
// checks. Stops at what is no bool, and where data decide that it does not hold.
bool condition_holds(Interpreter& interpreter, PyObject* condition, const char* name) {
  const auto stop = [&] { interpreter.stop(fmt::format("calls torch.{}()", name)); };
  if (PyBool_Check(condition)) return condition == Py_True;
  if (!is_varying_number(condition) || varying_class(interpreter, condition) != &PyBool_Type) stop();
  const std::optional<sym::Condition> undecided = undecided_truth(interpreter, condition);
  if (!undecided) return constant_of(interpreter, condition) == Py_True;
  if (rely_on(interpreter, *undecided)) return true;
  if (depends_on_data(interpreter, condition)) stop();
  return decide(interpreter, *undecided);
}

// torch._check() and the like.
template <const char* const& kName>
Ref check_condition(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, kName, 1, 2, true);
  refuse_keywords(interpreter, a, kName, {"message"});
  if (condition_holds(interpreter, arg(a, 0), kName)) return none();
  return raise_as(interpreter, kName, {}, message_of(a, 1));
}

constexpr const char* kCheck = "_check";
constexpr const char* kCheckIndex = "_check_index";
constexpr const char* kCheckNotImplemented = "_check_not_implemented";
constexpr const char* kCheckType = "_check_type";
constexpr const char* kCheckValue = "_check_value";

// torch._check_is_size(i, message=None, *, max=None). What it warns of is not shown.
Ref check_size(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch._check_is_size", 1, 2, true);
  refuse_keywords(interpreter, a, "torch._check_is_size", {"message", "max"});
  const Ref most = keyword(a, "max");
  const bool has_most = most && most != Py_None;
  const auto holds = [&](PyObject* bound, int comparison) {
    const Ref answer = compare(interpreter, arg(a, 0), bound, comparison);
    return answer && condition_holds(interpreter, answer.get(), "_check_is_size");
  };
  const Ref zero = Ref::steal(PyLong_FromLong(0));
  bool is_size = true;
  if (is_varying_number(arg(a, 0)) && depends_on_data(interpreter, arg(a, 0))) {
    const std::optional<sym::Expr> size = expression_of(interpreter, arg(a, 0));
    if (!size) interpreter.stop("calls torch._check_is_size()");
    const torch_api::Symbols& symbols = *interpreter.numbers.symbols;
    if (interpreter.numbers.symbols->environment.expect_size(*size, symbols.where) == sym::Checked::Fails)
      interpreter.stop("calls torch._check_is_size()");
  } else {
    is_size = holds(zero.get(), Py_GE);
  }
  if (is_size && (!has_most || holds(most.get(), Py_LE))) return none();
  return PyErr_Occurred() ? Ref() : raise_as(interpreter, "_check", {}, message_of(a, 1));
}

Ref check_condition_with(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch._check_with", 3, 3);
  if (condition_holds(interpreter, arg(a, 1), "_check_with")) return none();
  return raise_as(interpreter, "_check_with", {a.positional[0]}, arg(a, 2));
}

// torch.masked_select(). Its formula for gradients wants numbers for sizes; that of indexing does not.
Ref masked_select(Interpreter& interpreter, Arguments& a) {
  PyObject* const real = well_known("torch", "masked_select");
  const auto is_traced = [](const Ref& value) { return trace::is_trace_tensor(value.get()); };
  if (a.positional.size() != 2 || !a.keywords.empty() || !std::ranges::all_of(a.positional, is_traced) ||
      runtime::tensor_of(arg(a, 1)).scalar_type() != at::kBool || !interpreter.numbers.symbols)
    return call_torch(interpreter, real, a);
  const Ref both = call_torch(interpreter, well_known("torch", "broadcast_tensors"), a);
  if (!both || !PySequence_Check(both.get()) || PySequence_Size(both.get()) != 2)
    interpreter.stop("calls torch.masked_select()");
  const Ref self = Ref::steal(PySequence_GetItem(both.get(), 0)),
            mask = Ref::steal(PySequence_GetItem(both.get(), 1));
  const at::Tensor& tensor = runtime::tensor_of(self.get());
  if (!at::GradMode::is_enabled() || !tensor.requires_grad())
    return get_item(interpreter, self.get(), mask.get());
  return torch_tensor(interpreter,
                      [&] { return trace::masked_select(tensor, runtime::tensor_of(mask.get())); });
}

// torch.get_default_device(): with the index of the current device if it has none of its own.
Ref default_device(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch.get_default_device", 0, 0);
  PyObject* device = interpreter.default_devices.current();
  return Ref::steal(THPDevice_New(device ? runtime::with_index(reinterpret_cast<THPDevice*>(device)->device)
                                         : c10::Device(runtime::kHost)));
}

constexpr BuiltinEntry kTable[] = {
    {"torch", "get_default_device", &default_device},
    {"torch", "_check", &check_condition<kCheck>},
    {"torch", "_check_with", &check_condition_with},
    {"torch", "_check_is_size", &check_size},
    {"torch", "_check_index", &check_condition<kCheckIndex>},
    {"torch", "_check_not_implemented", &check_condition<kCheckNotImplemented>},
    {"torch", "_check_type", &check_condition<kCheckType>},
    {"torch", "_check_value", &check_condition<kCheckValue>},
    {"torch.optim.optimizer", "_get_value", &number_of},
    {"torch.optim.optimizer", "_stack_if_compiling", &numbers_of},
    {"torch", "masked_select", &masked_select},
    {"torch", "Tensor.masked_select", &masked_select},
    {"torch", "max_pool1d", &max_pool1d},
    {"torch.nn.functional", "max_pool1d", &max_pool1d},
};

}  // namespace

std::span<const BuiltinEntry> torch_builtins() {
  return kTable;
}

}  // namespace oxy::eval
