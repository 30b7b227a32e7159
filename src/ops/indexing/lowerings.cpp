#include "ops/indexing/lowerings.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "loop/view.h"
#include "ops/core/lowering_arguments.h"
#include "ops/indexing/parts.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;

namespace {

Value element(BodyBuilder& b, const Tensor& x, const Index& index) {
  return LoweringContext::element(b, x, index);
}

size_t position(int64_t d) {
  return static_cast<size_t>(d);
}

// Where x[:, i, j] and x[i, :, j] put the dimensions of the indices: those that are adjacent stay in place,
// others come first.
struct Indexing {
  std::vector<std::optional<Tensor>> indices;  // one a dimension of x
  std::vector<Expr> sizes;                     // the indices' common shape
  size_t first = 0;                            // its place in the result
};

Indexing indexing_of(LoweringContext& context, const Node& node, size_t argument,
                     const std::vector<Expr>& x_sizes) {
  Indexing result;
  const auto& ids = tensors(node, argument);
  std::vector<size_t> given;
  for (size_t d = 0; d < x_sizes.size(); ++d) {
    bool present = d < ids.size() && ids[d] != graph::kNoValue;
    result.indices.push_back(present ? std::optional(context.value(ids[d])) : std::nullopt);
    if (!present) continue;
    given.push_back(d);
    context.need_elements(node, x_sizes[d]);
    const Tensor& index = *result.indices.back();
    if (!is_integral(index.dtype) || index.dtype == DType::UInt8) not_lowered(node, "a mask as index");
    if (index.sizes.size() > result.sizes.size())
      result.sizes.insert(result.sizes.begin(), index.sizes.size() - result.sizes.size(), Expr(1));
    size_t skipped = result.sizes.size() - index.sizes.size();
    for (size_t k = 0; k < index.sizes.size(); ++k)
      if (!(index.sizes[k] == Expr(1))) result.sizes[k + skipped] = index.sizes[k];
  }
  if (given.empty()) not_lowered(node, "no index");
  bool adjacent = given.back() - given.front() + 1 == given.size();
  result.first = adjacent ? given.front() : 0;
  return result;
}

// The index into x of the element that the result has at `index`.
Index indexed(BodyBuilder& b, const Indexing& indexing, const std::vector<Expr>& sizes, const Index& index) {
  auto begin = index.begin() + static_cast<std::ptrdiff_t>(indexing.first);
  Index common(begin, begin + static_cast<std::ptrdiff_t>(indexing.sizes.size()));
  Index kept(index.begin(), begin);
  kept.insert(kept.end(), begin + static_cast<std::ptrdiff_t>(indexing.sizes.size()), index.end());
  Index source;
  size_t next = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!indexing.indices[d]) {
      source.push_back(kept[next++]);
      continue;
    }
    const Tensor& i = *indexing.indices[d];
    source.push_back(b.bind_index(element(b, i, loop::broadcast_index(i.sizes, common)), sizes[d], true));
  }
  return source;
}

std::vector<Tensor> with_indices(const Tensor& x, const Indexing& indexing) {
  std::vector<Tensor> inputs{x};
  for (const auto& index : indexing.indices)
    if (index) inputs.push_back(*index);
  return inputs;
}

// Elements that are picked more often than there are of them are better computed once.
void realise_if_repeated(LoweringContext& context, const Tensor& x, const TensorMeta& out) {
  if (!sym::known_less_equal(element_count(out), sym::product(x.sizes))) context.realise_unless_cheap(x);
}

Tensor output_buffer(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  return context.new_buffer(out.sizes, out.dtype);
}

Index same(BodyBuilder&, const Index& index) {
  return index;
}

// A buffer of the result's shape that holds argument 0.
Tensor copy_of_self(LoweringContext& context, const Node& node) {
  Tensor target = output_buffer(context, node);
  Tensor self = context.operand(node, 0);
  context.store(
      target, target.sizes, [&](BodyBuilder& b, const Index& index) { return element(b, self, index); }, same,
      loop::StoreMode::Set, std::span(&self, 1));
  return target;
}

}  // namespace

