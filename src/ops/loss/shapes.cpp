#include "ops/loss/shapes.h"

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

constexpr int64_t kNoReduction = 0;

TensorMeta scalar_of(const TensorMeta& like) {
  return contiguous_meta(like.dtype, like.device, {});
}

}  // namespace

namespace {

void need_weight_per_class(const ShapeContext& context, const Expr& classes) {
  const TensorMeta* weight = optional_tensor(context, 2);
  if (weight != nullptr && (weight->rank() != 1 || !context.equal(weight->sizes[0], classes)))
    refused_by_eager(context, "a weight that is not one for each class");
}

}  // namespace

Metas nll_loss(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& target = context.tensor(1);
  if (self.rank() < 1 || self.rank() > 2) not_covered(context, "an input of another rank");
  const bool batched = self.rank() == 2;
  if (batched ? target.rank() != 1 || !context.equal(target.sizes[0], self.sizes[0]) : target.rank() > 1)
    not_covered(context, "a target of another shape");
  need_weight_per_class(context, self.sizes.back());
  expect_elements(context, self.sizes.back());
  TensorMeta loss = scalar_of(self);
  if (integer(context, 3) == kNoReduction && batched)
    loss = contiguous_meta(self.dtype, self.device, {self.sizes[0]});
  return {loss, scalar_of(self)};
}

Metas nll_loss_2d(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& target = context.tensor(1);
  if (self.rank() != 4 || target.rank() != 3) not_covered(context, "operands of another rank");
  need_weight_per_class(context, self.sizes[1]);
  TensorMeta loss = scalar_of(self);
  if (integer(context, 3) == kNoReduction)
    loss = contiguous_meta(self.dtype, self.device, {self.sizes[0], self.sizes[2], self.sizes[3]});
  return {loss, scalar_of(self)};
}

Metas nll_loss_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  const TensorMeta& target = context.tensor(2);
  if (self.rank() == 2 && (target.rank() != 1 || !context.equal(target.sizes[0], self.sizes[0])))
    not_covered(context, "a target of another shape");
  if (self.rank() == 2 && integer(context, 4) == kNoReduction &&
      !are_equal(context, context.tensor(0).sizes, target.sizes))
    not_covered(context, "a gradient of another shape");
  if (self.rank() > 0) expect_elements(context, self.sizes.back());
  const TensorMeta* weight = optional_tensor(context, 3);
  if (weight != nullptr && self.rank() == 2 && !are_equal(context, weight->sizes, {self.sizes[1]}))
    not_covered(context, "a weight that is not one for each class");
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas element_loss(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  if (integer(context, 2) == kNoReduction) return {out};
  return {scalar_of(out)};
}

Metas smooth_l1_loss(const ShapeContext& context) {
  if (!(real(context, 3).value_or(1) >= 0)) refused_by_eager(context, "a beta that is negative or NaN");
  return element_loss(context);
}

Metas huber_loss(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  if (out.dtype != self.dtype) not_covered(context, "a target of another type");
  if (!(real(context, 3).value_or(0) > 0)) not_covered(context, "a delta that is not positive");
  if (integer(context, 2) != kNoReduction) return {scalar_of(out)};
  const bool is_of_self = broadcasts_to(context, context.tensor(1).sizes, self.sizes);
  return {is_of_self ? dense_like(context, self, self.dtype) : out};
}

Metas soft_margin_loss(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& target = context.tensor(1);
  if (self.dtype != target.dtype || !are_equal(context, self.sizes, target.sizes))
    not_covered(context, "a target of another shape or type");
  if (integer(context, 2) != kNoReduction) return {scalar_of(self)};
  const TensorMeta* const operands[] = {&self};  // -self is computed first, the rest in place
  TensorMeta out = element_wise_layout(context, operands);
  out.dtype = self.dtype;
  out.device = self.device;
  return {out};
}

Metas weighted_element_loss(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (context.tensor(1).dtype != self.dtype || !are_equal(context, self.sizes, context.tensor(1).sizes))
    not_covered(context, "a target of another shape or type");
  if (integer(context, 3) != kNoReduction) return {scalar_of(self)};
  return {dense_like(context, self, self.dtype)};
}

Metas logits_loss(const ShapeContext& context) {
  // Computed as (1 - target) * self - ..., written to the first factor.
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& target = context.tensor(1);
  if (self.dtype != target.dtype || !are_equal(context, self.sizes, target.sizes))
    not_covered(context, "a target of another shape or type");
  for (size_t i : {2, 3}) {
    const TensorMeta* weight = optional_tensor(context, i);
    if (weight == nullptr) continue;
    if (weight->dtype != self.dtype) not_covered(context, "a weight of another type");
    if (!broadcasts_to(context, weight->sizes, self.sizes))
      refused_by_eager(context, "a weight larger than the input");
  }
  if (integer(context, 4) != kNoReduction) return {scalar_of(self)};
  return {dense_like(context, target, self.dtype)};
}

Metas element_loss_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  const TensorMeta* const operands[] = {&self, &context.tensor(2), &context.tensor(0)};
  return {contiguous_meta(self.dtype, self.device, broadcast(context, operands))};
}

Metas cross_entropy_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  return {dense_like(context, self, self.dtype)};
}

namespace {

// A row of one number a class, or a batch of such rows.
void need_rows(const ShapeContext& context, const TensorMeta& self) {
  if (self.rank() < 1 || self.rank() > 2) not_covered(context, "an input of another rank");
  if (!context.less(0, self.sizes.back())) not_covered(context, "no classes");
}

TensorMeta loss_of_rows(const TensorMeta& self, bool is_reduced) {
  if (is_reduced || self.rank() == 1) return scalar_of(self);
  return contiguous_meta(self.dtype, self.device, {self.sizes[0]});
}

}  // namespace

Metas multi_margin_loss(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& target = context.tensor(1);
  need_rows(context, self);
  if (self.rank() == 2 ? target.rank() != 1 || !context.equal(target.sizes[0], self.sizes[0])
                       : target.rank() != 0)
    not_covered(context, "a target of another shape");
  if (const TensorMeta* weight = optional_tensor(context, 4);
      weight != nullptr && (weight->rank() != 1 || !context.equal(weight->sizes[0], self.sizes.back())))
    refused_by_eager(context, "a weight that is not one for each class");
  return {loss_of_rows(self, integer(context, 5) != kNoReduction)};
}

Metas multilabel_margin_loss(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& target = context.tensor(1);
  need_rows(context, self);
  if (!are_equal(context, target.sizes, self.sizes)) not_covered(context, "a target of another shape");
  return {loss_of_rows(self, integer(context, 2) != kNoReduction),
          contiguous_meta(self.dtype, self.device, target.sizes)};
}

Metas gradient_of_rows(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  need_rows(context, self);
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

}  // namespace oxy::ops::shapes
