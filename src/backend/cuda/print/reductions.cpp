#include "backend/cuda/print/reductions.h"

#include <bit>

#include "base/error.h"

namespace oxy::backend::cuda {

using loop::ReductionKind;

namespace {

bool is_positional(ReductionKind kind) {
  return kind == ReductionKind::ArgMax || kind == ReductionKind::ArgMin;
}

std::string least_of(DType dtype) {
  if (is_floating(dtype)) return "float(\"-inf\")";
  if (!is_signed(dtype)) return "0";
  return fmt::format("{}", -1 - static_cast<int64_t>((uint64_t{1} << (8 * item_size(dtype) - 1)) - 1));
}

std::string greatest_of(DType dtype) {
  if (is_floating(dtype)) return "float(\"inf\")";
  const size_t bits = 8 * item_size(dtype) - (is_signed(dtype) ? 1 : 0);
  return fmt::format("{}", bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
}

// What changes no result.
std::string identity(ReductionKind kind, DType dtype) {
  switch (kind) {
    case ReductionKind::Max:
    case ReductionKind::ArgMax:
    case ReductionKind::OnlineSoftmax:
      return least_of(dtype);
    case ReductionKind::Min:
    case ReductionKind::ArgMin:
      return greatest_of(dtype);
    case ReductionKind::Prod:
    case ReductionKind::All:
      return is_floating(dtype) ? "1.0" : "1";
    default:
      return is_floating(dtype) ? "0.0" : "0";
  }
}

// The type that `kind` accumulates in.
DType accumulator_dtype(ReductionKind kind, DType accumulate) {
  if (kind == ReductionKind::Any || kind == ReductionKind::All) return DType::Int32;
  return accumulate == DType::Bool ? DType::Int32 : held_dtype(accumulate);
}

Value prepared(BlockPrinter& block, ReductionKind kind, DType accumulate, const Value& value) {
  if (kind == ReductionKind::Any || kind == ReductionKind::All) {
    const Value truth = block.named(cast_text(value, DType::Bool), DType::Bool, value.dims);
    return block.named(cast_text(truth, DType::Int32), DType::Int32, value.dims);
  }
  const DType dtype = accumulator_dtype(kind, accumulate);
  return held_dtype(value.dtype) == dtype ? value : block.named(cast_text(value, dtype), dtype, value.dims);
}

// What is true of the elements that count; empty if all of the block do.
std::string counting_mask(BlockPrinter& block, const std::optional<Expr>& counted) {
  if (!counted) return block.mask(kColumns);
  const ExpressionText end = block.expression(*counted);
  const std::string text =
      fmt::format("{} < {}", block.expression(block.columns().variable).text, parenthesized(end));
  return block.named(text, DType::Bool, end.dims | kColumns).text;
}

std::string masked(BlockPrinter& block, const std::string& value, const std::string& otherwise,
                   const std::optional<Expr>& counted) {
  const std::string mask = counting_mask(block, counted);
  return mask.empty() ? value : fmt::format("tl.where({}, {}, {})", mask, value, otherwise);
}

// The combination of all elements of `text`.
std::string combined(BlockPrinter& block, ReductionKind kind, DType dtype, const std::string& text) {
  const int dimension = block.reduced_dimension();
  const auto by = [&](const char* helper) {
    block.needs.helpers.insert(helper);
    return fmt::format("tl.reduce({}, {}, {})", text, dimension, helper);
  };
  switch (kind) {
    case ReductionKind::Sum:
      return fmt::format("tl.sum({}, {})", text, dimension);
    case ReductionKind::Prod:
      return by("times");
    case ReductionKind::Max:
    case ReductionKind::OnlineSoftmax:
      return is_floating(dtype) ? by("larger") : fmt::format("tl.max({}, {})", text, dimension);
    case ReductionKind::Min:
      return is_floating(dtype) ? by("smaller") : fmt::format("tl.min({}, {})", text, dimension);
    case ReductionKind::Any:
      return fmt::format("tl.max({}, {})", text, dimension);
    case ReductionKind::All:
      return fmt::format("tl.min({}, {})", text, dimension);
    default:
      throw InternalError("a reduction that has no single value");
  }
}

Value reduced(BlockPrinter& block, ReductionKind kind, DType dtype, const std::string& text) {
  const Value value = block.named(block.widened(combined(block, kind, dtype, text)), dtype, block.row_dims());
  if (kind == ReductionKind::Any || kind == ReductionKind::All)
    return block.named(fmt::format("{} != 0", value.text), DType::Bool, block.row_dims());
  return value;
}

DType position_dtype(const BlockPrinter& block) {
  return block.is_wide() ? DType::Int64 : DType::Int32;
}

std::string no_position(const BlockPrinter& block) {
  return block.is_wide() ? "0x7fffffffffffffff" : "0x7fffffff";
}

// The first place of the best value: the least of all places where it is.
Value first_position(BlockPrinter& block, ReductionKind kind, const Value& values, const Value& positions) {
  const ReductionKind best_of = kind == ReductionKind::ArgMax ? ReductionKind::Max : ReductionKind::Min;
  const Value best = reduced(block, best_of, values.dtype, values.text);
  std::string is_best = fmt::format("{} == {}", values.text, best.text);
  // A NaN is better than every number. If there is one, the best value is a NaN, too.
  if (is_floating(values.dtype)) is_best = fmt::format("({0}) | ({1} != {1})", is_best, values.text);
  const Value at =
      block.named(fmt::format("tl.where({}, {}, {})", is_best, positions.text, no_position(block)),
                  positions.dtype, block.row_dims() | kColumns);
  const Value first = reduced(block, ReductionKind::Min, positions.dtype, at.text);
  return block.named(first.text + ".to(tl.int64)", DType::Int64, block.row_dims());
}

std::string columns_text(BlockPrinter& block) {
  return block.expression(block.columns().variable).text;
}

std::string positions(BlockPrinter& block) {
  return block.whole({columns_text(block), position_dtype(block), kColumns});
}

// How many elements of a row count, as a floating value.
std::string count_text(BlockPrinter& block, const std::optional<Expr>& counted, DType dtype) {
  const Expr& extent = counted ? *counted : block.columns().extent;
  if (const auto count = extent.as_constant()) return literal({static_cast<double>(*count)}, dtype);
  return fmt::format("tl.cast({}, {})", block.expression(extent).text, triton_type(dtype));
}

std::string tensor_count(BlockPrinter& block, const std::optional<Expr>& counted, DType dtype) {
  const std::string text = count_text(block, counted, dtype);
  return text.starts_with("tl.") ? text : fmt::format("tl.full([], {}, {})", text, triton_type(dtype));
}

std::string quotient(const std::string& a, const std::string& b, DType dtype) {
  return dtype == DType::Float32 ? fmt::format("tl.div_rn({}, {})", a, b) : fmt::format("({}) / {}", a, b);
}

// The mean of `counted` elements whose sum is `sum`. The reciprocal of a power of two is exact, and a
// product takes a fraction of a rounded quotient's time.
std::string mean_text(BlockPrinter& block, const std::string& sum, const std::optional<Expr>& counted,
                      DType dtype) {
  const Expr& extent = counted ? *counted : block.columns().extent;
  const auto count = extent.as_constant();
  if (count && *count > 0 && std::has_single_bit(static_cast<uint64_t>(*count)))
    return fmt::format("{} * {}", sum, literal({1.0 / static_cast<double>(*count)}, dtype));
  return quotient(sum, tensor_count(block, counted, dtype), dtype);
}

}  // namespace

std::vector<Value> reduce_row(BlockPrinter& block, ReductionKind kind, DType accumulate,
                              const std::optional<Expr>& counted, const Value& value) {
  const DType dtype = accumulator_dtype(kind, accumulate);
  const unsigned all = block.row_dims() | kColumns;
  if (is_positional(kind)) {
    const DType compared = held_dtype(value.dtype) == DType::Bool ? DType::Int32 : held_dtype(value.dtype);
    const std::string elements = block.whole(prepared(block, kind, compared, value));
    const Value best = block.named(masked(block, elements, identity(kind, compared), counted), compared, all);
    const Value at =
        block.named(masked(block, positions(block), no_position(block), counted), position_dtype(block), all);
    return {first_position(block, kind, best, at)};
  }
  // What is the same in all rows is reduced once: one row broadcasts wherever several are expected.
  const Value accumulated = prepared(block, kind, accumulate, value);
  const bool is_one_row = accumulated.dims == kColumns && !counted;
  const std::string elements = is_one_row ? accumulated.text : block.whole(accumulated);
  const Value parts = block.named(masked(block, elements, identity(kind, dtype), counted), dtype, all);
  if (kind == ReductionKind::Welford) {
    const Value sum = reduced(block, ReductionKind::Sum, dtype, parts.text);
    const Value mean = block.named(mean_text(block, sum.text, counted, dtype), dtype, block.row_dims());
    const Value off =
        block.named(masked(block, fmt::format("{} - {}", elements, mean.text), "0.0", counted), dtype, all);
    return {mean, reduced(block, ReductionKind::Sum, dtype, fmt::format("{0} * {0}", off.text))};
  }
  const Value result = reduced(block, kind, dtype, parts.text);
  if (kind != ReductionKind::OnlineSoftmax) return {result};
  const Value off = block.named(fmt::format("{} - {}", parts.text, result.text), dtype, all);
  const Value terms = block.named(fmt::format("tl.exp({})", off.text), dtype, all);
  const Value sum = reduced(block, ReductionKind::Sum, dtype, terms.text);
  // Nothing but -inf: the terms are NaN. Their sum is 0, and a softmax 0 / 0, as in eager.
  return {result, block.named(fmt::format("tl.where({} == float(\"-inf\"), 0.0, {})", result.text, sum.text),
                              dtype, block.row_dims())};
}

LoopedReduction::LoopedReduction(BlockPrinter& block, ReductionKind kind, DType accumulate,
                                 std::optional<Expr> counted)
    : block_(block),
      kind_(kind),
      accumulate_(accumulate),
      counted_(std::move(counted)),
      first_(block.new_name("acc")) {
  const DType dtype = accumulator_dtype(kind, accumulate);
  const std::string shape = block.block_shape(block.row_dims() | kColumns);
  const auto accumulator = [&](const std::string& name, const std::string& value, DType type) {
    block.out().line("{} = tl.full({}, {}, {})", name, shape, value, triton_type(type));
  };
  accumulator(first_, identity(kind, dtype), dtype);
  if (is_positional(kind)) {
    second_ = block.new_name("at");
    accumulator(second_, no_position(block), position_dtype(block));
  }
  if (kind == ReductionKind::Welford || kind == ReductionKind::OnlineSoftmax) {
    second_ = block.new_name("acc");
    accumulator(second_, "0.0", dtype);
  }
}

void LoopedReduction::update(const std::string& accumulator, const std::string& value) {
  block_.out().line("{} = {}", accumulator, masked(block_, value, accumulator, counted_));
}

void LoopedReduction::add(const Value& value, const std::string& start) {
  Lines& out = block_.out();
  const std::string x = block_.whole(prepared(block_, kind_, accumulate_, value));
  const bool is_real = is_floating(accumulator_dtype(kind_, accumulate_));
  const auto helper = [&](const char* name) {
    block_.needs.helpers.insert(name);
    return fmt::format("{}({}, {})", name, first_, x);
  };
  switch (kind_) {
    case ReductionKind::Sum:
      return update(first_, fmt::format("{} + {}", first_, x));
    case ReductionKind::Prod:
      return update(first_, fmt::format("{} * {}", first_, x));
    case ReductionKind::Max:
      return update(first_, is_real ? helper("larger") : fmt::format("tl.maximum({}, {})", first_, x));
    case ReductionKind::Min:
      return update(first_, is_real ? helper("smaller") : fmt::format("tl.minimum({}, {})", first_, x));
    case ReductionKind::Any:
      return update(first_, fmt::format("tl.maximum({}, {})", first_, x));
    case ReductionKind::All:
      return update(first_, fmt::format("tl.minimum({}, {})", first_, x));
    case ReductionKind::ArgMax:
    case ReductionKind::ArgMin: {
      // Later elements win only by being better: each part keeps its first.
      const char order = kind_ == ReductionKind::ArgMax ? '>' : '<';
      const std::string wins = block_.new_name("wins");
      std::string text =
          fmt::format("(({0} {1} {2}) | ({3} == {4})", x, order, first_, second_, no_position(block_));
      if (is_real) text += fmt::format(" | (({0} != {0}) & ({1} == {1}))", x, first_);
      text += ")";
      if (const std::string mask = block_.mask(kColumns); !mask.empty()) text += " & " + mask;
      out.line("{} = {}", wins, text);
      out.line("{0} = tl.where({1}, {2}, {0})", second_, wins, positions(block_));
      out.line("{0} = tl.where({1}, {2}, {0})", first_, wins, x);
      return;
    }
    case ReductionKind::Welford: {
      // Each element of the block has seen as many elements as there were steps, since the first ones count.
      const DType dtype = accumulate_;
      const std::string off = block_.new_name("off"), mean = block_.new_name("mean");
      out.line("{} = {} - {}", off, x, first_);
      const std::string steps =
          fmt::format("tl.cast({} // {} + 1, {})", start, block_.columns_name(), triton_type(dtype));
      const std::string one = fmt::format("tl.full([], 1.0, {})", triton_type(dtype));
      out.line("{} = {} + {} * ({})", mean, first_, off, quotient(one, steps, dtype));
      update(second_, fmt::format("{} + {} * ({} - {})", second_, off, x, mean));
      return update(first_, mean);
    }
    case ReductionKind::OnlineSoftmax: {
      // One exponential an element: of the distance between it and the maximum so far.
      const std::string term = block_.new_name("term");
      out.line("{} = tl.exp(-tl.abs({} - {}))", term, x, first_);
      // `x - x` is 0, and a NaN for +inf, as in eager.
      update(second_, fmt::format("tl.where({0} > {1}, {2} * {3} + ({0} - {0} + 1.0), "
                                  "tl.where({0} == float(\"-inf\"), {2}, {2} + {3}))",
                                  x, first_, second_, term));
      return update(first_, helper("larger"));
    }
    case ReductionKind::None:
    case ReductionKind::RunningSum:
    case ReductionKind::RunningProd:
    case ReductionKind::RunningLogSumExp:
      break;
  }
  throw InternalError("a reduction of no kind");
}

std::vector<Value> LoopedReduction::join() {
  const DType dtype = accumulator_dtype(kind_, accumulate_);
  const unsigned all = block_.row_dims() | kColumns;
  if (is_positional(kind_))
    return {first_position(block_, kind_, {first_, dtype, all}, {second_, position_dtype(block_), all})};
  if (kind_ == ReductionKind::Welford) {
    // The parts' means by their numbers of elements, and their squares about the mean of all.
    const std::string block = block_.columns_name();
    const std::string lane = fmt::format("tl.arange(0, {}){}", block, block_.has_rows() ? "[None, :]" : "");
    const ExpressionText count = block_.expression(counted_ ? *counted_ : block_.columns().extent);
    const Value weight = block_.named(
        fmt::format("(({} - {} + {} - 1) // {}).to({})", count.text, lane, block, block, triton_type(dtype)),
        dtype, count.dims | kColumns);
    const Value sum = reduced(block_, ReductionKind::Sum, dtype, fmt::format("{} * {}", first_, weight.text));
    const Value mean = block_.named(mean_text(block_, sum.text, counted_, dtype), dtype, block_.row_dims());
    const Value off = block_.named(fmt::format("{} - {}", first_, mean.text), dtype, all);
    return {mean, reduced(block_, ReductionKind::Sum, dtype,
                          fmt::format("{} + {} * {} * {}", second_, weight.text, off.text, off.text))};
  }
  const Value result = reduced(block_, kind_, dtype, first_);
  if (kind_ != ReductionKind::OnlineSoftmax) return {result};
  const Value scale = block_.named(
      fmt::format("tl.where({0} == float(\"-inf\"), 0.0, tl.exp({0} - {1}))", first_, result.text), dtype,
      all);
  return {result, reduced(block_, ReductionKind::Sum, dtype, fmt::format("{} * {}", second_, scale.text))};
}

}  // namespace oxy::backend::cuda
