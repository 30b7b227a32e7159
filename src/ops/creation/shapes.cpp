#include "ops/creation/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

struct Options {
  std::optional<DType> dtype;
  std::optional<Device> device;
  std::optional<MemoryFormat> format;
};

Options options(const ShapeContext& context) {
  Options found;
  const auto& arguments = context.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].kwarg_only) continue;
    if (arguments[i].kind == ArgumentKind::DType) found.dtype = optional_dtype(context, i);
    if (arguments[i].kind == ArgumentKind::Device && !context.is_none(i))
      found.device = device_or(context, i, {});
    if (arguments[i].kind == ArgumentKind::MemoryFormat) found.format = optional_format(context, i);
  }
  return found;
}

TensorMeta fresh(const ShapeContext& context, const Options& o, DType dtype, Device device,
                 const std::vector<Expr>& sizes) {
  for (const Expr& size : sizes)
    if (!is_size(context, size)) not_covered(context, "a negative size");
  TensorMeta meta = contiguous_meta(o.dtype.value_or(dtype), o.device.value_or(device), sizes);
  return o.format ? with_format(context, meta, meta.dtype, *o.format) : meta;
}

DType type_of_number(const ShapeContext& context, const graph::Argument& number) {
  if (std::holds_alternative<bool>(number)) return DType::Bool;
  if (std::holds_alternative<Expr>(number)) return DType::Int64;
  if (std::holds_alternative<double>(number)) return context.default_dtype();
  if (std::holds_alternative<std::complex<double>>(number))
    return context.default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
  not_covered(context, "a value that is not a number");
}

bool is_whole_number(const graph::Argument& arg) {
  return std::holds_alternative<Expr>(arg) || std::holds_alternative<bool>(arg);
}

}  // namespace

Metas filled(const ShapeContext& context) {
  return {fresh(context, options(context), context.default_dtype(), {}, list(context, 0))};
}

Metas full(const ShapeContext& context) {
  return {fresh(context, options(context), type_of_number(context, context.arg(1)), {}, list(context, 0))};
}

Metas like(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const Options o = options(context);
  TensorMeta out =
      with_format(context, self, o.dtype.value_or(self.dtype), o.format.value_or(MemoryFormat::Preserve));
  out.device = o.device.value_or(self.device);
  return {out};
}

Metas filled_like_type(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  return {fresh(context, options(context), self.dtype, self.device, list(context, 1))};
}

Metas empty_strided(const ShapeContext& context) {
  TensorMeta out = fresh(context, options(context), context.default_dtype(), {}, list(context, 0));
  out.strides = list(context, 1);
  return {out};
}

Metas new_empty_strided(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  TensorMeta out = fresh(context, options(context), self.dtype, self.device, list(context, 1));
  out.strides = list(context, 2);
  return {out};
}

Metas empty_permuted(const ShapeContext& context) {
  TensorMeta out = fresh(context, options(context), context.default_dtype(), {}, list(context, 0));
  const std::vector<int64_t> order = integers(context, 1);
  if (order.size() != out.sizes.size()) not_covered(context, "not one dimension each");
  Expr stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(wrap_dim(context, order[i], out.rank()));
    out.strides[d] = stride;
    stride = stride * sym::max(out.sizes[d], 1);
  }
  return {out};
}

