#include "ops/views/lowerings.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "loop/view.h"
#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

namespace {

size_t at(int64_t d) {
  return static_cast<size_t>(d);
}

// The result of `node` as a new tensor: eager copies here, so the layout is the result's own.
void set_copied(LoweringContext& context, const Node& node, const Tensor& view) {
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.generate(
                                   {view}, out.sizes, out.dtype,
                                   [view](BodyBuilder& b, const Index& index) {
                                     return LoweringContext::element(b, view, index);
                                   },
                                   0));
}

}  // namespace

void reshape(LoweringContext& context, const Node& node) {
  context.set(node.outputs[0], context.reshape(context.operand(node, 0), context.output_meta(node).sizes));
}

void expand(LoweringContext& context, const Node& node) {
  context.set(node.outputs[0], context.expand(context.operand(node, 0), context.output_meta(node).sizes));
}

void permute(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  std::vector<int64_t> order = integers(node, 1);
  for (int64_t& d : order) d = wrap(d, x.rank());
  context.set(node.outputs[0], context.permute(x, order));
}

void transpose(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  if (x.rank() == 0) return context.set(node.outputs[0], x);
  std::vector<int64_t> order(at(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[at(dim(node, 1, x.rank()))], order[at(dim(node, 2, x.rank()))]);
  context.set(node.outputs[0], context.permute(x, order));
}

void t(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  if (x.rank() < 2) return context.set(node.outputs[0], x);
  constexpr int64_t kOrder[] = {1, 0};
  context.set(node.outputs[0], context.permute(x, kOrder));
}

void slice(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  size_t d = at(dim(node, 1, x.rank()));
  Expr start = slice_bound(node.args[2], x.sizes[d], 0);
  Expr step = is_none(node, 4) ? Expr(1) : expression(node, 4);
  context.set(node.outputs[0], context.view(x, context.output_meta(node).sizes, [&](const Index& index) {
    Index source = index;
    source[d] = start + step * source[d];
    return source;
  }));
}

void select(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  int64_t d = dim(node, 1, x.rank());
  const Expr position = from_front(expression(node, 2), x.sizes[at(d)]);
  context.set(node.outputs[0], context.view(x, context.output_meta(node).sizes, [&](const Index& index) {
    Index source = index;
    source.insert(source.begin() + d, position);
    return source;
  }));
}

void split(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  size_t d = at(dim(node, 2, x.rank()));
  Expr start = 0;
  for (graph::ValueId id : node.outputs) {
    const std::vector<Expr>& sizes = context.meta(id).sizes;
    context.set(id, context.view(x, sizes, [&](const Index& index) {
      Index source = index;
      source[d] = source[d] + start;
      return source;
    }));
    start = start + sizes[d];
  }
}

void unbind(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  int64_t d = dim(node, 1, x.rank());
  for (size_t k = 0; k < node.outputs.size(); ++k)
    context.set(node.outputs[k], context.view(x, context.output_meta(node, k).sizes, [&](const Index& index) {
      Index source = index;
      source.insert(source.begin() + d, Expr(static_cast<int64_t>(k)));
      return source;
    }));
}

void diagonal(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  int64_t offset = integer(node, 1);
  size_t d0 = at(dim(node, 2, x.rank()));
  size_t d1 = at(dim(node, 3, x.rank()));
  context.set(node.outputs[0], context.view(x, context.output_meta(node).sizes, [&](const Index& index) {
    Index source(at(x.rank()));
    size_t next = 0;
    for (size_t d = 0; d < source.size(); ++d)
      if (d != d0 && d != d1) source[d] = index[next++];
    source[d0] = index[next] + std::max<int64_t>(-offset, 0);
    source[d1] = index[next] + std::max<int64_t>(offset, 0);
    return source;
  }));
}

void as_strided(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  const TensorMeta& in = context.meta(std::get<graph::ValueRef>(node.args[0]).id);
  if (in.dtype != context.output_meta(node).dtype) not_lowered(node, "memory seen as another type");
  const std::vector<Expr>& strides = expressions(node, 2);
  Expr first = is_none(node, 3) ? in.storage_offset : expression(node, 3);
  const TensorMeta& out = context.output_meta(node);
  // The last element must lie within x: what the storage holds beyond it is not known here.
  Expr last = first - in.storage_offset;
  for (size_t d = 0; d < strides.size(); ++d) last = last + strides[d] * (out.sizes[d] - 1);
  bool inside =
      sym::known_less_equal(0, first - in.storage_offset) && sym::known_less(last, element_count(in));
  if (!inside) not_lowered(node, "elements outside of the tensor");
  std::optional<Index> map;
  Index index = loop::view_index(out.sizes);
  Expr linear = first - in.storage_offset;
  for (size_t d = 0; d < strides.size(); ++d) linear = linear + index[d] * strides[d];
  map = loop::unravel(linear, in.sizes, in.strides);
  if (!map) not_lowered(node, "a tensor with gaps or symbolic strides");
  context.set(node.outputs[0], context.view(x, out.sizes, [&](const Index&) { return *map; }));
}

void unfold(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  if (x.rank() == 0) not_lowered(node, "a tensor without dimensions");
  size_t d = at(dim(node, 1, x.rank()));
  Expr step = expression(node, 3);
  context.set(node.outputs[0], context.view(x, context.output_meta(node).sizes, [&](const Index& index) {
    Index source(index.begin(), index.end() - 1);
    source[d] = source[d] * step + index.back();
    return source;
  }));
}

void repeat(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  Tensor view = context.view(x, context.output_meta(node).sizes, [&](const Index& index) {
    Index source;
    size_t skipped = index.size() - x.sizes.size();
    for (size_t d = 0; d < x.sizes.size(); ++d)
      source.push_back(x.sizes[d] == Expr(0) ? Expr(0) : sym::mod(index[d + skipped], x.sizes[d]));
    return source;
  });
  set_copied(context, node, view);
}

void flip(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  std::vector<int64_t> flipped = integers(node, 1);
  const auto rank = std::max<int64_t>(static_cast<int64_t>(x.rank()), 1);
  if (std::ranges::any_of(flipped, [&](int64_t f) { return f < -rank || f >= rank; }))
    throw Unsupported("aten::flip is given a dimension out of range");
  if (x.rank() == 0) return set_copied(context, node, x);
  Tensor view = context.view(x, x.sizes, [&](const Index& index) {
    Index source = index;
    for (int64_t f : flipped) {
      size_t d = at(wrap(f, x.rank()));
      source[d] = x.sizes[d] - 1 - index[d];
    }
    return source;
  });
  set_copied(context, node, view);
}

void roll(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  const std::vector<Expr>& shifts = expressions(node, 1);
  std::vector<int64_t> rolled = integers(node, 2);
  if (std::ranges::any_of(x.sizes, [](const Expr& size) { return size == Expr(0); }))
    return set_copied(context, node, x);
  if (rolled.empty()) {
    Tensor flat = context.reshape(x, {sym::product(x.sizes)});
    Tensor view = context.view(x, x.sizes, [&](const Index& index) {
      Expr linear = sym::mod(loop::ravel(index, x.sizes) - shifts.at(0), flat.sizes[0]);
      return loop::reshape_index(x.sizes, flat.sizes, {linear});
    });
    return set_copied(context, node, view);
  }
  Tensor view = context.view(x, x.sizes, [&](const Index& index) {
    Index source = index;
    for (size_t k = 0; k < rolled.size(); ++k) {
      size_t d = at(wrap(rolled[k], x.rank()));
      source[d] = sym::mod(source[d] - shifts.at(k), x.sizes[d]);
    }
    return source;
  });
  set_copied(context, node, view);
}

}  // namespace oxy::ops::lowerings
