#include "ops/loss/decompositions.h"

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

std::vector<ValueRef> reduced(Composer& c, ValueRef losses, size_t reduction) {
  switch (c.integer(reduction)) {
    case kMean:
      return {c.call("aten::mean", {losses})};
    case kSum:
      return {c.call("aten::sum", {losses})};
    default:
      return {losses};
  }
}

void need_floating(const Composer& c, size_t i) {
  if (!is_floating(c.meta(c.arg(i)).dtype)) throw Unsupported("a loss of numbers that are not real");
}

}  // namespace

std::vector<ValueRef> smooth_l1_loss(Composer& c) {
  need_floating(c, 0);
  const double beta = c.real(3);
  const ValueRef distance = c.call("aten::abs", {c.call("aten::sub.Tensor", {c.arg(0), c.arg(1)})});
  if (beta == 0) return reduced(c, distance, 2);
  const ValueRef half = c.call("aten::mul.Tensor", {distance, 0.5});
  const ValueRef near = c.call("aten::div.Tensor", {c.call("aten::mul.Tensor", {half, distance}), beta});
  const ValueRef far = c.call("aten::sub.Tensor", {distance, 0.5 * beta});
  return reduced(c, c.call("aten::where.self", {c.call("aten::lt.Scalar", {distance, beta}), near, far}), 2);
}

std::vector<ValueRef> huber_loss(Composer& c) {
  need_floating(c, 0);
  const double delta = c.real(3);
  const ValueRef distance = c.call("aten::abs", {c.call("aten::sub.Tensor", {c.arg(0), c.arg(1)})});
  const ValueRef near = c.call("aten::mul.Tensor", {c.call("aten::mul.Tensor", {distance, 0.5}), distance});
  const ValueRef far =
      c.call("aten::mul.Tensor", {c.call("aten::sub.Tensor", {distance, 0.5 * delta}), delta});
  return reduced(c, c.call("aten::where.self", {c.call("aten::le.Scalar", {distance, delta}), near, far}), 2);
}

std::vector<ValueRef> binary_cross_entropy_with_logits(Composer& c) {
  need_floating(c, 0);
  ValueRef log_sigmoid = c.call("aten::log_sigmoid_forward", {c.arg(0)});
  if (!c.is_none(3)) {
    const ValueRef surplus = c.call("aten::sub.Tensor", {c.arg(3), 1.0});
    const ValueRef factor =
        c.call("aten::add.Tensor", {c.call("aten::mul.Tensor", {surplus, c.arg(1)}), 1.0});
    log_sigmoid = c.call("aten::mul.Tensor", {log_sigmoid, factor});
  }
  const ValueRef other = c.call("aten::rsub.Scalar", {c.arg(1), 1.0});
  ValueRef losses = c.call("aten::sub.Tensor", {c.call("aten::mul.Tensor", {other, c.arg(0)}), log_sigmoid});
  if (!c.is_none(2)) losses = c.call("aten::mul.Tensor", {losses, c.arg(2)});
  return reduced(c, losses, 4);
}

std::vector<ValueRef> soft_margin_loss(Composer& c) {
  need_floating(c, 0);
  const ValueRef margin = c.call("aten::mul.Tensor", {c.call("aten::neg", {c.arg(0)}), c.arg(1)});
  return reduced(c, c.call("aten::log1p", {c.call("aten::exp", {margin})}), 2);
}

std::vector<ValueRef> mse_loss_backward(Composer& c) {
  need_floating(c, 1);
  const ValueRef difference = c.call("aten::sub.Tensor", {c.arg(1), c.arg(2)});
  const Expr count = c.integer(3) == kMean ? element_count(c.meta(difference)) : Expr(1);
  if (count == Expr(0)) throw Unsupported("a mean of nothing");
  ValueRef scaled;
  if (const auto known = count.as_constant()) {
    scaled = c.call("aten::mul.Tensor", {difference, 2.0 / static_cast<double>(*known)});
  } else {
    scaled = c.divide(c.call("aten::mul.Tensor", {difference, 2.0}), count);
  }
  return {c.call("aten::mul.Tensor", {scaled, c.arg(0)})};
}

std::vector<ValueRef> nll_loss_backward(Composer& c) {
  // (grad_output, self, target, weight, reduction, ignore_index, total_weight)
  const TensorMeta self = c.meta(c.arg(1));
  if (self.rank() != 2) throw Unsupported("one example without a batch");
  const ValueRef target = c.call("aten::unsqueeze", {c.arg(2), Expr(1)});
  const ValueRef counted = c.call("aten::ne.Scalar", {target, c.arg(5)});
  const ValueRef zero =
      c.call("aten::full", {std::vector<Expr>{}, Expr(0), DType::Int64, Argument{}, self.device});
  const ValueRef column = c.call("aten::where.self", {counted, target, zero});
  ValueRef gradient = c.call("aten::neg", {c.arg(0)});
  if (c.integer(4) == kMean) gradient = c.call("aten::div.Tensor", {gradient, c.arg(6)});
  if (c.integer(4) == kNone) {
    gradient = c.call("aten::unsqueeze", {gradient, Expr(1)});
  } else {
    gradient = c.call("aten::expand", {gradient, std::vector<Expr>{self.sizes[0], Expr(1)}});
  }
  if (!c.is_none(3)) {
    const ValueRef row = c.call("aten::unsqueeze", {c.arg(3), Expr(0)});
    const ValueRef rows = c.call("aten::expand", {row, self.sizes});
    gradient = c.call("aten::mul.Tensor", {gradient, c.call("aten::gather", {rows, Expr(1), column})});
  }
  const ValueRef nothing =
      c.call("aten::full", {std::vector<Expr>{}, 0.0, self.dtype, Argument{}, self.device});
  gradient = c.call("aten::where.self", {counted, gradient, nothing});
  const ValueRef zeros = c.call("aten::full", {self.sizes, 0.0, self.dtype, Argument{}, self.device});
  return {c.call("aten::scatter.src", {zeros, Expr(1), column, gradient})};
}

}  // namespace oxy::ops::decompositions
