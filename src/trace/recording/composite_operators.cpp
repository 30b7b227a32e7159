#include "trace/recording/composite_operators.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/unfold_backward.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "runtime/values/host.h"
#include "trace/recording/session.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

void attention(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor query = torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  const LayoutAtHand layout(true);
  op.redispatchBoxed(keys_of_decomposition(keys, query.device()), stack);
}

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

void einsum(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::List<at::Tensor> tensors = torch::jit::peek(*stack, 1, 3).toTensorList();
  Session* session = recording_session();
  if (session != nullptr && session->symbols)
    guard_summed_sizes(*session, torch::jit::peek(*stack, 0, 3).toStringRef(), tensors);
  const c10::Device device = tensors.empty() ? c10::Device(runtime::kHost) : tensors.get(0).device();
  op.redispatchBoxed(keys_of_decomposition(keys, device), stack);
}

bool is_symbolic(const at::Tensor& tensor) {
  return trace_tensor(tensor) != nullptr && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

void decompose(const c10::OperatorHandle& op, c10::DispatchKeySet keys, c10::Device device,
               torch::jit::Stack* stack) {
  op.redispatchBoxed(keys_of_decomposition(keys, device), stack);
}

bool asks_for_gradients(std::span<const c10::IValue> call) {
  if (!at::GradMode::is_enabled()) return false;
  return std::ranges::any_of(call, [](const c10::IValue& value) {
    if (value.isTensor()) return value.toTensor().defined() && value.toTensor().requires_grad();
    return value.isTensorList() &&
           std::ranges::any_of(value.toTensorVector(), [](const at::Tensor& t) { return t.requires_grad(); });
  });
}

// Arguments: input, states, weights, has_biases, num_layers, dropout, train, ...
void recurrent(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const std::span<const c10::IValue> call = std::span(*stack).last(op.schema().arguments().size());
  const at::Tensor input = call[0].toTensor();
  const bool drops = call[6].toBool() && call[5].toDouble() != 0;
  if (is_symbolic(input) && !drops && !asks_for_gradients(call))
    return op.redispatchBoxed(kTraceKeySet, stack);
  decompose(op, keys, input.device(), stack);
}

// one_hot(self, num_classes): PyTorch reads the largest and the smallest class on the host. scatter() refuses
// those that are out of range.
void one_hot(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  const int64_t given = torch::jit::peek(*stack, 1, 2).toInt();
  Session* session = recording_session();
  const bool is_plain = self.scalar_type() == at::kLong && trace_tensor(self) != nullptr &&
                        session != nullptr && session->symbols && session->reads_data;
  if (!is_plain || given == 0 || given < -1) return decompose(op, keys, self.device(), stack);
  if (given < 0 && self.sym_numel().sym_eq(0).guard_or_false(__FILE__, __LINE__))
    return decompose(op, keys, self.device(), stack);
  c10::SymInt classes = given;
  if (given < 0) classes = (self.max() + 1).item().toSymInt();
  c10::SymDimVector sizes(self.sym_sizes().begin(), self.sym_sizes().end());
  sizes.push_back(classes);
  const at::Tensor result = at::zeros_symint(sizes, self.options()).scatter(-1, self.unsqueeze(-1), 1);
  torch::jit::drop(*stack, 2);
  stack->emplace_back(result);
}

// linalg_matrix_norm(self, ord, ...): sizes are looked at to refuse empty matrices alone.
void matrix_norm(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  const bool has_elements = !is_symbolic(self) || self.sym_numel().sym_ne(0).guard_bool(__FILE__, __LINE__);
  const LayoutAtHand layout(has_elements);
  decompose(op, keys, self.device(), stack);
}

// take_along_dim(self, indices, dim)
void take_along_dim(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
  const at::Tensor indices = torch::jit::peek(*stack, 1, 3).toTensor();
  const bool fits = !torch::jit::peek(*stack, 2, 3).isNone() && self.dim() == indices.dim() &&
                    self.dim() > 0 && indices.scalar_type() == at::kLong;
  if (!(is_symbolic(self) || is_symbolic(indices)) || !fits) return decompose(op, keys, self.device(), stack);
  const int64_t dim = at::maybe_wrap_dim(torch::jit::peek(*stack, 2, 3).toInt(), self.dim());
  const auto broadcast = [&](const at::Tensor& tensor, const at::Tensor& other) {
    c10::SymDimVector sizes(other.sym_sizes().begin(), other.sym_sizes().end());
    sizes[static_cast<size_t>(dim)] = tensor.sym_size(dim);
    return tensor.expand_symint(at::infer_size_symdimvector(sizes, tensor.sym_sizes()));
  };
  const at::Tensor result = broadcast(self, indices).gather(dim, broadcast(indices, self));
  torch::jit::drop(*stack, 3);
  stack->emplace_back(result);
}

// What stft and istft are called with, in samples: (self, n_fft, hop_length, win_length, ...).
struct Frames {
  int64_t n_fft, hop, width;
};

Frames frames_of(std::span<const c10::IValue> call) {
  const int64_t n_fft = call[1].toInt();
  return {n_fft, call[2].isNone() ? n_fft / 4 : call[2].toInt(), call[3].isNone() ? n_fft : call[3].toInt()};
}

// A window of `width` samples with zeros on both sides.
at::Tensor centred_in(const at::Tensor& window, int64_t width, int64_t n_fft) {
  const int64_t left = (n_fft - width) / 2;
  return width < n_fft ? at::constant_pad_nd(window, {left, n_fft - width - left}) : window;
}

// istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
// PyTorch's takes numbers, and reads on the host whether the windows cover all of the signal.
void istft(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::span<const c10::IValue> call = std::span(*stack).last(count);
  const at::Tensor self = call[0].toTensor();
  const auto [n_fft, hop, width] = frames_of(call);
  const bool centred = call[5].toBool(), normalised = call[6].toBool();
  at::Tensor window = call[4].isNone() ? at::Tensor() : call[4].toTensor();
  if (!is_symbolic(self) || !self.is_complex() || self.dim() < 2 || self.dim() > 3 || call[9].toBool() ||
      hop <= 0 || hop > width || width > n_fft || !window.defined() || window.dim() != 1 ||
      window.is_complex() || window.sym_size(0).maybe_as_int() != width || !call[8].isNone())
    return decompose(op, keys, self.device(), stack);
  const c10::SymInt frequencies = self.sym_size(-2), frames = self.sym_size(-1);
  const bool is_whole = frequencies.sym_eq(n_fft).guard_bool(__FILE__, __LINE__);
  const bool one_side = call[7].isNone() ? !is_whole : call[7].toBool();
  if (!frequencies.sym_eq(one_side ? n_fft / 2 + 1 : n_fft).guard_bool(__FILE__, __LINE__) ||
      !frames.sym_ge(1).guard_bool(__FILE__, __LINE__))
    return decompose(op, keys, self.device(), stack);
  const c10::SymInt length = (frames - 1) * c10::SymInt(hop) + n_fft;
  window = centred_in(window, width, n_fft);
  at::Tensor input = (self.dim() == 2 ? self.unsqueeze(0) : self).transpose(1, 2);
  if (!one_side) input = input.slice(-1, 0, n_fft / 2 + 1);
  constexpr int64_t kByRoot = 1, kByCount = 2;
  const at::Tensor parts = at::_fft_c2r(input, {2}, normalised ? kByRoot : kByCount, n_fft);
  const int64_t start = centred ? n_fft / 2 : 0;
  const c10::SymInt end = centred ? c10::SymInt(-(n_fft / 2)) : length;
  const auto joined = [&](const at::Tensor& windows, const c10::SymInt& batch) {
    return at::unfold_backward_symint(windows, {batch, length}, 1, n_fft, hop).slice_symint(1, start, end);
  };
  const at::Tensor signal = joined(parts * window.view({1, 1, n_fft}), parts.sym_size(0));
  const at::Tensor envelope = joined(window.pow(2).expand_symint({1, frames, n_fft}), 1);
  const c10::SymInt has_gaps = envelope.abs().min().lt(1e-11).to(at::kByte).item().toSymInt();
  if (!has_gaps.sym_eq(0).expect_true(__FILE__, __LINE__)) return decompose(op, keys, self.device(), stack);
  at::Tensor result = signal / envelope;
  if (self.dim() == 2) result = result.squeeze(0);
  torch::jit::drop(*stack, count);
  stack->emplace_back(result);
}

// cov(self, correction, fweights, aweights): PyTorch's takes numbers alone.
void covariance(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 4).toTensor();
  const bool has_weights =
      !torch::jit::peek(*stack, 2, 4).isNone() || !torch::jit::peek(*stack, 3, 4).isNone();
  if (!is_symbolic(self) || has_weights || self.dim() > 2 || !at::isFloatingType(self.scalar_type()))
    return decompose(op, keys, self.device(), stack);
  const int64_t correction = torch::jit::peek(*stack, 1, 4).toInt();
  const at::Tensor rows = self.dim() < 2 ? self.reshape_symint({1, self.sym_numel()}) : self;
  const c10::SymInt count = rows.sym_size(1);
  // With none left PyTorch warns.
  if (!count.sym_gt(correction).guard_bool(__FILE__, __LINE__))
    return decompose(op, keys, self.device(), stack);
  const auto number = [&](const c10::SymInt& value) {
    return at::scalar_tensor(c10::Scalar(value), rows.options().dtype(at::kLong));
  };
  const at::Tensor centred = rows - (rows.sum(1) / number(count)).unsqueeze(1);
  const at::Tensor result = at::mm(centred, centred.t()).true_divide(number(count - correction)).squeeze();
  torch::jit::drop(*stack, 4);
  stack->emplace_back(result);
}

// stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, ...): PyTorch's
// takes numbers alone.
void stft(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::span<const c10::IValue> call = std::span(*stack).last(count);
  const at::Tensor self = call[0].toTensor();
  const auto [n_fft, hop, width] = frames_of(call);
  const bool returns_complex = call[7].isNone() ? false : call[7].toBool();
  const bool is_aligned = count > 8 && !call[8].isNone() && call[8].toBool();
  at::Tensor window = call[4].isNone() ? at::Tensor() : call[4].toTensor();
  const bool fits = self.dim() >= 1 && self.dim() <= 2 && at::isFloatingType(self.scalar_type()) &&
                    returns_complex && !is_aligned && n_fft > 0 && hop > 0 && width > 0 && width <= n_fft &&
                    (!window.defined() || (window.dim() == 1 && !window.is_complex()));
  if (!is_symbolic(self) || !fits || (window.defined() && window.sym_size(0).maybe_as_int() != width) ||
      (!window.defined() && width != n_fft))
    return decompose(op, keys, self.device(), stack);
  at::Tensor input = self.dim() == 1 ? self.unsqueeze(0) : self;
  const c10::SymInt length = input.sym_size(1);
  if (!length.sym_ge(n_fft).guard_bool(__FILE__, __LINE__)) return decompose(op, keys, self.device(), stack);
  const bool normalised = call[5].toBool(), one_side = call[6].isNone() || call[6].toBool();
  if (window.defined()) window = centred_in(window, width, n_fft);
  input = input.unfold(1, n_fft, hop);  // as frames
  if (window.defined()) input = input.mul(window);
  constexpr int64_t kNone = 0, kByRoot = 1;
  at::Tensor result = at::_fft_r2c(input, {2}, normalised ? kByRoot : kNone, one_side).transpose(1, 2);
  if (self.dim() == 1) result = result.squeeze(0);
  torch::jit::drop(*stack, count);
  stack->emplace_back(result);
}

}  // namespace