Metas arange(const ShapeContext& context) {
  const auto& arguments = context.schema().arguments;
  const auto numbers =
      static_cast<size_t>(std::count_if(arguments.begin(), arguments.end(), [](const ArgumentInfo& a) {
        return a.kind == ArgumentKind::Scalar;
      }));
  static const graph::Argument zero = Expr(0);
  static const graph::Argument one = Expr(1);
  const graph::Argument& start = numbers == 1 ? zero : context.arg(0);
  const graph::Argument& end = context.arg(numbers == 1 ? 0 : 1);
  const graph::Argument& step = numbers == 3 ? context.arg(2) : one;
  const Options o = options(context);
  const bool whole = is_whole_number(start) && is_whole_number(end) && is_whole_number(step);
  const DType dtype = o.dtype.value_or(whole ? DType::Int64 : context.default_dtype());
  Expr count;
  const auto integer_of = [&](const graph::Argument& arg) -> Expr {
    if (const auto* e = std::get_if<Expr>(&arg)) return *e;
    if (const auto* b = std::get_if<bool>(&arg)) return *b ? 1 : 0;
    if (const auto* d = std::get_if<double>(&arg)) return static_cast<int64_t>(*d);
    not_covered(context, "a bound that is not a number");
  };
  // Integers that are symbols among floating numbers count as such, if these are whole.
  const auto is_symbol = [](const graph::Argument& arg) {
    const auto* e = std::get_if<Expr>(&arg);
    return e != nullptr && !e->is_constant();
  };
  const auto has_whole_value = [](const graph::Argument& arg) {
    constexpr double kMaxExact = 9007199254740992;  // 2^53
    const auto* d = std::get_if<double>(&arg);
    return d == nullptr || (std::trunc(*d) == *d && std::abs(*d) < kMaxExact);
  };
  const std::array<const graph::Argument*, 3> bounds{&start, &end, &step};
  const bool counts = std::ranges::any_of(bounds, [&](const auto* arg) { return is_symbol(*arg); }) &&
                      std::ranges::all_of(bounds, [&](const auto* arg) { return has_whole_value(*arg); });
  if (whole || dtype == DType::Int64 || counts) {
    const Expr by = integer_of(step);
    const Expr length = integer_of(end) - integer_of(start);
    if (!context.less_equal(0, context.less(0, by) ? length : -length))
      not_covered(context, "bounds that contradict the step");
    if (context.less(0, by)) {
      count = sym::ceildiv(length, by);
    } else if (context.less(by, 0)) {
      count = sym::ceildiv(-length, -by);
    } else {
      not_covered(context, "a step whose sign is not known");
    }
  } else {
    const auto real_of = [&](const graph::Argument& arg) {
      if (const auto* d = std::get_if<double>(&arg)) return *d;
      return static_cast<double>(known(context, integer_of(arg)));
    };
    const double by = real_of(step);
    const double distance = real_of(end) - real_of(start);
    if (by == 0 || (by > 0) != (distance >= 0)) not_covered(context, "bounds that contradict the step");
    const double length = std::ceil(distance / by);
    if (!std::isfinite(length)) not_covered(context, "bounds that are not finite");
    count = static_cast<int64_t>(length);
  }
  if (!context.less_equal(0, count)) not_covered(context, "bounds that contradict the step");
  return {fresh(context, o, dtype, {}, {count})};
}

Metas linspace(const ShapeContext& context) {
  return {fresh(context, options(context), context.default_dtype(), {}, {expression(context, 2)})};
}

Metas scalar_tensor(const ShapeContext& context) {
  return {fresh(context, options(context), context.default_dtype(), {}, {})};
}

Metas eye(const ShapeContext& context) {
  const bool square = context.schema().arguments[1].kind != ArgumentKind::Int;
  return {fresh(context, options(context), context.default_dtype(), {},
                {expression(context, 0), expression(context, square ? 0 : 1)})};
}

Metas triangle_indices(const ShapeContext& context) {
  const int64_t rows = integer(context, 0);
  const int64_t columns = integer(context, 1);
  const int64_t offset = integer(context, 2);
  const bool lower = context.schema().name.find("tril") != std::string::npos;
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t first_above = lower ? i + offset + 1 : i + offset;  // where the diagonal cuts the row
    const int64_t cut = std::clamp<int64_t>(first_above, 0, columns);
    count += lower ? cut : columns - cut;
  }
  return {fresh(context, options(context), DType::Int64, {}, {2, count})};
}

Metas clone(const ShapeContext& context) {
  return like(context);
}

Metas copy(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!broadcasts_to(context, context.tensor(1).sizes, self.sizes))
    not_covered(context, "a source of another shape");
  return {strided_like(context, self)};
}

Metas triangle(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() < 2) not_covered(context, "fewer than two dimensions");
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas fill(const ShapeContext& context) {
  if (context.size() > 1 && context.is_tensor(1) && context.tensor(1).rank() > 0)
    refused_by_eager(context, "a value with dimensions");
  return {dense_like(context, context.tensor(0), context.tensor(0).dtype)};
}

Metas complex_of_parts(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  if (out.dtype != DType::Float32 && out.dtype != DType::Float64) not_covered(context, "parts of this type");
  out.dtype = out.dtype == DType::Float32 ? DType::Complex64 : DType::Complex128;
  return {out};
}

Metas window(const ShapeContext& context) {
  return {fresh(context, options(context), context.default_dtype(), {}, {expression(context, 0)})};
}

}  // namespace oxy::ops::shapes
