#include "ops/views/shapes.h"

#include <algorithm>

#include "base/error.h"
#include "ops/core/element_wise.h"
#include "ops/views/view_strides.h"
#include "sym/facts/node_count.h"

namespace oxy::ops::shapes {
namespace {

size_t at(int64_t dim) {
  return static_cast<size_t>(dim);
}

// The sizes asked for, with -1 filled in.
std::vector<Expr> inferred_sizes(const ShapeContext& context, const std::vector<Expr>& asked,
                                 const Expr& elements) {
  std::vector<Expr> sizes = asked;
  std::optional<size_t> hole;
  Expr rest = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (context.less(sizes[d], 0)) {
      if (hole) not_covered(context, "two sizes to infer");
      if (!context.equal(sizes[d], -1)) not_covered(context, "a negative size");
      hole = d;
    } else {
      rest = rest * sizes[d];
    }
  }
  if (hole) {
    if (context.equal(rest, 0) || !context.divisible(elements, rest))
      not_covered(context, "a size that cannot be inferred");
    sizes[*hole] = sym::floordiv(elements, rest);
  } else if (!agree(context, rest, elements)) {
    not_covered(context, "sizes of another number of elements");
  }
  return sizes;
}

void remove_dim(TensorMeta& meta, int64_t dim) {
  meta.sizes.erase(meta.sizes.begin() + dim);
  meta.strides.erase(meta.strides.begin() + dim);
}

// Slices of slices have clamps of clamps, and the formula grows many times with each. From so many terms on
// the values at hand decide.
constexpr size_t kTermsOfAClamp = 16;

bool is_long(const Expr& position, const Expr& low, const Expr& size) {
  return sym::node_count(position) + sym::node_count(low) + sym::node_count(size) > kTermsOfAClamp;
}

// start and end as Python's slices read them.
Expr clamp_index(const ShapeContext& context, const Expr& index, const Expr& low, const Expr& size) {
  if (index == Expr(0) && low == Expr(0)) return 0;
  Expr position = index;
  if (context.less(index, 0)) {
    position = index + size;
  } else if (!context.less_equal(0, index)) {  // where nobody may be asked
    position = index - size * sym::max(sym::min(index, 0), -1);
  }
  const SizeQuestions* questions = context.questions();
  if (questions == nullptr || !questions->at_hand(sym::less(low, position)) || !is_long(position, low, size))
    return sym::min(sym::max(position, low), size);
  if (context.less(position, low)) position = low;
  return context.less(size, position) ? size : position;
}

TensorMeta sliced(const TensorMeta& meta, size_t dim, const Expr& start, const Expr& length) {
  TensorMeta out = meta;
  out.storage_offset = out.storage_offset + start * meta.strides[dim];
  out.sizes[dim] = length;
  return out;
}

}  // namespace

Metas alias(const ShapeContext& context) {
  return {context.tensor(0)};
}

Metas as_strided(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  out.sizes = list(context, 1);
  out.strides = list(context, 2);
  if (out.sizes.size() != out.strides.size()) not_covered(context, "not as many strides as sizes");
  for (const Expr& stride : out.strides)
    if (context.less(stride, 0)) not_covered(context, "a negative stride");
  if (!context.is_none(3)) out.storage_offset = expression(context, 3);
  return {out};
}

Metas diagonal(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  const int64_t offset = integer(context, 1);
  const int64_t dim1 = dim_argument(context, 2, out.rank());
  const int64_t dim2 = dim_argument(context, 3, out.rank());
  if (out.rank() < 2 || dim1 == dim2) not_covered(context, "a diagonal needs two dimensions");
  const Expr rows = out.sizes[at(dim1)];
  const Expr columns = out.sizes[at(dim2)];
  const Expr row_stride = out.strides[at(dim1)];
  const Expr column_stride = out.strides[at(dim2)];
  const Expr length = offset >= 0 ? sym::max(sym::min(rows, columns - offset), 0)
                                  : sym::max(sym::min(rows + offset, columns), 0);
  if (offset != 0 && context.less(0, length))  // an empty one begins where the tensor does
    out.storage_offset = out.storage_offset + (offset >= 0 ? column_stride * offset : row_stride * -offset);
  remove_dim(out, std::max(dim1, dim2));
  remove_dim(out, std::min(dim1, dim2));
  out.sizes.push_back(length);
  out.strides.push_back(row_stride + column_stride);
  return {out};
}

