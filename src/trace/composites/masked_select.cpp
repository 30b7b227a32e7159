#include "trace/composites/masked_select.h"

#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <optional>
#include <string>

#include "torch_api/autograd_node.h"
#include "trace/composites/with_gradient.h"

namespace oxy::trace {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

class MaskedSelectBackward final : public torch::autograd::Node {
 public:
  MaskedSelectBackward(const at::Tensor& self, const at::Tensor& mask)
      : self_(self, /*is_output=*/false), mask_(mask, /*is_output=*/false) {}

  variable_list apply(variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    return {at::index_put(at::zeros_like(self_.unpack()),
                          c10::List<std::optional<at::Tensor>>{mask_.unpack()}, gradients[0])};
  }

  void release_variables() override {
    self_.reset_data();
    mask_.reset_data();
  }
  std::string name() const override { return "MaskedSelectBackward0"; }

 private:
  SavedVariable self_, mask_;
};

}  // namespace

at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  const auto node = torch_api::make_node<MaskedSelectBackward>(self, mask);
  return with_gradient(self, node,
                       [&] { return at::index(self, c10::List<std::optional<at::Tensor>>{mask}); });
}

}  // namespace oxy::trace
