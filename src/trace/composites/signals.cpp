// stft and istft, whose decompositions take numbers or read data.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/unfold_backward.h>

#include <span>

#include "trace/composites/composites.h"

namespace oxy::trace {

namespace {

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
void istft(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::span<const c10::IValue> call = std::span(*stack).last(count);
  const at::Tensor self = call[0].toTensor();
  const auto [n_fft, hop, width] = frames_of(call);
  const bool centred = call[5].toBool(), normalised = call[6].toBool();
  at::Tensor window = call[4].isNone() ? at::Tensor() : call[4].toTensor();
  if (!is_symbolic(self) || !self.is_complex() || self.dim() < 2 || self.dim() > 3 || call[9].toBool() ||
      hop <= 0 || hop > width || width > n_fft || !window.defined() || window.dim() != 1 ||
      window.is_complex() || window.sym_size(0).maybe_as_int() != width || !call[8].isNone())
    return decompose(op, self.device(), stack);
  const c10::SymInt frequencies = self.sym_size(-2), frames = self.sym_size(-1);
  const bool is_whole = frequencies.sym_eq(n_fft).guard_bool(__FILE__, __LINE__);
  const bool one_side = call[7].isNone() ? !is_whole : call[7].toBool();
  if (!frequencies.sym_eq(one_side ? n_fft / 2 + 1 : n_fft).guard_bool(__FILE__, __LINE__) ||
      !frames.sym_ge(1).guard_bool(__FILE__, __LINE__))
    return decompose(op, self.device(), stack);
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
  if (!has_gaps.sym_eq(0).expect_true(__FILE__, __LINE__)) return decompose(op, self.device(), stack);
  at::Tensor result = signal / envelope;
  if (self.dim() == 2) result = result.squeeze(0);
  torch::jit::drop(*stack, count);
  stack->emplace_back(result);
}

// stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, ...): PyTorch's
// takes numbers alone.
void stft(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
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
    return decompose(op, self.device(), stack);
  at::Tensor input = self.dim() == 1 ? self.unsqueeze(0) : self;
  const c10::SymInt length = input.sym_size(1);
  if (!length.sym_ge(n_fft).guard_bool(__FILE__, __LINE__)) return decompose(op, self.device(), stack);
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

void add_signals(torch::Library& library) {
  library.impl("istft", torch::CppFunction::makeFromBoxedFunction<&istft>());
  library.impl("stft", torch::CppFunction::makeFromBoxedFunction<&stft>());
}

}  // namespace oxy::trace
