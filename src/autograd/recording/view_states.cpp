#include "autograd/recording/view_states.h"

#include "autograd/recording/view_creation.h"
#include "runtime/values/tensors.h"

namespace oxy::autograd {

namespace {

// `tensor` requires grad.
ViewState state_of(const at::Tensor& tensor) {
  if (creation_of(tensor) == CreationMeta::DEFAULT)
    return runtime::is_unrecorded_view(tensor) ? ViewState::Unrecorded : ViewState::Free;
  const auto known = torch::autograd::impl::get_view_autograd_meta(tensor)->get_attr_version();
  return known == static_cast<uint32_t>(tensor._version()) ? ViewState::Restricted : ViewState::Stale;
}

}  // namespace

ViewStates::ViewStates(const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs)
    if (output.requires_grad())
      if (const ViewState state = state_of(output); state != ViewState::Free)
        restricted_.emplace(output.unsafeGetTensorImpl(), state);
}

ViewState ViewStates::of(const at::Tensor& tensor) const {
  const auto found = restricted_.find(tensor.unsafeGetTensorImpl());
  return found == restricted_.end() ? ViewState::Free : found->second;
}

}  // namespace oxy::autograd
