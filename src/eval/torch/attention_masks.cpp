#include "eval/torch/attention_masks.h"

#include "eval/python/objects.h"
#include "runtime/values/tensor_object.h"
#include "trace/composites/attention_masks.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::eval {

namespace {

constexpr size_t kMask = 3;  // its place

Ref* mask_of(Arguments& arguments) {
  if (arguments.positional.size() > kMask) return &arguments.positional[kMask];
  for (auto& [name, value] : arguments.keywords)
    if (PyUnicode_CompareWithASCIIString(name.get(), "attn_mask") == 0) return &value;
  return nullptr;
}

}  // namespace

std::optional<Arguments> with_plain_mask(PyObject* callable, const Arguments& arguments) {
  if (callable != well_known("torch._C._nn", "scaled_dot_product_attention")) return std::nullopt;
  Arguments others = arguments;
  Ref* const mask = mask_of(others);
  if (mask == nullptr || !runtime::is_tensor(mask->get())) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(mask->get());
  const std::optional<at::Tensor> plain = trace::plain_mask(tensor);
  if (plain && plain->is_same(tensor)) return std::nullopt;
  *mask = plain ? Ref::steal(runtime::wrap_tensor(*plain)) : Ref::borrow(Py_None);
  return others;
}

}  // namespace oxy::eval
