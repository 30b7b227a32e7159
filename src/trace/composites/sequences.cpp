// pad_sequence, whose decomposition takes numbers for the lengths.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "runtime/values/host.h"
#include "trace/composites/composites.h"

namespace oxy::trace {

namespace {

// pad_sequence(sequences, batch_first, padding_value, padding_side): each of [length, ...] as [longest, ...].
void pad_sequence(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::span<const c10::IValue> call = std::span(*stack).last(count);
  const std::vector<at::Tensor> sequences = call[0].toTensorVector();
  const bool batch_first = call[1].toBool();
  const double value = call[2].toDouble();
  const std::string side = call[3].toStringRef();
  const auto has_length = [](const at::Tensor& tensor) { return tensor.dim() > 0; };
  if (sequences.empty() || std::ranges::none_of(sequences, is_symbolic) ||
      !std::ranges::all_of(sequences, has_length) || (side != "left" && side != "right"))
    return decompose(op, sequences.empty() ? c10::Device(runtime::kHost) : sequences[0].device(), stack);
  c10::SymInt longest = sequences[0].sym_size(0);
  for (const at::Tensor& sequence : sequences) longest = longest.max(sequence.sym_size(0));
  std::vector<at::Tensor> padded;
  for (const at::Tensor& sequence : sequences) {
    // Pairs of what comes before and behind, from the last dimension to the first.
    std::vector<c10::SymInt> padding(2 * static_cast<size_t>(sequence.dim()), 0);
    padding[padding.size() - (side == "left" ? 2 : 1)] = longest - sequence.sym_size(0);
    padded.push_back(at::constant_pad_nd_symint(sequence, padding, value));
  }
  at::Tensor result = at::stack(padded, batch_first ? 0 : 1);
  torch::jit::drop(*stack, count);
  stack->emplace_back(std::move(result));
}

}  // namespace

void add_sequences(torch::Library& library) {
  library.impl("pad_sequence", torch::CppFunction::makeFromBoxedFunction<&pad_sequence>());
}

}  // namespace oxy::trace
