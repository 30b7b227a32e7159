// torch.autograd.Function: the user's forward() is inlined like any other code. The backward() is interpreted
// when autograd's engine, which runs on trace tensors, comes to its node.
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>

#include "autograd/recording/engine.h"
#include "cpy/gil.h"
#include "eval/builtins/builtin_families.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/treatment/prelude.h"
#include "runtime/values/tensor_object.h"
#include "torch_api/autograd_node.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {
namespace {

using torch::autograd::variable_list;

// A tensor that save_for_backward() was given. The context keeps it alive. A strong reference would make a
// cycle, as a saved result holds the node to which this belongs.
struct Saved {
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
  uint32_t version;
};

// The node of a call in autograd's graph of trace tensors. It lives no longer than the interpreter.
class EvaluatedFunction final : public autograd::ProgramNode {
 public:
  EvaluatedFunction(Interpreter& interpreter, Ref backward, Ref context, size_t arguments,
                    std::vector<size_t> tensors, std::vector<Saved> saved)
      : interpreter_(interpreter),
        backward_(std::move(backward)),
        context_(std::move(context)),
        arguments_(arguments),
        tensors_(std::move(tensors)),
        saved_(std::move(saved)) {}

  ~EvaluatedFunction() override {
    const PyGILState_STATE state = PyGILState_Ensure();
    backward_.reset();
    context_.reset();
    PyGILState_Release(state);
  }

  // By result: the number of its gradient among those that come to this node; -1: it has none.
  std::vector<int> gradient_of_result;

  variable_list apply(variable_list&& gradients) override {
    const cpy::WithGil gil;
    TORCH_CHECK(!is_released_ || saved_.empty(), torch::autograd::ERR_BACKWARD_TWICE);
    for (const Saved& saved : saved_)
      if (const auto tensor = saved.tensor.lock();
          tensor && tensor->version_counter().current_version() != saved.version)
        trace::throw_cannot_trace("a tensor that a function has saved was written to");
    try {
      return run(gradients);
    } catch (const Break& stop) {
      PyErr_Clear();
      trace::throw_cannot_trace(stop.reason);
    }
  }

  void release_variables() override { is_released_ = true; }
  bool saves_tensors() const override { return !saved_.empty(); }
  std::string name() const override { return "EvaluatedFunction"; }

 private:
  variable_list run(const variable_list& gradients) {
    Arguments arguments;
    arguments.positional.push_back(context_);
    Ref materializes = Ref::steal(PyObject_GetAttrString(context_.get(), "materialize_grads"));
    for (const int index : gradient_of_result) {
      at::Tensor gradient = index < 0 ? at::Tensor() : gradients[static_cast<size_t>(index)];
      if (!gradient.defined() && index >= 0 && materializes != Py_False)
        gradient = input_metadata(static_cast<uint32_t>(index)).zeros_like();
      arguments.positional.push_back(gradient.defined() ? Ref::steal(runtime::wrap_tensor(gradient))
                                                        : none());
    }
    Ref result = call(interpreter_, backward_.get(), std::move(arguments));
    if (!result) {
      PyErr_Clear();
      trace::throw_cannot_trace("the backward() of a function raises");
    }
    if (!PyTuple_Check(result.get())) result = Ref::steal(PyTuple_Pack(1, result.get()));
    const auto given = static_cast<size_t>(PyTuple_GET_SIZE(result.get()));
    for (size_t i = 0; i < std::max(given, arguments_); ++i) {
      const bool fits = i < given && (i < arguments_ || PyTuple_GET_ITEM(result.get(), i) == Py_None);
      if (!fits)
        trace::throw_cannot_trace("the backward() of a function returns too few or too many gradients");
    }
    variable_list results;
    for (const size_t i : tensors_) {
      PyObject* item = PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i));
      if (item != Py_None && !runtime::is_tensor(item))
        trace::throw_cannot_trace("the backward() of a function returns something that is no gradient");
      results.push_back(item == Py_None ? at::Tensor() : runtime::tensor_of(item));
    }
    return results;
  }

  Interpreter& interpreter_;
  Ref backward_;
  Ref context_;
  size_t arguments_;
  std::vector<size_t> tensors_;  // which arguments are tensors
  std::vector<Saved> saved_;
  bool is_released_ = false;
};

Ref member(Interpreter& interpreter, PyObject* object, const char* name) {
  Ref value = get_attribute(interpreter, object, interned(name).get());
  if (!value) interpreter.stop(fmt::format("calls a torch.autograd.Function without {}()", name));
  return value;
}

std::vector<at::Tensor> tensors_of(Interpreter& interpreter, PyObject* context, const char* name) {
  Ref value = member(interpreter, context, name);
  std::vector<at::Tensor> tensors;
  Ref items = value == Py_None ? Ref::steal(PyList_New(0)) : drain(interpreter, value.get());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    if (item != Py_None && !trace::is_trace_tensor(item))
      interpreter.stop("a function saves or marks something else than tensors");
    if (item != Py_None) tensors.push_back(runtime::tensor_of(item));
  }
  return tensors;
}

