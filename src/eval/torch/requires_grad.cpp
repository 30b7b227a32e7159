#include "eval/torch/requires_grad.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "runtime/values/tensor_object.h"
#include "runtime/values/tensors.h"

namespace oxy::eval {

namespace {

bool is_made_without_gradients(const at::Tensor& tensor) {
  return tensor.is_view() && torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta() ==
                                 torch::autograd::CreationMeta::NO_GRAD_MODE;
}

// Whether autograd leads from the tensor to one that requires grad itself.
bool has_leaf(const at::Tensor& tensor) {
  std::vector<const torch::autograd::Node*> stack{tensor.grad_fn().get()};
  std::unordered_set<const torch::autograd::Node*> seen;
  while (!stack.empty()) {
    const torch::autograd::Node* const node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->num_outputs() == 0) return true;
    for (const torch::autograd::Edge& edge : node->next_edges())
      if (edge.is_valid()) stack.push_back(edge.function.get());
  }
  return false;
}

// Whether an argument is a leaf and a view itself.
bool is_view_of_its_own(PyObject* real) {
  return runtime::is_tensor(real) && runtime::loses_history_when_written(runtime::tensor_of(real));
}

}  // namespace

bool requires_grad_in_eager(Interpreter& interpreter, const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return false;
  const auto& arguments = interpreter.externals.external_of;
  if (is_made_without_gradients(tensor)) {
    const cpy::Ref base = cpy::Ref::steal(runtime::wrap_tensor(tensor._base()));
    const auto argument = arguments.find(base.get());
    return argument == arguments.end() || !is_view_of_its_own(argument->second);
  }
  const auto may_mislead = [](const auto& entry) { return is_view_of_its_own(entry.second); };
  if (tensor.grad_fn() && std::ranges::any_of(arguments, may_mislead) && !has_leaf(tensor))
    interpreter.stop("asks whether something requires grad that is computed of views made under no_grad");
  return true;
}

}  // namespace oxy::eval
