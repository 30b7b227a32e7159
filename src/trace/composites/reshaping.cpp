// reshape of symbolic sizes: whether it gives a view is answered in general, as if no size were 0 or 1.
// PyTorch asks of a size that is 1 at this call whether it is, and only such a call could use the graph. What
// is a copy in general is one for all sizes here; whoever could tell it from a view is guarded when the
// recording ends (session/copies.h).

#include <ATen/InferSize.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_unsafe_view.h>

#include <algorithm>
#include <vector>

#include "trace/composites/composites.h"
#include "trace/session/copies.h"
#include "trace/session/session.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

using sym::Expr;

// The answer for sizes that are neither 0 nor 1; where that decides nothing, of the values at hand, with a
// guard.
bool generally(torch_api::Symbols& symbols, const sym::Condition& question) {
  const auto general = sym::certain(symbols.environment.answer(question, sym::Assume::LargeSizes));
  return general ? *general : symbols.environment.decide(question, symbols.where);
}

std::vector<Expr> expressions_of(c10::SymIntArrayRef numbers) {
  std::vector<Expr> result;
  for (const c10::SymInt& number : numbers) result.push_back(torch_api::expression_of(number));
  return result;
}

// Whether only data tell some of the numbers.
bool depend_on_data(const sym::ShapeEnvironment& environment, const std::vector<Expr>& numbers) {
  return std::ranges::any_of(
      numbers, [&](const Expr& number) { return environment.depends_on_graph(sym::equal(number, 0)); });
}

// reshape(self, shape)
void reshape(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  Session* session = recording_session();
  if (!is_symbolic(self) || self.dim() == 0 || session == nullptr) return decompose(op, self.device(), stack);
  const std::vector<c10::SymInt> proposed = torch::jit::peek(*stack, 1, 2).toSymIntVector();
  const at::SymDimVector sizes = at::infer_size_dv(proposed, self.sym_numel());
  torch_api::Symbols& symbols = *session->symbols;
  const std::vector<Expr> own = expressions_of(self.sym_sizes()),
                          strides = expressions_of(self.sym_strides());
  const std::vector<Expr> wanted = expressions_of(sizes);
  // Of a tensor without elements PyTorch always makes a view, and numbers of data have no general answer.
  const sym::Condition is_empty = sym::equal(sym::product(own), 0);
  if (symbols.environment.hint(is_empty) != false || depend_on_data(symbols.environment, own) ||
      depend_on_data(symbols.environment, strides) || depend_on_data(symbols.environment, wanted))
    return decompose(op, self.device(), stack);
  const auto shares_memory = [&](const AskOfSizes& ask) {
    return view_strides(ask, own, strides, wanted).has_value();
  };
  const auto in_general = [&](const sym::Condition& question) { return generally(symbols, question); };
  const auto at_hand = [&](const sym::Condition& question) {
    return symbols.environment.hint(question).value_or(false);
  };
  torch::jit::drop(*stack, 2);
  if (shares_memory(in_general)) {
    stack->emplace_back(self.view_symint(sizes));
    return;
  }
  const at::Tensor copy = self.clone(at::MemoryFormat::Contiguous);
  if (const TraceTensor* traced = trace_tensor(copy)) {
    session->reshaped_copies.push_back(traced->value());
    if (shares_memory(at_hand)) session->copies_of_views.push_back(traced->value());
  }
  stack->emplace_back(at::_unsafe_view_symint(copy, sizes));
}

}  // namespace

void add_reshaping(torch::Library& library) {
  library.impl("reshape", torch::CppFunction::makeFromBoxedFunction<&reshape>());
}

}  // namespace oxy::trace
