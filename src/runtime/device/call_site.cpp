#include "runtime/device/call_site.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace oxy::runtime {

namespace {

[[noreturn]] void wrong_kind(const plan::Call& call, size_t argument) {
  throw InternalError(fmt::format("argument {} of {} is of an unexpected kind", argument, call.op->name));
}

}  // namespace

Slot CallSite::tensor(size_t argument) const {
  if (std::holds_alternative<graph::None>(call.args.at(argument))) return kNoSlot;
  if (argument_slots[argument].size() != 1) wrong_kind(call, argument);
  return argument_slots[argument][0];
}

bool CallSite::flag(size_t argument) const {
  if (const auto* value = std::get_if<bool>(&call.args.at(argument))) return *value;
  wrong_kind(call, argument);
}

double CallSite::number(size_t argument) const {
  const plan::CallArgument& value = call.args.at(argument);
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* i = std::get_if<Expr>(&value)) return static_cast<double>(i->constant());
  if (const auto* f = std::get_if<double>(&value)) return *f;
  wrong_kind(call, argument);
}

std::vector<int64_t> CallSite::integers(size_t argument) const {
  const auto* list = std::get_if<std::vector<Expr>>(&call.args.at(argument));
  if (!list) wrong_kind(call, argument);
  std::vector<int64_t> result;
  for (const Expr& value : *list) result.push_back(value.constant());
  return result;
}

const std::string& CallSite::text(size_t argument) const {
  if (const auto* value = std::get_if<std::string>(&call.args.at(argument))) return *value;
  wrong_kind(call, argument);
}

void deliver(at::Tensor* tensors, const ResultSlot& where, const TensorSpec& spec, at::Tensor result,
             bool owned) {
  if (where.slot == kNoSlot) return;
  at::Tensor& target = tensors[where.slot];
  if (where.planned) {
    target.copy_(result);
  } else if (owned && result.scalar_type() == spec.dtype && has_layout(result, spec)) {
    // Strides of dimensions of size one are free, but the caller sees them.
    if (result.strides() != c10::IntArrayRef(spec.strides))
      result.unsafeGetTensorImpl()->set_sizes_and_strides(spec.sizes, spec.strides, result.storage_offset());
    target = std::move(result);
  } else {
    target = empty_tensor(spec, result.device());
    target.copy_(result);
  }
}

}  // namespace oxy::runtime
