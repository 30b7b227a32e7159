#include "ops/reductions/lowerings.h"

#include <algorithm>
#include <cmath>

#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;
using loop::Op;
using loop::ReductionKind;
using Values = std::span<const Value>;

namespace {

// The dimensions of a reduction whose overloads are (self, ...) over everything and (self, dim, keepdim,
// ...).
struct Extent {
  std::vector<int64_t> dims;
  bool keepdim = false;
};

Extent extent_of(const Node& node, int64_t rank) {
  bool has_dims = node.op->arguments.size() > 1 && node.op->arguments[1].name == "dim";
  if (!has_dims) return {};
  size_t keepdim = 2;
  while (keepdim < node.op->arguments.size() && node.op->arguments[keepdim].name != "keepdim") ++keepdim;
  return {dims(node, 1, rank), keepdim < node.args.size() && flag(node, keepdim)};
}

Expr count_of(const Tensor& x, const std::vector<int64_t>& dims) {
  if (dims.empty()) return sym::product(x.sizes);
  Expr count = 1;
  for (int64_t d : dims) count = count * x.sizes[static_cast<size_t>(d)];
  return count;
}

// Sets output k to fn of the element of `x`, in the output's type.
void finish(LoweringContext& context, const Node& node, size_t k, const Tensor& x,
            const std::function<Value(BodyBuilder&, Value)>& fn = nullptr) {
  const TensorMeta& out = context.output_meta(node, k);
  if (!fn) return context.set(node.outputs[k], context.cast(x, out.dtype));
  context.set(node.outputs[k],
              context.pointwise({x}, out.sizes, out.dtype, [fn, dtype = out.dtype](BodyBuilder& b, Values v) {
                return b.cast(fn(b, v[0]), compute_dtype(dtype));
              }));
}

void reduce_to(LoweringContext& context, const Node& node, ReductionKind kind,
               const std::function<Value(Value)>& fn = nullptr) {
  Tensor x = context.operand(node, 0);
  auto [dims, keepdim] = extent_of(node, x.rank());
  DType type = compute_dtype(context.output_meta(node).dtype);
  auto element = [&](Value v) { return v.builder->cast(fn ? fn(v) : v, type); };
  finish(context, node, 0, context.reduce(kind, x, dims, keepdim, type, element)[0]);
}

void truth(LoweringContext& context, const Node& node, ReductionKind kind) {
  Tensor x = context.operand(node, 0);
  const auto* given = node.args.size() > 1 ? std::get_if<std::vector<Expr>>(&node.args[1]) : nullptr;
  if (given != nullptr && given->empty())  // over no dimension, unlike other reductions
    return finish(context, node, 0, x, [](BodyBuilder&, Value v) { return as_bool(v); });
  auto [dims, keepdim] = extent_of(node, x.rank());
  finish(context, node, 0,
         context.reduce(kind, x, dims, keepdim, DType::Bool, [](Value v) { return as_bool(v); })[0]);
}

Value comparable(Value v) {
  return v.dtype == DType::Bool ? v.builder->cast(v, DType::UInt8) : v;
}

// The elements of x among which the first of several equal ones wins: numbers that rounding makes equal are.
std::function<Value(Value)> rounded_comparable(const Tensor& x) {
  if (x.is_realised()) return comparable;
  return [dtype = x.dtype](Value v) { return comparable(v.builder->round_to(v, dtype)); };
}

DType comparable_type(DType dtype) {
  return dtype == DType::Bool ? DType::UInt8 : compute_dtype(dtype);
}

void extremum(LoweringContext& context, const Node& node, ReductionKind kind) {
  Tensor x = context.operand(node, 0);
  auto [dims, keepdim] = extent_of(node, x.rank());
  finish(context, node, 0, context.reduce(kind, x, dims, keepdim, comparable_type(x.dtype), comparable)[0]);
}

void extremum_with_index(LoweringContext& context, const Node& node, ReductionKind kind,
                         ReductionKind position) {
  Tensor x = context.operand(node, 0);
  std::vector<int64_t> dims;
  if (x.rank() > 0) dims.push_back(dim(node, 1, x.rank()));
  bool keepdim = flag(node, 2);
  context.realise_unless_cheap(x);
  DType type = comparable_type(x.dtype);
  if (context.uses(node.outputs[0]) > 0)
    finish(context, node, 0, context.reduce(kind, x, dims, keepdim, type, comparable)[0]);
  if (context.uses(node.outputs[1]) > 0)
    finish(context, node, 1, context.reduce(position, x, dims, keepdim, type, rounded_comparable(x))[0]);
}

void position_of(LoweringContext& context, const Node& node, ReductionKind kind) {
  Tensor x = context.operand(node, 0);
  if (!is_none(node, 1)) {
    std::vector<int64_t> dims;
    if (x.rank() > 0) dims.push_back(dim(node, 1, x.rank()));
    return finish(
        context, node, 0,
        context.reduce(kind, x, dims, flag(node, 2), comparable_type(x.dtype), rounded_comparable(x))[0]);
  }
  Tensor result = context.reduce(kind, x, {}, false, comparable_type(x.dtype), rounded_comparable(x))[0];
  finish(context, node, 0, context.reshape(result, context.output_meta(node).sizes));
}

// Mean and variance (or its root) over the node's dimensions, either output left out where its number is
// negative.
void moments(LoweringContext& context, const Node& node, int variance_output, int mean_output, bool root) {
  Tensor x = context.operand(node, 0);
  std::vector<int64_t> reduced = dims(node, 1, x.rank());
  // A correction that is a symbol counts with the elements.
  const auto* symbolic = is_none(node, 2) ? nullptr : std::get_if<Expr>(&node.args[2]);
  if (symbolic != nullptr && symbolic->is_constant()) symbolic = nullptr;
  const double correction = is_none(node, 2) ? 1 : symbolic != nullptr ? 0 : real(node, 2);
  if (!is_floating(x.dtype)) not_lowered(node, "elements that are not floating");
  // Squares of float32 numbers overflow and underflow float32; eager accumulates those of narrower types in
  // it.
  const DType type = x.dtype == DType::Float32 ? context.wide_accumulator(x.dtype) : compute_dtype(x.dtype);
  const auto element = [type](Value v) { return v.builder->cast(v, type); };
  std::vector<Tensor> result =
      context.reduce(ReductionKind::Welford, x, reduced, flag(node, 3), type, element);
  const Expr count = count_of(x, reduced) - (symbolic != nullptr ? *symbolic : Expr(0));
  finish(context, node, static_cast<size_t>(variance_output), result[1],
         [count, correction, root](BodyBuilder& b, Value squares) {
           Value divisor = loop::maximum(b.index(count, squares.dtype) - correction, 0);
           Value variance = squares / divisor;
           return root ? sqrt(variance) : variance;
         });
  if (mean_output >= 0) finish(context, node, static_cast<size_t>(mean_output), result[0]);
}

}  // namespace