Metas expand(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<Expr>& asked = list(context, 1);
  if (asked.size() < self.sizes.size()) not_covered(context, "fewer sizes than the tensor has");
  TensorMeta out = self;
  out.sizes = asked;
  out.strides.assign(asked.size(), Expr(0));
  const size_t added = asked.size() - self.sizes.size();
  if (self.sizes.empty()) {
    for (const Expr& size : asked)
      if (context.less(size, 0)) not_covered(context, "-1 for a new dimension");
    return {out};
  }
  for (size_t d = asked.size(); d-- > 0;) {
    const bool is_new = d < added;
    Expr size = is_new ? Expr(1) : self.sizes[d - added];
    Expr stride = 1;
    if (!is_new) {
      stride = self.strides[d - added];
    } else if (d + 1 < asked.size()) {
      stride = out.sizes[d + 1] * out.strides[d + 1];
    }
    if (asked[d] == Expr(-1)) {
      if (is_new) not_covered(context, "-1 for a new dimension");
      out.sizes[d] = size;
    } else if (is_repeated(context, size, asked[d])) {
      stride = 0;
    } else if (!context.equal(size, asked[d])) {
      not_covered(context, "expansion of a dimension that is not of size 1");
    }
    out.strides[d] = stride;
  }
  return {out};
}

Metas permute(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const std::vector<int64_t> dims = integers(context, 1);
  if (static_cast<int64_t>(dims.size()) != self.rank()) not_covered(context, "not one dimension each");
  TensorMeta out = self;
  std::vector<bool> seen(dims.size(), false);
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t d = at(wrap_dim(context, dims[i], self.rank()));
    if (seen[d]) not_covered(context, "a dimension that is named twice");
    seen[d] = true;
    out.sizes[i] = self.sizes[d];
    out.strides[i] = self.strides[d];
  }
  return {out};
}

Metas reshape_alias(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  out.sizes = list(context, 1);
  out.strides = list(context, 2);
  return {out};
}

Metas select(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  if (out.rank() == 0) not_covered(context, "a tensor without dimensions");
  const int64_t dim = dim_argument(context, 1, out.rank());
  Expr index = expression(context, 2);
  const Expr size = out.sizes[at(dim)];
  if (context.less(index, 0)) index = index + size;
  if (!context.less_equal(0, index) || !context.require(sym::less(index, size)))
    not_covered(context, "an index out of range");
  out.storage_offset = out.storage_offset + index * out.strides[at(dim)];
  remove_dim(out, dim);
  return {out};
}

// The slice of self that the arguments from `first` on name: dim, start, end, step.
TensorMeta named_slice(const ShapeContext& context, const TensorMeta& self, size_t first) {
  if (self.rank() == 0) not_covered(context, "a tensor without dimensions");
  const size_t dim = at(dim_argument(context, first, self.rank()));
  const Expr& size = self.sizes[dim];
  const Expr& step = expression(context, first + 3);
  if (!context.less(0, step)) not_covered(context, "a step that is not positive");
  const auto bound = [&](size_t i, const Expr& least, const Expr& otherwise) {
    return context.is_none(i) ? otherwise : clamp_index(context, expression(context, i), least, size);
  };
  const Expr start = bound(first + 1, 0, 0);
  const Expr end = bound(first + 2, start, size);
  TensorMeta out = sliced(self, dim, start, sym::ceildiv(end - start, step));
  out.strides[dim] = out.strides[dim] * step;
  return out;
}

Metas slice(const ShapeContext& context) {
  return {named_slice(context, context.tensor(0), 1)};
}

Metas slice_scatter(const ShapeContext& context) {
  if (!are_equal(context, named_slice(context, context.tensor(0), 2).sizes, context.tensor(1).sizes))
    refused_by_eager(context, "a source of another shape than the slice");
  return {strided_like(context, context.tensor(0))};
}