void embedding(LoweringContext& context, const Node& node) {
  Tensor weight = context.operand(node, 0);
  Tensor indices = context.operand(node, 1);
  const TensorMeta& out = context.output_meta(node);
  for (const Expr& size : weight.sizes) context.need_elements(node, size);
  context.realise(weight);
  context.set(node.outputs[0], context.generate(
                                   {weight, indices}, out.sizes, out.dtype,
                                   [weight, indices](BodyBuilder& b, const Index& index) {
                                     Index outer(index.begin(), index.end() - 1);
                                     Expr row = b.bind_index(element(b, indices, outer), weight.sizes[0],
                                                             true, false);
                                     return element(b, weight, {row, index.back()});
                                   },
                                   2, true));
}

void index(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  Indexing indexing = indexing_of(context, node, 1, x.sizes);
  const TensorMeta& out = context.output_meta(node);
  realise_if_repeated(context, x, out);
  context.set(node.outputs[0], context.generate(
                                   with_indices(x, indexing), out.sizes, out.dtype,
                                   [x, indexing](BodyBuilder& b, const Index& index) {
                                     return element(b, x, indexed(b, indexing, x.sizes, index));
                                   },
                                   3, true));
}

namespace {

// Elements of x whose position along dimension d is an element of `indices`, at the place that `place` gives.
void pick(LoweringContext& context, const Node& node, const Tensor& x, const Tensor& indices, size_t d,
          const std::function<Index(const Index& index)>& place) {
  const TensorMeta& out = context.output_meta(node);
  realise_if_repeated(context, x, out);
  context.set(node.outputs[0], context.generate(
                                   {x, indices}, out.sizes, out.dtype,
                                   [x, indices, d, place](BodyBuilder& b, const Index& index) {
                                     Index source = index;
                                     source[d] = b.bind_index(element(b, indices, place(index)), x.sizes[d],
                                                              true, false);
                                     return element(b, x, source);
                                   },
                                   2, true));
}

}  // namespace

void index_select(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  if (x.rank() == 0) not_lowered(node, "a tensor without dimensions");
  size_t d = position(dim(node, 1, x.rank()));
  // Of the other dimensions as well: a loop without iterations looks at no index, and eager does.
  for (const Expr& size : x.sizes) context.need_elements(node, size);
  Tensor indices = context.reshape(context.operand(node, 2), {context.output_meta(node).sizes[d]});
  pick(context, node, x, indices, d, [d](const Index& index) { return Index{index[d]}; });
}

void gather(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  Tensor indices = context.operand(node, 2);
  if (x.rank() == 0 || indices.rank() != x.rank()) not_lowered(node, "a tensor without dimensions");
  size_t d = position(dim(node, 1, x.rank()));
  context.need_elements(node, x.sizes[d]);
  pick(context, node, x, indices, d, [](const Index& index) { return index; });
}

void index_put(LoweringContext& context, const Node& node) {
  Tensor self = context.operand(node, 0);
  Tensor values = context.operand(node, 2);
  Indexing indexing = indexing_of(context, node, 1, self.sizes);
  bool accumulate = flag(node, 3);
  if (accumulate && !is_floating(self.dtype) && self.dtype != DType::Int64 && self.dtype != DType::Int32)
    not_lowered(node, "accumulating small integers");
  if (accumulate && compute_dtype(self.dtype) != self.dtype) not_lowered(node, "accumulating half precision");
  std::vector<Expr> sizes;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (!indexing.indices[d]) sizes.push_back(self.sizes[d]);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(indexing.first), indexing.sizes.begin(),
               indexing.sizes.end());
  Tensor target = copy_of_self(context, node);
  context.store(
      target, sizes,
      [&](BodyBuilder& b, const Index& index) { return element_as(b, values, index, self.dtype); },
      [&](BodyBuilder& b, const Index& index) { return indexed(b, indexing, self.sizes, index); },
      accumulate ? loop::StoreMode::AtomicAdd : loop::StoreMode::Set, std::span(&values, 1));
  context.set(node.outputs[0], target);
}

