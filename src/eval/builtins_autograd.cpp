// Backward passes inside of a compiled function: recorded with the rest, by PyTorch's engine on trace
// tensors.
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "eval/builtin_families.h"
#include "eval/objects.h"
#include "eval/torch_call.h"
#include "runtime/tensor_object.h"
#include "trace/inner_backward.h"

namespace oxy::eval {
namespace {

// By parameter name; null: not given.
class Bound {
 public:
  Bound(Evaluator& e, Arguments& given, std::string_view function, std::span<const char* const> names)
      : names_(names), values_(names.size()) {
    bool fits = given.positional.size() <= names.size();
    for (size_t i = 0; fits && i < given.positional.size(); ++i) values_[i] = given.positional[i];
    for (const auto& [key, value] : given.keywords) {
      const size_t i = index_of(PyUnicode_AsUTF8(key.get()));
      fits = fits && i < names.size() && !values_[i];
      if (fits) values_[i] = value;
    }
    if (!fits) e.stop(fmt::format("calls {}() with unusual arguments", function));
  }

  // Null for None too.
  Ref get(std::string_view name) const {
    const Ref& value = values_[index_of(name)];
    return value == Py_None ? Ref() : value;
  }

  bool flag(Evaluator& e, std::string_view name, bool otherwise) const {
    const Ref value = get(name);
    if (!value) return otherwise;
    if (!PyBool_Check(value.get())) e.stop(fmt::format("a backward pass with an unusual {}", name));
    return value == Py_True;
  }

 private:
  size_t index_of(std::string_view name) const {
    return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }

  std::span<const char* const> names_;
  std::vector<Ref> values_;
};

// The trace tensors, undefined where there is None, of a tensor or a sequence; none for a null.
std::vector<at::Tensor> tensors_in(Evaluator& e, PyObject* object) {
  if (!object) return {};
  const auto unpack = [&](PyObject* item) -> at::Tensor {
    if (item == Py_None) return {};
    if (!trace::is_trace_tensor(item)) e.stop("a backward pass of something that is no tensor of the graph");
    return runtime::tensor_of(item);
  };
  if (runtime::is_tensor(object)) return {unpack(object)};
  Ref items = e.drain(object);
  if (!items) e.stop("a backward pass of something that is no sequence of tensors");
  std::vector<at::Tensor> tensors;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    tensors.push_back(unpack(PyList_GET_ITEM(items.get(), i)));
  return tensors;
}

void require_defined(Evaluator& e, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors)
    if (!tensor.defined()) e.stop("a backward pass of None");
}

// What is wrong raises when the call is made for real.
trace::InnerBackward make_pass(Evaluator& e, PyObject* roots, PyObject* tangents, PyObject* inputs,
                               bool keep_graph, bool create_graph) {
  if (e.torch_calls()) e.stop("runs a backward pass, which a backend's program cannot");
  trace::InnerBackward pass{tensors_in(e, roots), tensors_in(e, tangents), tensors_in(e, inputs), keep_graph,
                            create_graph};
  require_defined(e, pass.roots);
  require_defined(e, pass.inputs);
  if (!tangents) pass.tangents.resize(pass.roots.size());
  if (pass.tangents.size() != pass.roots.size()) e.stop("a backward pass with too few or too many gradients");
  for (size_t i = 0; i < pass.roots.size(); ++i) {
    const at::Tensor& root = pass.roots[i];
    at::Tensor& tangent = pass.tangents[i];
    if (tangent.defined()) {
      if (tangent.sizes() != root.sizes() || tangent.is_complex() != root.is_complex())
        e.stop("a backward pass with a gradient of another shape");
    } else {
      if (root.numel() != 1 || !root.is_floating_point())
        e.stop("a backward pass of a tensor that is no number, without its gradient");
      tangent = at::ones_like(root, root.options(), at::MemoryFormat::Preserve);
    }
  }
  return pass;
}

template <class Work>
auto recorded(Evaluator& e, const Work& work) {
  const Evaluator::RecordedAs backward(e, graph::kInBackwardPass);
  try {
    return work();
  } catch (const Unsupported& unsupported) {
    e.stop(unsupported.reason(), unsupported.hint());
  } catch (const c10::Error& error) {
    const std::string_view text = error.what_without_backtrace();
    e.stop(fmt::format("torch raises: {}", text.substr(0, text.find('\n'))));
  }
}

// Autograd adds to what .grad of the real tensor is, or puts a new tensor there.
Ref accumulate(Evaluator& e, const trace::InnerBackward& pass) {
  if (pass.create_graph) e.stop("calls backward() with create_graph");
  trace::Recorder& recorder = e.recorder();
  const std::vector<at::Tensor> leaves = recorded(e, [&] { return recorder.leaves_of(pass); });
  std::vector<Ref> objects;
  std::vector<at::Tensor> before;
  for (const at::Tensor& leaf : leaves) {
    objects.push_back(Ref::steal(runtime::wrap_tensor(leaf)));
    PyObject* object = objects.back().get();
    before.emplace_back();
    if (!e.is_external(object)) continue;
    e.require_no_gradient_hooks(object);
    Ref gradient = e.gradient_of(object);
    if (!gradient) e.stop("adds to the gradient of a tensor that cannot be read");
    if (gradient != Py_None) before.back() = runtime::tensor_of(gradient.get());
    leaf.mutable_grad() = before.back();
  }
  recorded(e, [&] { recorder.accumulate_gradients(pass); });
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!e.is_external(objects[i].get())) continue;
    const at::Tensor after = leaves[i].grad();
    leaves[i].mutable_grad().reset();
    if (after.defined() && !after.is_same(before[i]))
      e.record_attribute_effect(objects[i].get(), interned("grad").get(),
                                Ref::steal(runtime::wrap_tensor(after)).get());
  }
  return none();
}

