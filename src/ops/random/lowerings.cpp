#include "ops/random/lowerings.h"

#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

using loop::BodyBuilder;
using loop::Index;
using loop::LoweringContext;
using loop::Tensor;
using loop::Value;
using sym::floordiv;
using sym::mod;

namespace {

constexpr int64_t kWords = 4;  // that Philox gives at once
constexpr int kWorkOfPhilox = 60;

// Which number of which thread an element gets.
struct Place {
  Expr position;  // 4 * thread + word
  Expr counter;   // above the state's
};

// Each thread takes `width` neighbours at a time. With a width of 1 the four numbers that it draws at once go
// to elements that lie `threads` apart.
Place place_of(const Expr& element, const Expr& count, int64_t width, int64_t threads) {
  const auto small = [](const Expr& e, int64_t size) { return e.range().high < size; };
  if (width == 1) {
    const Expr row = small(count, threads + 1) ? Expr(0) : floordiv(element, threads);
    const Expr thread = small(count, threads + 1) ? element : mod(element, threads);
    return {thread * kWords + mod(row, kWords), floordiv(row, kWords)};
  }
  const Expr block = floordiv(element, width), neighbour = mod(element, width);
  const bool is_one_round = small(count, width * threads + 1);
  const Expr thread = is_one_round ? block : mod(block, threads);
  const Expr round = is_one_round ? Expr(0) : floordiv(block, threads);
  return {thread * kWords + mod(neighbour, kWords),
          round * ((width + kWords - 1) / kWords) + floordiv(neighbour, kWords)};
}

}  // namespace

void philox_dropout(LoweringContext& context, const graph::Node& node) {
  // (input, states, place, p, width, threads, strides)
  const Tensor input = context.operand(node, 0), states = context.operand(node, 1);
  const auto integer = [&](size_t i) { return std::get<Expr>(node.args.at(i)).constant(); };
  const int64_t place = integer(2), width = integer(4), threads = integer(5);
  const double kept = 1.0 - std::get<double>(node.args.at(3));
  const auto strides = std::get<std::vector<Expr>>(node.args.at(6));
  const DType dtype = context.output_meta(node).dtype, wide = loop::compute_dtype(dtype);
  const double scale = wide == DType::Float32
                           ? static_cast<double>(static_cast<float>(1.0 / static_cast<float>(kept)))
                           : 1.0 / kept;
  Expr count = 1;
  for (const Expr& size : input.sizes) count = count * size;
  const Tensor mask = context.generate(
      {states}, input.sizes, DType::Bool,
      [=](BodyBuilder& b, const Index& index) {
        Expr element = 0;
        for (size_t d = 0; d < index.size(); ++d) element = element + index[d] * strides[d];
        const Place where = place_of(element, count, width, threads);
        const Value counter = LoweringContext::element(b, states, {Expr(1 + place)});
        const Value number = b.philox(LoweringContext::element(b, states, {Expr(0)}),
                                      counter + b.index(where.counter), b.index(where.position));
        return b.cast(number, wide) < b.constant(kept, wide);
      },
      kWorkOfPhilox);
  const bool keeps_mask = node.outputs[1] != graph::kNoValue && context.uses(node.outputs[1]) > 0;
  if (keeps_mask) context.realise(mask);
  const Tensor result = context.pointwise(
      {input, mask}, input.sizes, dtype,
      [=](BodyBuilder& b, std::span<const Value> values) {
        return values[0] * b.cast(values[1], wide) * b.constant(scale, wide);
      },
      2);
  context.set(node.outputs[0], result);
  if (keeps_mask) context.set(node.outputs[1], mask);
}

}  // namespace oxy::ops::lowerings