namespace {

// How many parts there are of all large sizes, whatever the variables are, as of `chunk(2)`. Nothing: their
// number grows.
std::optional<int64_t> count_of_large(const Expr& size, const Expr& part) {
  constexpr int64_t kLarge = 10'007, kLarger = 20'011;  // primes, to be no multiples of parts
  const Expr count = sym::ceildiv(size, part);
  const auto with = [&](int64_t value) {
    return sym::evaluate(count, [&](int64_t) { return std::optional(value); });
  };
  const int64_t of_large = with(kLarge);
  return of_large == with(kLarger) ? std::optional(of_large) : std::nullopt;
}

// How many parts of that many elements there are: the last one may have fewer. Asks for no more of the size.
int64_t part_count(const ShapeContext& context, const Expr& size, const Expr& part) {
  if (size.is_constant() && part.is_constant())
    return std::max<int64_t>(sym::ceildiv(size, part).constant(), 1);
  if (context.questions() == nullptr) not_covered(context, "a symbolic size");
  if (!context.questions()->at_hand(sym::less_equal(size, part))) {  // only data tell
    const std::optional<int64_t> likely = count_of_large(size, part);
    if (likely && context.require(sym::less_equal(size, part * *likely)) &&
        context.require(sym::less(part * (*likely - 1), size)))
      return *likely;
  }
  int64_t count = 1;
  while (context.questions()->at_hand(sym::less_equal(size, part * count)) == false) ++count;
  if (!context.less_equal(size, part * count) || (count > 1 && !context.less(part * (count - 1), size)))
    throw InternalError("a number of parts that is not that of the values at hand");
  return count;
}

}  // namespace

Metas split(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Expr& part = expression(context, 1);
  const size_t dim = at(dim_argument(context, 2, self.rank()));
  if (self.rank() == 0) not_covered(context, "a tensor without dimensions");
  const Expr& size = self.sizes[dim];
  if (!is_size(context, part)) not_covered(context, "a negative part size");
  if (context.equal(part, 0)) {
    if (!context.equal(size, 0)) not_covered(context, "a part size of zero");
    return {sliced(self, dim, 0, size)};
  }
  Metas out;
  const int64_t count = part_count(context, size, part);
  for (int64_t i = 0; i + 1 < count; ++i) out.push_back(sliced(self, dim, part * i, part));
  out.push_back(sliced(self, dim, part * (count - 1), size - part * (count - 1)));
  return out;
}

Metas slice_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  const TensorMeta out = contiguous_meta(grad.dtype, grad.device, list(context, 1));
  if (!are_equal(context, named_slice(context, out, 2).sizes, grad.sizes))
    not_covered(context, "a gradient of another shape");
  return {out};
}

Metas split_with_sizes(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() == 0) not_covered(context, "a tensor without dimensions");
  const size_t dim = at(dim_argument(context, 2, self.rank()));
  Metas out;
  Expr start = 0;
  for (const Expr& length : list(context, 1)) {
    if (!is_size(context, length)) not_covered(context, "a negative part size");
    out.push_back(sliced(self, dim, start, length));
    start = start + length;
  }
  if (!context.require(sym::equal(start, self.sizes[dim])))
    not_covered(context, "parts that are not the whole");
  return out;
}

Metas squeeze(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  for (int64_t d = out.rank(); d-- > 0;)
    if (context.equal(out.sizes[at(d)], 1)) remove_dim(out, d);
  return {out};
}

Metas squeeze_dims(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  const std::vector<bool> mask = dim_mask(context, 1, out.rank(), false);
  for (int64_t d = out.rank(); d-- > 0;)
    if (mask[at(d)] && context.equal(out.sizes[at(d)], 1)) remove_dim(out, d);
  return {out};
}

Metas t(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  if (out.rank() > 2) not_covered(context, "more than two dimensions");
  std::reverse(out.sizes.begin(), out.sizes.end());
  std::reverse(out.strides.begin(), out.strides.end());
  return {out};
}

Metas transpose(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  const size_t a = at(dim_argument(context, 1, out.rank()));
  const size_t b = at(dim_argument(context, 2, out.rank()));
  if (a == b) return {out};
  std::swap(out.sizes[a], out.sizes[b]);
  std::swap(out.strides[a], out.strides[b]);
  return {out};
}