void sum(LoweringContext& context, const Node& node) {
  const bool is_truth = context.output_meta(node).dtype == DType::Bool;
  reduce_to(context, node, is_truth ? ReductionKind::Any : ReductionKind::Sum);
}
void prod(LoweringContext& context, const Node& node) {
  const DType type = compute_dtype(context.output_meta(node).dtype);
  const DType wide = context.wide_accumulator(type);
  if (wide == type)
    return reduce_to(context, node, type == DType::Bool ? ReductionKind::All : ReductionKind::Prod);
  // Where parts of a product overflow float32 and others are zero, the whole would be NaN.
  Tensor x = context.operand(node, 0);
  auto [dims, keepdim] = extent_of(node, x.rank());
  const auto element = [type, wide](Value v) { return v.builder->cast(v.builder->cast(v, type), wide); };
  finish(context, node, 0, context.reduce(ReductionKind::Prod, x, dims, keepdim, wide, element)[0]);
}

void mean(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  auto [dims, keepdim] = extent_of(node, x.rank());
  DType type = compute_dtype(context.output_meta(node).dtype);
  if (!is_floating(type)) not_lowered(node, "a mean of integers");
  Tensor total = context.reduce(ReductionKind::Sum, x, dims, keepdim, type,
                                [type](Value v) { return v.builder->cast(v, type); })[0];
  finish(context, node, 0, total,
         [count = count_of(x, dims)](BodyBuilder& b, Value v) { return v / b.index(count, v.dtype); });
}

void amax(LoweringContext& context, const Node& node) {
  extremum(context, node, ReductionKind::Max);
}
void amin(LoweringContext& context, const Node& node) {
  extremum(context, node, ReductionKind::Min);
}

void max_dim(LoweringContext& context, const Node& node) {
  extremum_with_index(context, node, ReductionKind::Max, ReductionKind::ArgMax);
}

void min_dim(LoweringContext& context, const Node& node) {
  extremum_with_index(context, node, ReductionKind::Min, ReductionKind::ArgMin);
}