bool is_among(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
  return std::ranges::any_of(tensors, [&](const at::Tensor& t) { return t.is_same(tensor); });
}

Ref tuple_of(const std::vector<Ref>& items) {
  Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), items[i].new_reference());
  return tuple;
}

}  // namespace

Ref apply_function(Interpreter& interpreter, Arguments& a) {
  if (a.positional.empty() || !PyType_Check(arg(a, 0)) || !a.keywords.empty())
    interpreter.stop("calls a torch.autograd.Function with unusual arguments");
  if (interpreter.torch_calls.get())
    interpreter.stop("calls a torch.autograd.Function, which a backend's program cannot");
  Ref function = std::move(a.positional.front());
  a.positional.erase(a.positional.begin());
  const Ref forward = member(interpreter, function.get(), "forward"),
            setup = member(interpreter, function.get(), "setup_context");
  const Ref backward = member(interpreter, function.get(), "backward");
  std::vector<Ref> needs;
  std::vector<size_t> places;
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < a.positional.size(); ++i) {
    PyObject* value = arg(a, i);
    const bool is_tensor = runtime::is_tensor(value);
    if (is_tensor && !trace::is_trace_tensor(value))
      interpreter.stop("gives a torch.autograd.Function a tensor made outside");
    needs.push_back(boolean(is_tensor && runtime::tensor_of(value).requires_grad()));
    if (!is_tensor) continue;
    places.push_back(i);
    inputs.push_back(runtime::tensor_of(value));
  }
  const bool records = at::GradMode::is_enabled() &&
                       std::ranges::any_of(inputs, [](const at::Tensor& t) { return t.requires_grad(); });
  Ref context =
      call_positional(interpreter, prelude_function("new_function_context").get(), {tuple_of(needs)});
  if (!context) return {};
  Ref result;
  {
    const at::NoGradGuard no_grad;
    std::vector<Ref> given = a.positional;
    const bool has_setup = setup != well_known("torch.autograd.function", "Function.setup_context");
    if (!has_setup) given.insert(given.begin(), context);
    result = call_positional(interpreter, forward.get(), std::move(given));
    if (result && has_setup &&
        !call_positional(interpreter, setup.get(), {context, tuple_of(a.positional), result}))
      return {};
  }
  if (!result) return {};
  if (!tensors_of(interpreter, context.get(), "dirty_tensors").empty())
    interpreter.stop("calls a torch.autograd.Function that writes to its arguments");
  std::vector<Ref> results = {result};
  if (PyTuple_CheckExact(result.get())) {
    results.clear();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i)
      results.push_back(Ref::borrow(PyTuple_GET_ITEM(result.get(), i)));
  }
  const std::vector<at::Tensor> not_differentiable =
      tensors_of(interpreter, context.get(), "non_differentiable");
  std::vector<at::Tensor> outputs;
  std::vector<int> gradient_of_result;
  for (const Ref& item : results) {
    gradient_of_result.push_back(-1);
    if (!runtime::is_tensor(item.get())) continue;
    const at::Tensor& tensor = runtime::tensor_of(item.get());
    if (!trace::is_trace_tensor(item.get()) || is_among(inputs, tensor) ||
        interpreter.externals.is_external(item.get()))
      interpreter.stop("calls a torch.autograd.Function that returns a tensor that it has not made");
    if (is_among(not_differentiable, tensor) || !(tensor.is_floating_point() || tensor.is_complex()))
      continue;
    if (records && (tensor.is_view() || tensor.requires_grad() || is_among(outputs, tensor)))
      interpreter.stop("calls a torch.autograd.Function that returns a view, or a tensor with a history");
    gradient_of_result.back() = static_cast<int>(outputs.size());
    outputs.push_back(tensor);
  }
  if (!records || outputs.empty()) return result;
  interpreter.calls.function_contexts.push_back(context);
  std::vector<Saved> saved;
  for (const at::Tensor& tensor : tensors_of(interpreter, context.get(), "to_save"))
    saved.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()),
                     static_cast<uint32_t>(tensor._version())});
  torch::autograd::edge_list edges;
  for (const at::Tensor& input : inputs)
    edges.push_back(input.requires_grad() ? torch::autograd::impl::gradient_edge(input)
                                          : torch::autograd::Edge());
  auto node = torch_api::make_node<EvaluatedFunction>(interpreter, backward, context, a.positional.size(),
                                                      std::move(places), std::move(saved));
  node->set_next_edges(std::move(edges));
  node->gradient_of_result = std::move(gradient_of_result);
  for (const at::Tensor& output : outputs) torch::autograd::set_history(output, node);
  return result;
}

namespace {

// apply(), where it is a method in Python. Where it is one of C code, call_c_method() comes to it.
constexpr BuiltinEntry kTable[] = {
    {"torch.autograd.function", "Function.apply.__func__", &apply_function},
};

}  // namespace

std::span<const BuiltinEntry> function_builtins() {
  return kTable;
}

}  // namespace oxy::eval