c10::DispatchKeySet keys_of_decomposition(c10::DispatchKeySet keys, c10::Device device) {
  const c10::DispatchKeySet own(c10::computeDispatchKey(std::nullopt, c10::kStrided, device));
  return ((keys & c10::after_autograd_keyset) | own) - kTraceKeySet;
}

void add_attention(torch::Library& library) {
  library.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attention>());
}

void add_einsum(torch::Library& library) {
  library.impl("einsum", torch::CppFunction::makeFromBoxedFunction<&einsum>());
}

void add_recurrent(torch::Library& library) {
  for (const char* name : {"lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"})
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&recurrent>());
}

void add_symbolic_composites(torch::Library& library) {
  library.impl("one_hot", torch::CppFunction::makeFromBoxedFunction<&one_hot>());
  library.impl("cov", torch::CppFunction::makeFromBoxedFunction<&covariance>());
  library.impl("linalg_matrix_norm", torch::CppFunction::makeFromBoxedFunction<&matrix_norm>());
  library.impl("take_along_dim", torch::CppFunction::makeFromBoxedFunction<&take_along_dim>());
  library.impl("istft", torch::CppFunction::makeFromBoxedFunction<&istft>());
  library.impl("stft", torch::CppFunction::makeFromBoxedFunction<&stft>());
}

}  // namespace oxy::trace
