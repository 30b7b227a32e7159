// einsum: the strides of the result are others if what is summed over has one index. A guard that it has not.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/values/host.h"
#include "trace/composites/composites.h"
#include "trace/session/session.h"

namespace oxy::trace {

namespace {

// The letters of an operand's dimensions, in order; '.' stands for one of an ellipsis. Empty if they do not
// fit.
std::string letters_of(std::string_view operand, int64_t rank) {
  const size_t dots = operand.find("...");
  std::string letters(operand.substr(0, dots));
  if (dots != std::string_view::npos) {
    const auto named = static_cast<int64_t>(operand.size()) - 3;
    letters.append(static_cast<size_t>(std::max<int64_t>(rank - named, 0)), '.');
    letters += operand.substr(dots + 3);
  }
  return letters.size() == static_cast<size_t>(rank) ? letters : "";
}

// Whether the result of an einsum lacks the letter, so that it is summed over.
bool is_summed(std::string_view operands, std::string_view result, bool has_result, char letter) {
  if (letter == '.') return false;
  if (has_result) return result.find(letter) == std::string_view::npos;
  return std::ranges::count(operands, letter) > 1;
}

// Where all that is summed over has one index, PyTorch multiplies, and the result has the strides of an
// operand.
void guard_summed_sizes(Session& session, std::string equation, const c10::List<at::Tensor>& tensors) {
  std::erase(equation, ' ');
  const std::string_view all = equation;
  const size_t arrow = all.find("->");
  const std::string_view operands = all.substr(0, arrow);
  const bool has_result = arrow != std::string_view::npos;
  const std::string_view result = has_result ? all.substr(arrow + 2) : "";
  sym::ShapeEnvironment& environment = session.symbols->environment;
  std::string_view rest = operands;
  for (const at::Tensor& tensor : tensors) {
    const size_t comma = rest.find(',');
    const std::string letters = letters_of(rest.substr(0, comma), tensor.dim());
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    for (size_t d = 0; d < letters.size(); ++d) {
      const sym::Expr size = torch_api::expression_of(tensor.sym_size(static_cast<int64_t>(d)));
      const sym::Condition is_one = sym::equal(size, 1);
      if (!is_summed(operands, result, has_result, letters[d]) || environment.hint(is_one) != false) continue;
      environment.promise(!is_one, session.symbols->where ? session.symbols->where() : "");
    }
  }
}

void einsum(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::List<at::Tensor> tensors = torch::jit::peek(*stack, 1, 3).toTensorList();
  Session* session = recording_session();
  if (session != nullptr && session->symbols)
    guard_summed_sizes(*session, torch::jit::peek(*stack, 0, 3).toStringRef(), tensors);
  const c10::Device device = tensors.empty() ? c10::Device(runtime::kHost) : tensors.get(0).device();
  decompose(op, device, stack);
}

}  // namespace

void add_einsum(torch::Library& library) {
  library.impl("einsum", torch::CppFunction::makeFromBoxedFunction<&einsum>());
}

}  // namespace oxy::trace