constexpr std::array kMethod = {"self", "gradient", "retain_graph", "create_graph", "inputs"};

Ref tensor_backward(Evaluator& e, Arguments& a) {
  const Bound bound(e, a, "backward", kMethod);
  const bool create_graph = bound.flag(e, "create_graph", false);
  return recorded(e, [&] {
    return accumulate(
        e, make_pass(e, bound.get("self").get(), bound.get("gradient").get(), bound.get("inputs").get(),
                     bound.flag(e, "retain_graph", create_graph), create_graph));
  });
}

constexpr std::array kBackward = {"tensors",      "grad_tensors",   "retain_graph",
                                  "create_graph", "grad_variables", "inputs"};

Ref autograd_backward(Evaluator& e, Arguments& a) {
  const Bound bound(e, a, "torch.autograd.backward", kBackward);
  if (bound.get("grad_variables")) e.stop("calls torch.autograd.backward() with grad_variables");
  const bool create_graph = bound.flag(e, "create_graph", false);
  return recorded(e, [&] {
    return accumulate(
        e, make_pass(e, bound.get("tensors").get(), bound.get("grad_tensors").get(),
                     bound.get("inputs").get(), bound.flag(e, "retain_graph", create_graph), create_graph));
  });
}

constexpr std::array kGrad = {"outputs",      "inputs",           "grad_outputs",
                              "retain_graph", "create_graph",     "only_inputs",
                              "allow_unused", "is_grads_batched", "materialize_grads"};

Ref autograd_grad(Evaluator& e, Arguments& a) {
  const Bound bound(e, a, "torch.autograd.grad", kGrad);
  const bool create_graph = bound.flag(e, "create_graph", false);
  const bool materialize = bound.flag(e, "materialize_grads", false);
  const bool allow_unused = bound.flag(e, "allow_unused", materialize);
  const Ref inputs = bound.get("inputs");
  if (!bound.flag(e, "only_inputs", true) || bound.flag(e, "is_grads_batched", false) ||
      (materialize && !allow_unused) || !inputs || PyDict_Check(inputs.get()))
    e.stop("calls torch.autograd.grad() with unusual arguments");
  return recorded(e, [&] {
    const trace::InnerBackward pass =
        make_pass(e, bound.get("outputs").get(), bound.get("grad_outputs").get(), inputs.get(),
                  bound.flag(e, "retain_graph", create_graph), create_graph);
    if (pass.inputs.empty()) e.stop("calls torch.autograd.grad() without inputs");
    for (const at::Tensor& input : pass.inputs) {
      const Ref object = Ref::steal(runtime::wrap_tensor(input));
      if (e.is_external(object.get())) e.require_no_gradient_hooks(object.get());
    }
    std::vector<at::Tensor> gradients = e.recorder().gradients_of(pass);
    Ref result = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(gradients.size())));
    for (size_t i = 0; i < gradients.size(); ++i) {
      at::Tensor& gradient = gradients[i];
      if (!gradient.defined() && !allow_unused) e.stop("asks for the gradient of a tensor that was not used");
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
