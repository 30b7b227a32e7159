// Backward passes inside of a compiled function: recorded with the rest, by PyTorch's engine on trace
// tensors.
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <string_view>

#include "autograd/recording/inner_backward.h"
#include "base/error.h"
#include "eval/builtins/builtin_families.h"
#include "eval/externals/effects.h"
#include "eval/objects/attributes.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/recorded_as.h"
#include "eval/torch/torch_call.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {
namespace {

// The arguments of a call by the names of its parameters.
class Bound {
 public:
  Bound(Interpreter& interpreter, Arguments& given, std::string_view function,
        std::span<const char* const> names)
      : names_(names), values_(names.size()) {
    bool fits = given.positional.size() <= names.size();
    for (size_t i = 0; fits && i < given.positional.size(); ++i) values_[i] = given.positional[i];
    for (const auto& [key, value] : given.keywords) {
      const size_t i = index_of(PyUnicode_AsUTF8(key.get()));
      fits = fits && i < names.size() && !values_[i];
      if (fits) values_[i] = value;
    }
    if (!fits) interpreter.stop(fmt::format("calls {}() with unusual arguments", function));
  }

  // Null if it was not given or is None.
  Ref get(std::string_view name) const {
    const Ref& value = values_[index_of(name)];
    return value == Py_None ? Ref() : value;
  }

  bool flag(Interpreter& interpreter, std::string_view name, bool otherwise) const {
    const Ref value = get(name);
    if (!value) return otherwise;
    if (!PyBool_Check(value.get())) interpreter.stop(fmt::format("a backward pass with an unusual {}", name));
    return value == Py_True;
  }

 private:
  size_t index_of(std::string_view name) const {
    return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }

  std::span<const char* const> names_;
  std::vector<Ref> values_;
};

// The trace tensors of an argument: a tensor, a sequence of tensors or None (undefined), or null (no
// tensors).
std::vector<at::Tensor> tensors_in(Interpreter& interpreter, PyObject* object) {
  if (!object) return {};
  const auto unpack = [&](PyObject* item) -> at::Tensor {
    if (item == Py_None) return {};
    if (!trace::is_trace_tensor(item))
      interpreter.stop("a backward pass of something that is no tensor of the graph");
    return runtime::tensor_of(item);
  };
  if (runtime::is_tensor(object)) return {unpack(object)};
  Ref items = drain(interpreter, object);
  if (!items) interpreter.stop("a backward pass of something that is no sequence of tensors");
  std::vector<at::Tensor> tensors;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    tensors.push_back(unpack(PyList_GET_ITEM(items.get(), i)));
  return tensors;
}

void require_defined(Interpreter& interpreter, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors)
    if (!tensor.defined()) interpreter.stop("a backward pass of None");
}

// Stops at arguments that are not captured, and at wrong ones, for which eager raises.
autograd::InnerBackward make_pass(Interpreter& interpreter, PyObject* roots, PyObject* tangents,
                                  PyObject* inputs, bool keep_graph, bool create_graph) {
  if (interpreter.torch_calls.get())
    interpreter.stop("runs a backward pass, which a backend's program cannot");
  autograd::InnerBackward pass{tensors_in(interpreter, roots), tensors_in(interpreter, tangents),
                               tensors_in(interpreter, inputs), keep_graph, create_graph};
  require_defined(interpreter, pass.roots);
  require_defined(interpreter, pass.inputs);
  if (!tangents) pass.tangents.resize(pass.roots.size());
  if (pass.tangents.size() != pass.roots.size())
    interpreter.stop("a backward pass with too few or too many gradients");
  for (size_t i = 0; i < pass.roots.size(); ++i) {
    const at::Tensor& root = pass.roots[i];
    at::Tensor& tangent = pass.tangents[i];
    if (tangent.defined()) {
      if (tangent.sizes() != root.sizes() || tangent.is_complex() != root.is_complex())
        interpreter.stop("a backward pass with a gradient of another shape");
    } else {
      if (root.numel() != 1 || !root.is_floating_point())
        interpreter.stop("a backward pass of a tensor that is no number, without its gradient");
      tangent = at::ones_like(root, root.options(), at::MemoryFormat::Preserve);
    }
  }
  return pass;
}

template <class Work>
auto recorded(Interpreter& interpreter, const Work& work) {
  const RecordedAs backward(interpreter, graph::kInBackwardPass);
  try {
    return work();
  } catch (const Unsupported& unsupported) {
    interpreter.stop(unsupported.reason(), unsupported.hint());
  } catch (const c10::Error& error) {
    const std::string_view text = error.what_without_backtrace();
    interpreter.stop(fmt::format("torch raises: {}", text.substr(0, text.find('\n'))));
  }
}