void argmax(LoweringContext& context, const Node& node) {
  position_of(context, node, ReductionKind::ArgMax);
}
void argmin(LoweringContext& context, const Node& node) {
  position_of(context, node, ReductionKind::ArgMin);
}
void any(LoweringContext& context, const Node& node) {
  truth(context, node, ReductionKind::Any);
}
void all(LoweringContext& context, const Node& node) {
  truth(context, node, ReductionKind::All);
}
void var(LoweringContext& context, const Node& node) {
  moments(context, node, 0, -1, false);
}
void std_deviation(LoweringContext& context, const Node& node) {
  moments(context, node, 0, -1, true);
}
void var_mean(LoweringContext& context, const Node& node) {
  moments(context, node, 0, 1, false);
}
void std_mean(LoweringContext& context, const Node& node) {
  moments(context, node, 0, 1, true);
}

void logsumexp(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  auto [dims, keepdim] = extent_of(node, x.rank());
  DType type = compute_dtype(context.output_meta(node).dtype);
  std::vector<Tensor> result = context.reduce(ReductionKind::OnlineSoftmax, x, dims, keepdim, type,
                                              [type](Value v) { return v.builder->cast(v, type); });
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.pointwise(
                                   result, out.sizes, out.dtype,
                                   [](BodyBuilder& b, Values v) {
                                     // An infinite maximum is the answer itself.
                                     return where(b.unary(Op::IsInf, v[0]), v[0], v[0] + log(v[1]));
                                   },
                                   4));
}

namespace {

// Sets the output to `root` of the sum, or to the magnitude of x where it turns out that one element stands
// alone: eager takes that as it is.
void finish_norm(LoweringContext& context, const Node& node, const Tensor& x,
                 const std::vector<int64_t>& reduced, bool keepdim, const Tensor& sum,
                 const std::function<Value(BodyBuilder&, Value)>& root) {
  const Expr count = count_of(x, reduced);
  if (count.is_constant()) return finish(context, node, 0, sum, root);
  const TensorMeta& out = context.output_meta(node);
  const auto element = [=, type = compute_dtype(out.dtype)](BodyBuilder& b, const Index& index) {
    Index first;
    size_t next = 0;
    for (int64_t d = 0; d < x.rank(); ++d) {
      const bool is_reduced = reduced.empty() || std::ranges::find(reduced, d) != reduced.end();
      first.push_back(is_reduced ? Expr(0) : index[next]);
      next += !is_reduced || keepdim ? 1 : 0;
    }
    const Value norm = b.cast(root(b, LoweringContext::element(b, sum, index)), type);
    return b.masked(
        b.index(count) == b.index(1),
        [&] { return abs(b.cast(LoweringContext::element(b, x, first), type)); }, norm);
  };
  context.set(node.outputs[0], context.generate({sum, x}, out.sizes, out.dtype, element, 4));
}

}  // namespace

void vector_norm(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  double order = is_none(node, 1) ? 2 : real(node, 1);
  std::vector<int64_t> reduced = dims(node, 2, x.rank());
  bool keepdim = flag(node, 3);
  DType type = compute_dtype(context.output_meta(node).dtype);
  auto over = [&](ReductionKind kind, const std::function<Value(Value)>& fn) {
    return context.reduce(kind, x, reduced, keepdim, type,
                          [&](Value v) { return fn(v.builder->cast(v, type)); })[0];
  };
  const auto is_single = [&x](int64_t d) { return x.sizes[static_cast<size_t>(d)] == Expr(1); };
  // Eager takes what stands alone as it is.
  if (order != 0 && !reduced.empty() && std::ranges::all_of(reduced, is_single))
    return finish(context, node, 0, over(ReductionKind::Sum, [](Value v) { return abs(v); }));
  if (std::isinf(order))
    return finish(context, node, 0,
                  over(order > 0 ? ReductionKind::Max : ReductionKind::Min, [](Value v) { return abs(v); }));
  if (order == 0)
    return finish(context, node, 0,
                  over(ReductionKind::Sum, [type](Value v) { return v.builder->cast(as_bool(v), type); }));
  if (order == 1) return finish(context, node, 0, over(ReductionKind::Sum, [](Value v) { return abs(v); }));
  if (!count_of(x, reduced).is_constant()) context.realise_unless_cheap(x);  // it is read twice
  if (order == 2)
    return finish_norm(context, node, x, reduced, keepdim,
                       over(ReductionKind::Sum, [](Value v) { return v * v; }),
                       [](BodyBuilder&, Value v) { return sqrt(v); });
  Tensor total = over(ReductionKind::Sum, [order](Value v) {
    return v.builder->binary(Op::Pow, abs(v), v.builder->constant(order, v.dtype));
  });
  finish_norm(context, node, x, reduced, keepdim, total, [order](BodyBuilder& b, Value v) {
    return b.binary(Op::Pow, v, b.constant(1 / order, v.dtype));
  });
}

}  // namespace oxy::ops::lowerings
