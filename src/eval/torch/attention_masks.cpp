#include "eval/torch/attention_masks.h"

#include "eval/python/objects.h"
#include "runtime/values/tensor_object.h"
#include "trace/composites/attention_masks.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::eval {

namespace {

struct Parameter {
  size_t place;
  const char* name;
};

constexpr Parameter kQuery = {0, "query"}, kKey = {1, "key"}, kValue = {2, "value"}, kMask = {3, "attn_mask"},
                    kIsCausal = {5, "is_causal"};

// Null: it is not given.
Ref* argument_of(Arguments& arguments, const Parameter& parameter) {
  if (arguments.positional.size() > parameter.place) return &arguments.positional[parameter.place];
  for (auto& [name, value] : arguments.keywords)
    if (PyUnicode_CompareWithASCIIString(name.get(), parameter.name) == 0) return &value;
  return nullptr;
}

const at::Tensor* tensor_of(Arguments& arguments, const Parameter& parameter) {
  const Ref* const value = argument_of(arguments, parameter);
  return value != nullptr && runtime::is_tensor(value->get()) ? &runtime::tensor_of(value->get()) : nullptr;
}

}  // namespace

std::optional<Arguments> with_plain_mask(PyObject* callable, const Arguments& arguments) {
  if (callable != well_known("torch._C._nn", "scaled_dot_product_attention")) return std::nullopt;
  Arguments others = arguments;
  const at::Tensor* const mask = tensor_of(others, kMask);
  const at::Tensor* const query = tensor_of(others, kQuery);
  const at::Tensor* const key = tensor_of(others, kKey);
  const at::Tensor* const value = tensor_of(others, kValue);
  Ref* const is_causal = argument_of(others, kIsCausal);
  if (mask == nullptr || query == nullptr || key == nullptr || value == nullptr) return std::nullopt;
  // Kernels of eager's refuse a mask beside is_causal, or apply both.
  if (is_causal != nullptr && is_causal->get() != Py_False) return std::nullopt;
  const trace::PlainMask plain = trace::plain_mask(*mask, *query, *key, *value);
  if (plain.mask && plain.mask->is_same(*mask)) return std::nullopt;
  *argument_of(others, kMask) =
      plain.mask ? Ref::steal(runtime::wrap_tensor(*plain.mask)) : Ref::borrow(Py_None);
  if (!plain.is_causal) return others;
  if (is_causal != nullptr)
    *is_causal = Ref::borrow(Py_True);
  else
    others.keywords.emplace_back(Ref::steal(PyUnicode_InternFromString(kIsCausal.name)),
                                 Ref::borrow(Py_True));
  return others;
}

}  // namespace oxy::eval