namespace {

enum class Scatter : uint8_t { Set, Add, Multiply };

// The dimension of a scatter whose index names one element of each row along it. The result is then a choice
// between self and the source, which is made where it is read. Self that is in memory is better written in
// place.
std::optional<size_t> dimension_of_choice(const LoweringContext& context, const Node& node) {
  const Tensor self = context.operand(node, 0), indices = context.operand(node, 2);
  if (self.is_realised() || self.rank() == 0 || indices.rank() != self.rank()) return std::nullopt;
  const size_t d = position(dim(node, 1, self.rank()));
  for (size_t k = 0; k < self.sizes.size(); ++k)
    if (!(indices.sizes[k] == (k == d ? Expr(1) : self.sizes[k]))) return std::nullopt;
  return d;
}

// The places that the rows' indices name. They are computed once a row, by a step of their own that checks
// them.
Tensor checked_places(LoweringContext& context, const Tensor& indices, const Expr& size) {
  const bool is_narrow = size.range().high <= std::numeric_limits<int32_t>::max();
  const DType type = is_narrow ? DType::Int32 : DType::Int64;
  Tensor places = context.generate(
      {indices}, indices.sizes, type,
      [=](BodyBuilder& b, const Index& index) {
        return b.index(b.bind_index(element(b, indices, index), size, true, false), type);
      },
      1, true);
  context.realise(places);
  return places;
}

// What the rows are given: of `source`, which may be a number or larger, the part that the indices have.
Tensor row_values(LoweringContext& context, const Tensor& source, const Tensor& indices, DType dtype) {
  Tensor values = context.generate({source}, indices.sizes, dtype, [=](BodyBuilder& b, const Index& index) {
    return source.rank() == 0 ? b.round_to(element_as(b, source, index, dtype), dtype)
                              : element(b, source, index);
  });
  if (!source.is_realised() && !source.source->reads.empty()) context.realise(values);
  return values;
}

void choose(LoweringContext& context, const Node& node, size_t d, Scatter how) {
  const Tensor self = context.operand(node, 0), indices = context.operand(node, 2);
  const bool is_exact = is_floating(self.dtype) || self.dtype == DType::Int64 || self.dtype == DType::Int32;
  if (how != Scatter::Set && !is_exact) not_lowered(node, "arithmetic of this type");
  context.need_elements(node, self.sizes[d]);
  const Tensor places = checked_places(context, indices, self.sizes[d]);
  const Tensor values = row_values(context, context.operand(node, 3), indices, self.dtype);
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.generate(
                                   {self, places, values}, out.sizes, out.dtype,
                                   [=](BodyBuilder& b, const Index& index) {
                                     Index row = index;
                                     row[d] = 0;
                                     const Value is_here =
                                         b.index(index[d], places.dtype) == element(b, places, row);
                                     const Value before = element(b, self, index);
                                     Value given = element(b, values, row);
                                     if (how == Scatter::Add) given = before + given;
                                     if (how == Scatter::Multiply) given = before * given;
                                     return b.where(is_here, given, before);
                                   },
                                   3));
}

void scatter_as(LoweringContext& context, const Node& node, loop::StoreMode mode) {
  if (const auto chosen = dimension_of_choice(context, node))
    return choose(context, node, *chosen, mode == loop::StoreMode::Set ? Scatter::Set : Scatter::Add);
  Tensor self = context.operand(node, 0);
  Tensor indices = context.operand(node, 2);
  Tensor source = context.operand(node, 3);
  if (self.rank() == 0 || indices.rank() != self.rank()) not_lowered(node, "a tensor without dimensions");
  if (mode == loop::StoreMode::AtomicAdd &&
      (compute_dtype(self.dtype) != self.dtype || (!is_floating(self.dtype) && self.dtype != DType::Int64)))
    not_lowered(node, "accumulating this type");
  size_t d = position(dim(node, 1, self.rank()));
  context.need_elements(node, self.sizes[d]);
  Tensor target = copy_of_self(context, node);
  context.store(
      target, indices.sizes,
      [&](BodyBuilder& b, const Index& index) {
        return source.rank() == 0 ? element_as(b, source, index, self.dtype) : element(b, source, index);
      },
      [&](BodyBuilder& b, const Index& index) {
        Index place = index;
        place[d] = b.bind_index(element(b, indices, index), self.sizes[d], true, false);
        return place;
      },
      mode, std::span(&source, 1), mode == loop::StoreMode::Set);
  context.set(node.outputs[0], target);
}

}  // namespace