Metas unbind(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() == 0) not_covered(context, "a tensor without dimensions");
  const int64_t dim = dim_argument(context, 1, self.rank());
  const int64_t count = known(context, self.sizes[at(dim)]);
  TensorMeta part = self;
  remove_dim(part, dim);
  Metas out(at(count), part);
  for (int64_t i = 0; i < count; ++i)
    out[at(i)].storage_offset = self.storage_offset + self.strides[at(dim)] * i;
  return out;
}

Metas unfold(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  if (out.rank() == 0) not_covered(context, "a tensor without dimensions");
  const size_t dim = at(dim_argument(context, 1, out.rank()));
  const Expr& window = expression(context, 2);
  const Expr& step = expression(context, 3);
  if (!context.require(sym::less_equal(window, out.sizes[dim])) || !context.require(sym::less(0, step)))
    not_covered(context, "a window larger than the dimension");
  out.sizes.push_back(window);
  out.strides.push_back(out.strides[dim]);
  out.sizes[dim] = sym::floordiv(out.sizes[dim] - window, step) + 1;
  out.strides[dim] = out.strides[dim] * step;
  return {out};
}

Metas unsqueeze(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  const int64_t dim = wrap_dim(context, integer(context, 1), out.rank() + 1);
  const Expr stride = dim < out.rank() ? out.sizes[at(dim)] * out.strides[at(dim)] : Expr(1);
  out.sizes.insert(out.sizes.begin() + dim, Expr(1));
  out.strides.insert(out.strides.begin() + dim, stride);
  return {out};
}

Metas view(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  std::optional<TensorMeta> out =
      viewed(context, self, inferred_sizes(context, list(context, 1), element_count(self)));
  if (!out) not_covered(context, "a view of these strides");
  return {std::move(*out)};
}

Metas view_as_complex(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  if (out.rank() == 0 || !context.equal(out.sizes.back(), 2) || !context.equal(out.strides.back(), 1) ||
      (out.dtype != DType::Float32 && out.dtype != DType::Float64))
    not_covered(context, "no pairs of real numbers");
  out.dtype = out.dtype == DType::Float32 ? DType::Complex64 : DType::Complex128;
  remove_dim(out, out.rank() - 1);
  for (Expr& stride : out.strides) {
    if (!context.divisible(stride, 2)) not_covered(context, "odd strides");
    stride = sym::floordiv(stride, 2);
  }
  if (!context.divisible(out.storage_offset, 2)) not_covered(context, "an odd offset");
  out.storage_offset = sym::floordiv(out.storage_offset, 2);
  return {out};
}

Metas view_as_real(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  if (!is_complex(out.dtype)) not_covered(context, "numbers that are not complex");
  out.dtype = out.dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
  for (Expr& stride : out.strides) stride = stride * 2;
  out.storage_offset = out.storage_offset * 2;
  out.sizes.push_back(2);
  out.strides.push_back(1);
  return {out};
}

Metas view_dtype(const ShapeContext& context) {
  TensorMeta out = context.tensor(0);
  const DType dtype = *optional_dtype(context, 1);
  const auto from = static_cast<int64_t>(item_size(out.dtype));
  const auto to = static_cast<int64_t>(item_size(dtype));
  out.dtype = dtype;
  if (from == to) return {out};
  if (out.rank() == 0 || !context.equal(out.strides.back(), 1))
    not_covered(context, "an inner stride other than 1");
  if (from > to) {
    const int64_t factor = from / to;
    for (size_t d = 0; d + 1 < out.strides.size(); ++d) out.strides[d] = out.strides[d] * factor;
    out.sizes.back() = out.sizes.back() * factor;
    out.storage_offset = out.storage_offset * factor;
    return {out};
  }
  const int64_t factor = to / from;
  const auto shrink = [&](Expr& e) {
    if (!context.divisible(e, factor))
      not_covered(context, "sizes or strides that the wider type does not divide");
    e = sym::floordiv(e, factor);
  };
  for (size_t d = 0; d + 1 < out.strides.size(); ++d) shrink(out.strides[d]);
  shrink(out.sizes.back());
  shrink(out.storage_offset);
  return {out};
}

}  // namespace oxy::ops::shapes
