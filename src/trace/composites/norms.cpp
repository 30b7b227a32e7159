// rms_norm on the host: PyTorch's decomposition takes sizes as numbers.

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <limits>
#include <span>
#include <vector>

#include "runtime/values/host.h"
#include "trace/composites/composites.h"

namespace oxy::trace {

namespace {

using Sizes = c10::SymIntArrayRef;

bool ends_with(Sizes sizes, Sizes end) {
  if (end.empty() || end.size() > sizes.size()) return false;
  const Sizes last = sizes.slice(sizes.size() - end.size());
  for (size_t k = 0; k < end.size(); ++k)
    if (!last[k].sym_eq(end[k]).guard_bool(__FILE__, __LINE__)) return false;
  return true;
}

bool takes_weight(const at::Tensor& input, const at::Tensor& weight, Sizes shape) {
  if (!weight.defined()) return true;
  return weight.scalar_type() == input.scalar_type() && static_cast<size_t>(weight.dim()) == shape.size() &&
         ends_with(weight.sym_sizes(), shape);
}

// PyTorch's decomposition reads the shape as numbers, whatever it consists of.
void make_numbers(c10::IValue& shape) {
  std::vector<int64_t> numbers;
  for (const c10::SymInt& size : shape.toSymIntVector())
    numbers.push_back(size.guard_int(__FILE__, __LINE__));
  shape = std::move(numbers);
}

// rms_norm(input, normalized_shape, weight, eps). What eager refuses or warns of is left to it.
void rms_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::span<const c10::IValue> call = std::span(*stack).last(count);
  const at::Tensor input = call[0].toTensor();
  const at::Tensor weight = call[2].isNone() ? at::Tensor() : call[2].toTensor();
  const std::vector<c10::SymInt> shape = call[1].toSymIntVector();
  if (!is_symbolic(input) || !runtime::is_on_host(input) || !at::isFloatingType(input.scalar_type()) ||
      !ends_with(input.sym_sizes(), shape) || !takes_weight(input, weight, shape)) {
    make_numbers(stack->at(stack->size() - count + 1));
    return decompose(op, input.device(), stack);
  }
  const at::ScalarType type = at::toOpMathType(input.scalar_type());
  const bool is_double = type == at::kDouble;
  double epsilon = is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  if (!call[3].isNone()) epsilon = call[3].toDouble();
  if (!is_double) epsilon = static_cast<float>(epsilon);
  std::vector<int64_t> reduced;
  for (size_t k = 0; k < shape.size(); ++k) reduced.push_back(input.dim() - static_cast<int64_t>(k) - 1);
  const at::Tensor wide = input.to(type);
  const at::Tensor scale = wide.pow(2).mean(reduced, /*keepdim=*/true).add_(epsilon).rsqrt();
  at::Tensor result = wide.mul(scale);
  if (weight.defined()) result = result.mul(weight);
  const at::MemoryFormat format = input.suggest_memory_format();
  if (format != at::MemoryFormat::ChannelsLast && format != at::MemoryFormat::ChannelsLast3d)
    result = result.contiguous();
  torch::jit::drop(*stack, count);
  stack->emplace_back(result.to(input.scalar_type()));
}

}  // namespace

void add_norms(torch::Library& library) {
  library.impl("rms_norm", torch::CppFunction::makeFromBoxedFunction<&rms_norm>());
}

}  // namespace oxy::trace