// Runs a pass that accumulates: into .grad of the leaves. Autograd itself decides whether it adds to a
// gradient or puts a new tensor there.
Ref accumulate(Interpreter& interpreter, const autograd::InnerBackward& pass) {
  if (pass.create_graph) interpreter.stop("calls backward() with create_graph");
  trace::Recorder& recorder = interpreter.recorder;
  const std::vector<at::Tensor> leaves =
      recorded(interpreter, [&] { return autograd::leaves_of(recorder, pass); });
  std::vector<Ref> objects;
  std::vector<at::Tensor> before;
  for (const at::Tensor& leaf : leaves) {
    objects.push_back(Ref::steal(runtime::wrap_tensor(leaf)));
    PyObject* object = objects.back().get();
    before.emplace_back();
    if (!interpreter.externals.is_external(object)) continue;
    require_no_gradient_hooks(interpreter, object);
    Ref gradient = gradient_of(interpreter, object);
    if (!gradient) interpreter.stop("adds to the gradient of a tensor that cannot be read");
    if (gradient != Py_None) before.back() = runtime::tensor_of(gradient.get());
    leaf.mutable_grad() = before.back();
  }
  recorded(interpreter, [&] { autograd::accumulate_gradients(recorder, pass); });
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!interpreter.externals.is_external(objects[i].get())) continue;
    const at::Tensor after = leaves[i].grad();
    leaves[i].mutable_grad().reset();
    if (after.defined() && !after.is_same(before[i]))
      record_attribute_effect(interpreter, objects[i].get(), interned("grad").get(),
                              Ref::steal(runtime::wrap_tensor(after)).get());
  }
  return none();
}

constexpr std::array kMethod = {"self", "gradient", "retain_graph", "create_graph", "inputs"};

Ref tensor_backward(Interpreter& interpreter, Arguments& a) {
  const Bound bound(interpreter, a, "backward", kMethod);
  const bool create_graph = bound.flag(interpreter, "create_graph", false);
  return recorded(interpreter, [&] {
    return accumulate(interpreter,
                      make_pass(interpreter, bound.get("self").get(), bound.get("gradient").get(),
                                bound.get("inputs").get(),
                                bound.flag(interpreter, "retain_graph", create_graph), create_graph));
  });
}

constexpr std::array kBackward = {"tensors",      "grad_tensors",   "retain_graph",
                                  "create_graph", "grad_variables", "inputs"};

Ref autograd_backward(Interpreter& interpreter, Arguments& a) {
  const Bound bound(interpreter, a, "torch.autograd.backward", kBackward);
  if (bound.get("grad_variables")) interpreter.stop("calls torch.autograd.backward() with grad_variables");
  const bool create_graph = bound.flag(interpreter, "create_graph", false);
  return recorded(interpreter, [&] {
    return accumulate(interpreter,
                      make_pass(interpreter, bound.get("tensors").get(), bound.get("grad_tensors").get(),
                                bound.get("inputs").get(),
                                bound.flag(interpreter, "retain_graph", create_graph), create_graph));
  });
}

constexpr std::array kGrad = {"outputs",      "inputs",           "grad_outputs",
                              "retain_graph", "create_graph",     "only_inputs",
                              "allow_unused", "is_grads_batched", "materialize_grads"};

Ref autograd_grad(Interpreter& interpreter, Arguments& a) {
  const Bound bound(interpreter, a, "torch.autograd.grad", kGrad);
  const bool create_graph = bound.flag(interpreter, "create_graph", false);
  const bool materialize = bound.flag(interpreter, "materialize_grads", false);
  const bool allow_unused = bound.flag(interpreter, "allow_unused", materialize);
  const Ref inputs = bound.get("inputs");
  if (!bound.flag(interpreter, "only_inputs", true) || bound.flag(interpreter, "is_grads_batched", false) ||
      (materialize && !allow_unused) || !inputs || PyDict_Check(inputs.get()))
    interpreter.stop("calls torch.autograd.grad() with unusual arguments");
  return recorded(interpreter, [&] {
    const autograd::InnerBackward pass =
        make_pass(interpreter, bound.get("outputs").get(), bound.get("grad_outputs").get(), inputs.get(),
                  bound.flag(interpreter, "retain_graph", create_graph), create_graph);
    if (pass.inputs.empty()) interpreter.stop("calls torch.autograd.grad() without inputs");
    for (const at::Tensor& input : pass.inputs) {
      const Ref object = Ref::steal(runtime::wrap_tensor(input));
      if (interpreter.externals.is_external(object.get()))
        require_no_gradient_hooks(interpreter, object.get());
    }
    std::vector<at::Tensor> gradients = autograd::gradients_of(interpreter.recorder, pass);
    Ref result = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(gradients.size())));
    for (size_t i = 0; i < gradients.size(); ++i) {
      at::Tensor& gradient = gradients[i];
      if (!gradient.defined() && !allow_unused)
        interpreter.stop("asks for the gradient of a tensor that was not used");
      if (!gradient.defined() && materialize)
        gradient = at::zeros_like(pass.inputs[i]).set_requires_grad(create_graph);
      PyTuple_SET_ITEM(
          result.get(), static_cast<Py_ssize_t>(i),
          gradient.defined() ? runtime::wrap_tensor(gradient) : Ref::borrow(Py_None).new_reference());
    }
    return result;
  });
}

constexpr BuiltinEntry kTable[] = {
    {"torch", "Tensor.backward", &tensor_backward},
    {"torch.autograd", "backward", &autograd_backward},
    {"torch.autograd", "grad", &autograd_grad},
};

}  // namespace

std::span<const BuiltinEntry> autograd_builtins() {
  return kTable;
}

}  // namespace oxy::eval
