// reshape of symbolic sizes: whether it gives a view is answered in general, as if no size were 0 or 1.
// PyTorch asks of a size that is 1 at this call whether it is, and only such a call could use the graph. What
// is a copy in general is one for all sizes here; whoever could tell it from a view is guarded when the
// recording ends (metadata/copies.h).

#include <ATen/InferSize.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_unsafe_view.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sym/relations/layout.h"
#include "trace/composites/composites.h"
#include "trace/metadata/copies.h"
#include "trace/session/session.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

using sym::Expr;

// The answer for sizes that are neither 0 nor 1; where that decides nothing, of the values at hand, with a
// guard.
bool generally(torch_api::Symbols& symbols, const sym::Condition& question) {
  const auto general = symbols.environment.general_answer(question);
  return general ? *general : symbols.environment.decide(question, symbols.where);
}

std::vector<Expr> expressions_of(c10::SymIntArrayRef numbers) {
  std::vector<Expr> result;
  for (const c10::SymInt& number : numbers) result.push_back(torch_api::expression_of(number));
  return result;
}

// Whether only data tell some of the numbers.
bool depend_on_data(const sym::ShapeEnvironment& environment, const std::vector<Expr>& numbers) {
  return std::ranges::any_of(numbers,
                             [&](const Expr& number) { return environment.depends_on_graph(number); });
}

// Whether some new dimensions have as many elements as the old ones that they would cover. Where only data
// tell, the answer is that of the dimensions around both, because all old dimensions together have as many
// elements as all new ones. If only data tell that as well, the answer is no, and the graph checks it when it
// runs; but yes if no is known to be wrong.
bool covers(torch_api::Symbols& symbols, const sym::Condition& is_as_long,
            const sym::Condition& is_as_long_around) {
  sym::ShapeEnvironment& environment = symbols.environment;
  if (!environment.depends_on_data(is_as_long)) return environment.decide(is_as_long, symbols.where);
  if (const auto general = environment.general_answer(is_as_long)) return *general;
  if (!environment.depends_on_data(is_as_long_around))
    return environment.decide(is_as_long_around, symbols.where) &&
           environment.suppose(is_as_long, symbols.where);
  return !environment.suppose(!is_as_long, symbols.where);
}

// Whether memory with gaps, of sizes that only data tell, is seen in the new sizes: at::detail::computeStride
// takes what it cannot tell for a copy.
bool shares_memory_of_data(torch_api::Symbols& symbols, const std::vector<Expr>& own,
                           const std::vector<Expr>& strides, const std::vector<Expr>& wanted) {
  const auto is_certain = [&](const sym::Condition& question) {
    return !symbols.environment.depends_on_data(question)
               ? symbols.environment.decide(question, symbols.where)
               : symbols.environment.general_answer(question).value_or(false);
  };
  size_t next = wanted.size();  // the new dimensions from here on are covered
  for (size_t d = own.size(); d-- > 0;) {
    const Expr& innermost = strides[d];
    Expr elements = own[d];
    while (d > 0 && is_certain(sym::Condition::any(
                        {sym::equal(own[d - 1], 1), sym::equal(strides[d - 1], elements * innermost)})))
      elements = elements * own[--d];
    const Expr around = sym::product(std::span(own).first(d));
    Expr covered = 1;
    while (!covers(symbols, sym::equal(covered, elements),
                   sym::equal(sym::product(std::span(wanted).first(next)), around))) {
      if (next == 0 || is_certain(sym::less(elements, covered))) return false;
      covered = covered * wanted[--next];
    }
  }
  return true;
}

// The tensor in the new sizes; nothing where these questions have no general answer.
std::optional<at::Tensor> reshaped(const at::Tensor& self, c10::SymIntArrayRef sizes) {
  Session* const session = recording_session();
  if (!is_symbolic(self) || self.dim() == 0 || session == nullptr) return std::nullopt;
  torch_api::Symbols& symbols = *session->symbols;
  const std::vector<Expr> own = expressions_of(self.sym_sizes()),
                          strides = expressions_of(self.sym_strides());
  const std::vector<Expr> wanted = expressions_of(sizes);
  if (depend_on_data(symbols.environment, own) || depend_on_data(symbols.environment, strides) ||
      depend_on_data(symbols.environment, wanted)) {
    if (symbols.environment.general_answer(sym::contiguous(own, strides)) == true ||
        !shares_memory_of_data(symbols, own, strides, wanted))
      return std::nullopt;
    return self.view_symint(sizes);
  }
  // Of a tensor without elements PyTorch always makes a view.
  if (symbols.environment.hint(sym::equal(sym::product(own), 0)) != false) return std::nullopt;
  const auto shares_memory = [&](const AskOfSizes& ask) {
    return view_strides(ask, own, strides, wanted).has_value();
  };
  const auto in_general = [&](const sym::Condition& question) { return generally(symbols, question); };
  const auto at_hand = [&](const sym::Condition& question) {
    return symbols.environment.hint(question).value_or(false);
  };
  if (shares_memory(in_general)) return self.view_symint(sizes);
  const at::Tensor copy = self.clone(at::MemoryFormat::Contiguous);
  if (const TraceTensor* traced = trace_tensor(copy)) {
    session->reshaped_copies.push_back(traced->value());
    if (shares_memory(at_hand)) session->copies_of_views.push_back(traced->value());
  }
  return at::_unsafe_view_symint(copy, sizes);
}

// reshape(self, shape)
void reshape(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  if (!is_symbolic(self)) return decompose(op, self.device(), stack);
  const std::vector<c10::SymInt> proposed = torch::jit::peek(*stack, 1, 2).toSymIntVector();
  std::optional<at::Tensor> result = reshaped(self, at::infer_size_dv(proposed, self.sym_numel()));
  if (!result) return decompose(op, self.device(), stack);
  torch::jit::drop(*stack, 2);
  stack->emplace_back(std::move(*result));
}

// flatten(self, start_dim, end_dim), whose kernel calls that of reshape without the dispatcher.
void flatten(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
  const auto dimension = [&](size_t place) {
    const int64_t given = torch::jit::peek(*stack, place, 3).toInt();
    return given < 0 ? given + self.dim() : given;
  };
  const int64_t first = dimension(1), last = dimension(2);
  if (!is_symbolic(self) || first < 0 || first >= last || last >= self.dim())
    return decompose(op, self.device(), stack);
  const c10::SymIntArrayRef own = self.sym_sizes();
  std::vector<c10::SymInt> sizes(own.begin(), own.begin() + first);
  sizes.push_back(c10::multiply_integers(own.begin() + first, own.begin() + last + 1));
  sizes.insert(sizes.end(), own.begin() + last + 1, own.end());
  std::optional<at::Tensor> result = reshaped(self, sizes);
  if (!result) return decompose(op, self.device(), stack);
  torch::jit::drop(*stack, 3);
  stack->emplace_back(std::move(*result));
}

}  // namespace

void add_reshaping(torch::Library& library) {
  library.impl("reshape", torch::CppFunction::makeFromBoxedFunction<&reshape>());
  library.impl("flatten.using_ints", torch::CppFunction::makeFromBoxedFunction<&flatten>());
}

}  // namespace oxy::trace