void index_copy(LoweringContext& context, const Node& node) {
  // (self, dim, index, source)
  Tensor self = context.operand(node, 0);
  const Tensor places = context.operand(node, 2), source = context.operand(node, 3);
  if (self.rank() == 0 || source.rank() != self.rank()) not_lowered(node, "a tensor without dimensions");
  const size_t d = position(dim(node, 1, self.rank()));
  context.need_elements(node, self.sizes[d]);
  Tensor target = copy_of_self(context, node);
  context.store(
      target, source.sizes, [&](BodyBuilder& b, const Index& index) { return element(b, source, index); },
      [&](BodyBuilder& b, const Index& index) {
        const Index which = places.rank() == 0 ? Index{} : Index{index[d]};
        Index place = index;
        place[d] = b.bind_index(element(b, places, which), self.sizes[d], true, false);
        return place;
      },
      loop::StoreMode::Set, std::span(&source, 1));
  context.set(node.outputs[0], target);
}

namespace {

// `part` where `inside` gives an index into it, else argument 0.
void overlay(LoweringContext& context, const Node& node, const Tensor& part,
             std::function<std::optional<Value>(BodyBuilder&, const Index&)> inside,
             std::function<Index(const Index&)> place) {
  Tensor self = context.operand(node, 0);
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.generate(
                                   {self, part}, out.sizes, out.dtype,
                                   [self, part, inside = std::move(inside), place = std::move(place)](
                                       BodyBuilder& b, const Index& index) {
                                     std::optional<Value> mask = inside(b, index);
                                     auto written = [&] {
                                       return element_as(b, part, place(index), self.dtype);
                                     };
                                     if (!mask) return written();
                                     return b.masked(*mask, written, element(b, self, index));
                                   },
                                   4));
}

}  // namespace

void scatter(LoweringContext& context, const Node& node) {
  scatter_as(context, node, loop::StoreMode::Set);
}
void scatter_add(LoweringContext& context, const Node& node) {
  scatter_as(context, node, loop::StoreMode::AtomicAdd);
}

void scatter_reduce(LoweringContext& context, const Node& node) {
  const auto chosen = dimension_of_choice(context, node);
  if (!chosen) not_lowered(node, "several elements in one place");
  if (!is_none(node, 5) && !flag(node, 5)) not_lowered(node, "a result without self");
  // A number is converted as eager's kernels do it, which is not known of integers.
  if (!is_tensor(node, 3) && !is_floating(context.operand(node, 0).dtype))
    not_lowered(node, "a number among integers");
  const std::string how = text(node, 4);
  const bool adds = how == "add" || how == "sum";
  if (!adds && how != "multiply" && how != "prod") not_lowered(node, "neither a sum nor a product");
  choose(context, node, *chosen, adds ? Scatter::Add : Scatter::Multiply);
}

void slice_scatter(LoweringContext& context, const Node& node) {
  Tensor part = context.operand(node, 1);
  const std::vector<Expr>& sizes = context.output_meta(node).sizes;
  size_t d = position(dim(node, 2, static_cast<int64_t>(sizes.size())));
  Expr start = slice_bound(node.args[3], sizes[d], 0);
  Expr step = is_none(node, 5) ? Expr(1) : expression(node, 5);
  Expr count = part.sizes[d];
  overlay(
      context, node, part,
      [=](BodyBuilder& b, const Index& index) {
        Expr offset = index[d] - start;
        auto mask = within(b, offset, 0, step * count);
        if (step == Expr(1)) return mask;
        Value on_step = b.index(sym::mod(offset, step)) == b.index(0);
        return std::optional(mask ? *mask & on_step : on_step);
      },
      [=](const Index& index) {
        Index place = index;
        place[d] = sym::floordiv(place[d] - start, step);
        return place;
      });
}

void select_scatter(LoweringContext& context, const Node& node) {
  Tensor part = context.operand(node, 1);
  const std::vector<Expr>& sizes = context.output_meta(node).sizes;
  int64_t d = dim(node, 2, static_cast<int64_t>(sizes.size()));
  const Expr chosen = from_front(expression(node, 3), sizes[position(d)]);
  overlay(
      context, node, part,
      [=](BodyBuilder& b, const Index& index) {
        return std::optional(b.index(index[position(d)]) == b.index(chosen));
      },
      [=](const Index& index) {
        Index place = index;
        place.erase(place.begin() + d);
        return place;
      });
}

void as_strided_scatter(LoweringContext& context, const Node& node) {
  const TensorMeta& in = context.meta(std::get<graph::ValueRef>(node.args[0]).id);
  const TensorMeta& out = context.output_meta(node);
  Tensor part = context.operand(node, 1);
  const std::vector<Expr>& strides = expressions(node, 3);
  Expr offset = (is_none(node, 4) ? in.storage_offset : expression(node, 4)) - in.storage_offset;
  if (!(out.strides == in.strides)) not_lowered(node, "a tensor that is laid out anew");
  Expr linear = offset;
  Expr last = offset;
  Index index = loop::view_index(part.sizes);
  for (size_t d = 0; d < strides.size(); ++d) {
    linear = linear + index[d] * strides[d];
    last = last + (part.sizes[d] - 1) * strides[d];
  }
  bool inside = sym::known_less_equal(0, offset) && sym::known_less(last, element_count(in));
  auto map = inside ? loop::unravel(linear, in.sizes, in.strides) : std::nullopt;
  if (!map) not_lowered(node, "elements outside of the tensor, or one with gaps");
  Tensor target = copy_of_self(context, node);
  context.store(
      target, part.sizes, [&](BodyBuilder& b, const Index& i) { return element_as(b, part, i, out.dtype); },
      [&](BodyBuilder&, const Index& i) { return loop::at(*map, i); }, loop::StoreMode::Set,
      std::span(&part, 1));
  context.set(node.outputs[0], target);
}

void constant_pad(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  const std::vector<Expr>& pads = expressions(node, 1);
  Tensor fill = is_none(node, 2) ? context.constant(loop::Scalar{}, {}, x.dtype) : context.operand(node, 2);
  const TensorMeta& out = context.output_meta(node);
  std::vector<Expr> before(x.sizes.size(), Expr(0));
  for (size_t k = 0; k < pads.size() / 2; ++k) before[x.sizes.size() - 1 - k] = pads[2 * k];
  context.set(node.outputs[0], context.generate(
                                   {x}, out.sizes, out.dtype,
                                   [=](BodyBuilder& b, const Index& index) {
                                     Index source;
                                     std::optional<Value> mask;
                                     for (size_t d = 0; d < index.size(); ++d) {
                                       source.push_back(index[d] - before[d]);
                                       auto here = within(b, source.back(), 0, x.sizes[d]);
                                       if (here) mask = mask ? *mask & *here : here;
                                     }
                                     if (!mask) return element(b, x, source);
                                     return b.masked(
                                         *mask, [&] { return element(b, x, source); },
                                         b.round_to(element_as(b, fill, {}, x.dtype), x.dtype));
                                   },
                                   4));
}

namespace {

void triangle(LoweringContext& context, const Node& node, bool lower) {
  Tensor x = context.operand(node, 0);
  Expr diagonal = is_none(node, 1) ? Expr(0) : expression(node, 1);
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.generate(
                                   {x}, out.sizes, out.dtype,
                                   [=](BodyBuilder& b, const Index& index) {
                                     size_t n = index.size();
                                     Value column = b.index(index[n - 1]);
                                     Value limit = b.index(index[n - 2] + diagonal);
                                     Value kept = lower ? column <= limit : column >= limit;
                                     return b.masked(
                                         kept, [&] { return element(b, x, index); },
                                         b.constant(loop::Scalar{}, compute_dtype(x.dtype)));
                                   },
                                   4));
}

}  // namespace

void tril(LoweringContext& context, const Node& node) {
  triangle(context, node, true);
}
void triu(LoweringContext& context, const Node& node) {
  triangle(context, node, false);
}

}  // namespace oxy::ops::lowerings
