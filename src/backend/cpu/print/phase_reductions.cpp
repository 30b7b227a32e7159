// Accumulators of a phase's reductions: declared before its reduction loops, combined in a fixed order after
// them.
#include <algorithm>
#include <limits>
#include <span>

#include "backend/cpu/print/phase_printer.h"
#include "backend/cpu/print/prelude.h"
#include "base/error.h"
#include "sym/hints.h"

namespace oxy::backend::cpu {

namespace {

// How many numbers one float32 accumulator adds before their sum is added in float64. Eager adds 16 numbers,
// then 16 of these sums, and so on: each number is rounded about as often.
constexpr int64_t kChain = 32;
constexpr int64_t kLaneChain = 64;  // of one lane
constexpr int64_t kFewTotals = 16;  // of inner loops: too few to go on in float64
// Elements of a variance's blocks. The shift of the first may be far off.
constexpr int64_t kLaneMoments = 16384;
constexpr int64_t kFirstLaneMoments = 256;
constexpr int64_t kMoments = 256;
constexpr int64_t kFirstMoments = 16;

bool is_arg(ReductionKind kind) {
  return kind == ReductionKind::ArgMax || kind == ReductionKind::ArgMin;
}

bool is_float_sum(const Reduction& r) {
  return r.kind == ReductionKind::Sum && is_floating(r.accumulate);
}

int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

// Of iterations. Equal for a number and for an argument that stands for it.
int64_t usual(const Expr& extent) {
  const sym::Range range = extent.range();
  return std::max<int64_t>(range.low == range.high ? range.low : sym::estimate(extent), 1);
}

// Extrema of floating types leave NaN aside while they run: a vector of its own remembers it.
bool remembers_nan(const Reduction& r) {
  return (r.kind == ReductionKind::Max || r.kind == ReductionKind::Min) && is_floating(r.accumulate);
}

std::string identity(ReductionKind kind, DType dtype, std::set<std::string>& functions) {
  auto splat = [&](const loop::Scalar& value) {
    std::string function = fmt::format("splat_{}", short_name(dtype));
    functions.insert(function);
    return fmt::format("{}({})", function, literal(value, dtype));
  };
  bool lowest = kind == ReductionKind::Max || kind == ReductionKind::ArgMax;
  switch (kind) {
    case ReductionKind::Prod:
      return splat({int64_t{1}});
    case ReductionKind::All:
      return "~i32v{}";
    case ReductionKind::Max:
    case ReductionKind::Min:
    case ReductionKind::ArgMax:
    case ReductionKind::ArgMin: {
      if (dtype == DType::Bool) return lowest ? "i32v{}" : "~i32v{}";
      double infinity = std::numeric_limits<double>::infinity();
      if (is_floating(dtype)) return splat({lowest ? -infinity : infinity});
      if (!is_signed(dtype)) return lowest ? splat({int64_t{0}}) : fmt::format("~{}{{}}", vector_type(dtype));
      int bits = static_cast<int>(8 * item_size(dtype));
      int64_t least = bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
      return splat({lowest ? least : -(least + 1)});
    }
    default:
      return fmt::format("{}{{}}", vector_type(dtype));
  }
}

std::string combined(ReductionKind kind, DType dtype, const std::string& a, const std::string& b,
                     std::set<std::string>& functions) {
  std::string_view type = short_name(dtype);
  switch (kind) {
    case ReductionKind::Sum:
      return fmt::format("({} + {})", a, b);
    case ReductionKind::Prod:
      return fmt::format("({} * {})", a, b);
    case ReductionKind::Any:
      return fmt::format("({} | {})", a, b);
    case ReductionKind::All:
      return fmt::format("({} & {})", a, b);
    case ReductionKind::Max:
    case ReductionKind::Min: {
      std::string function = fmt::format("{}_{}", kind == ReductionKind::Max ? "larger" : "smaller", type);
      functions.insert(function);
      return fmt::format("{}({}, {})", function, a, b);
    }
    default:
      throw InternalError("a reduction that combines in its own way");
  }
}

}  // namespace

bool PhasePrinter::is_blocked() const {
  const int64_t most = phase_.reduction.back().extent.range().high;
  if (has_welford()) return most > first_block();
  return std::ranges::any_of(phase_.reductions, is_float_sum) && most > block();
}

bool PhasePrinter::has_wide_total(const Reduction& r) const {
  return is_blocked() && is_float_sum(r);
}

std::optional<PhasePrinter::Totals> PhasePrinter::totals() const {
  const size_t outer = phase_.reduction.size() - 1;
  int64_t most = 1;
  for (const LoopVariable& l : std::span(phase_.reduction).first(outer))
    most = product(most, l.extent.range().high);
  if (is_blocked() || most <= kChain || std::ranges::none_of(phase_.reductions, is_float_sum))
    return std::nullopt;
  size_t loop = outer - 1;
  int64_t inner = 1;
  for (; loop > 0; --loop) {
    const int64_t here = product(inner, usual(phase_.reduction[loop].extent));
    if (here >= kFewTotals) break;
    inner = here;
  }
  return Totals{loop, kChain / inner};
}

bool PhasePrinter::has_welford() const {
  return std::ranges::any_of(phase_.reductions,
                             [](const Reduction& r) { return r.kind == ReductionKind::Welford; });
}

int64_t PhasePrinter::first_block() const {
  if (has_welford()) return along_reduction_ ? kFirstLaneMoments : kFirstMoments;
  return block();
}

int64_t PhasePrinter::block() const {
  if (has_welford()) return along_reduction_ ? kLaneMoments : kMoments;
  return along_reduction_ ? kLaneChain * unroll_ * scope_.lanes : kChain;
}

std::optional<std::string> PhasePrinter::several_blocks_condition() {
  const Expr& extent = phase_.reduction.back().extent;
  if (!is_blocked() || has_welford() || phase_.reduction.size() > 1 || extent.is_constant())
    return std::nullopt;
  return fmt::format("({} > {})", text(extent), block());
}

std::string PhasePrinter::block_loop(const std::string& end) const {
  if (first_block() == block())
    return fmt::format("for (int64_t block = 0; block < {}; block += {})", end, block());
  return fmt::format("for (int64_t block = 0, size = {}; block < {}; block += size, size = {})",
                     first_block(), end, block());
}

std::string PhasePrinter::block_end(const std::string& end) const {
  return fmt::format("least(block + {}, {})", first_block() == block() ? fmt::to_string(block()) : "size",
                     end);
}

void PhasePrinter::declare_accumulators() {
  Writer& out = scope_.out;
  unroll_ = 1;
  bool simple = std::ranges::none_of(phase_.reductions, [](const Reduction& r) { return is_arg(r.kind); });
  if (along_reduction_ && simple) {
    bool heavy = false;
    size_t work = 0;
    for (const NestInst& inst : phase_.insts) {
      work += inst.op != loop::Op::Constant;
      heavy = heavy || (inst.op >= loop::Op::Exp && inst.op <= loop::Op::Erfc);
    }
    unroll_ = heavy ? 1 : work <= 6 ? 4 : work <= 14 ? 2 : 1;
  }
  bool totals = is_blocked() || phase_.reduction.size() > 1;
  for (const Reduction& r : phase_.reductions) {
    std::string name = fmt::format("a{}", scope_.next_name++);
    accumulators_.push_back(name);
    std::string_view type = vector_type(r.accumulate);
    if (is_arg(r.kind)) {
      out.line("{} {} = {};", type, name, identity(r.kind, r.accumulate, scope_.functions));
      if (along_reduction_) scope_.functions.insert("iota");
      out.line("i64v {}_at = {};", name, along_reduction_ ? "iota()" : "{}");
      continue;
    }
    check(!r.counted, "a reduction of which not all elements count");
    if (r.kind == ReductionKind::Welford) {
      out.line("f64v {0}_count = {{}}, {0}_mean = {{}}, {0}_squares = {{}};", name);
      out.line("{} {}_shift = {{}};", type, name);
      out.line("{0} {1}_seen[{2}] = {{}}, {1}_sum[{2}] = {{}}, {1}_powers[{2}] = {{}};", type, name, unroll_);
      out.line("bool {}_started = false;", name);
      continue;
    }
    check(r.kind != ReductionKind::OnlineSoftmax && r.kind != ReductionKind::None,
          "a reduction of unknown kind");
    std::string start = identity(r.kind, r.accumulate, scope_.functions);
    std::string all = start;
    for (int k = 1; k < unroll_; ++k) all += ", " + start;
    out.line("{} {}[{}] = {{{}}};", type, name, unroll_, all);
    if (remembers_nan(r)) out.line("{} {}_nan = {{}};", type, name);
    if (totals && r.kind == ReductionKind::Sum)
      out.line("{} {}_total = {{}};", has_wide_total(r) ? "f64v" : type, name);
    if (this->totals() && is_float_sum(r)) out.line("f64v {}_totals = {{}};", name);
  }
}

std::string PhasePrinter::flat_position() {
  Expr position = 0;
  for (const LoopVariable& l : phase_.reduction) position = position * l.extent + l.variable;
  return text(position);
}

void PhasePrinter::accumulate() {
  Writer& out = scope_.out;
  for (size_t i = 0; i < phase_.reductions.size(); ++i) {
    const Reduction& r = phase_.reductions[i];
    const std::string& name = accumulators_[i];
    OpContext c = context(true);
    Operand operand = this->operand(r.value);
    if (operand.dtype != r.accumulate) {
      bool vector = operand.vector;
      operand = {cast_text(operand, r.accumulate, c), r.accumulate, vector, nullptr};
    }
    std::string value = as_vector(operand, c);
    std::string type(short_name(r.accumulate));
    auto masked = [&](const std::string& v, const std::string& otherwise, const std::string& suffix) {
      if (!along_reduction_) return v;
      scope_.functions.insert("first_lanes_" + suffix);
      return fmt::format("first_lanes_{}({}, {}, n)", suffix, v, otherwise);
    };
    if (is_arg(r.kind)) {
      scope_.functions.insert({"splat_i64", "select_i64", "select_" + type});
      std::string position = fmt::format("splat_i64({})", flat_position());
      if (along_reduction_) position += " + iota()";
      std::string v = fmt::format("v{}", scope_.next_name++);
      out.line("const {} {} = {};", vector_type(r.accumulate), v,
               masked(value, identity(r.kind, r.accumulate, scope_.functions), type));
      std::string better = fmt::format("({} {} {})", v, r.kind == ReductionKind::ArgMax ? ">" : "<", name);
      if (is_floating(r.accumulate)) better += fmt::format(" | (({0} != {0}) & ({1} == {1}))", v, name);
      if (item_size(r.accumulate) != 4 && r.accumulate != DType::Bool)
        better = fmt::format("__builtin_convertvector({}, i32v)", better);
      if (r.accumulate == DType::Bool)
        better = r.kind == ReductionKind::ArgMax ? fmt::format("{} & ~{}", v, name)
                                                 : fmt::format("~{} & {}", v, name);
      out.line("const i32v {}_better = {};", v, better);
      out.line("{0}_at = select_i64({1}_better, {2}, {0}_at);", name, v, position);
      out.line("{0} = select_{1}({2}_better, {2}, {0});", name, type, v);
      continue;
    }
    if (r.kind == ReductionKind::Welford) {
      std::string one = fmt::format("splat_{}({})", type, literal({1.0}, r.accumulate));
      scope_.functions.insert("splat_" + type);
      scope_.functions.insert("maximum_" + type);
      std::string v = fmt::format("v{}", scope_.next_name++);
      std::string_view vector = vector_type(r.accumulate);
      std::string zero = fmt::format("{}{{}}", vector), k = along_reduction_ ? "k" : "0";
      out.line("const {} {} = {};", vector, v, value);
      out.line("if (!{0}_started) {0}_shift = {1}, {0}_started = true;", name, v);
      out.line("const {} {}_off = {};", vector, v,
               masked(fmt::format("({} - {}_shift)", v, name), zero, type));
      out.line("{}_seen[{}] += {};", name, k, masked(one, zero, type));
      out.line("{}_sum[{}] += {}_off;", name, k, v);
      out.line("{0}_powers[{1}] += {2}_off * {2}_off;", name, k, v);
      continue;
    }
    std::string element = fmt::format("{}[{}]", name, along_reduction_ ? "k" : "0");
    value = masked(value, identity(r.kind, r.accumulate, scope_.functions), type);
    if (remembers_nan(r)) {
      std::string v = fmt::format("v{}", scope_.next_name++);
      out.line("const {} {} = {};", vector_type(r.accumulate), v, value);
      out.line("{0}_nan = {1} != {1} ? {1} : {0}_nan;", name, v);
      out.line("{} = {};", element, combined(r.kind, r.accumulate, v, element, scope_.functions));
      continue;
    }
    out.line("{} = {};", element, combined(r.kind, r.accumulate, element, value, scope_.functions));
  }
}

// Mean and squared deviations of a block, which its sums of offsets from a shift give, join those so far
// (Chan, Golub, LeVeque 1979), in float64 as eager has them. The shift is the mean so far, at first the first
// element: near enough to the block's own mean for the difference of its sums to keep its digits.
void PhasePrinter::flush_welford(size_t i) {
  Writer& out = scope_.out;
  const std::string& name = accumulators_[i];
  const std::string_view vector = vector_type(phase_.reductions[i].accumulate);
  scope_.functions.insert({"splat_f64", "maximum_f64"});
  const std::string b = fmt::format("b{}", scope_.next_name++);
  const auto all = [&](std::string_view what) {
    std::string sum = fmt::format("{}_{}[0]", name, what);
    for (int k = 1; k < unroll_; ++k) sum += fmt::format(" + {}_{}[{}]", name, what, k);
    return fmt::format("__builtin_convertvector({}, f64v)", sum);
  };
  out.line("const f64v {0}_n = {1}, {0}_sum = {2}, {0}_count = {3}_count + {0}_n;", b, all("seen"),
           all("sum"), name);
  out.line("const f64v {0}_off = {0}_sum / maximum_f64({0}_n, splat_f64(1.0));", b);
  out.line("const f64v {0}_delta = __builtin_convertvector({1}_shift, f64v) + {0}_off - {1}_mean;", b, name);
  out.line("const f64v {0}_share = {0}_n / maximum_f64({0}_count, splat_f64(1.0));", b);
  out.line("{0}_squares += maximum_f64({1} - {2}_sum * {2}_off, f64v{{}});", name, all("powers"), b);
  out.line("{0}_squares += {1}_delta * {1}_delta * ({0}_count * {1}_share);", name, b);
  out.line("{0}_mean += {1}_delta * {1}_share;", name, b);
  out.line("{0}_count = {1}_count, {0}_shift = __builtin_convertvector({0}_mean, {2});", name, b, vector);
  for (int k = 0; k < unroll_; ++k)
    out.line("{0}_seen[{1}] = {0}_sum[{1}] = {0}_powers[{1}] = {2}{{}};", name, k, vector);
}

void PhasePrinter::flush_accumulators() {
  if (!is_blocked() && phase_.reduction.size() == 1) return;
  // The sums of a single block are the results.
  const std::optional<std::string> several = several_blocks_condition();
  if (several) scope_.out.open("if " + *several);
  for (size_t i = 0; i < phase_.reductions.size(); ++i) {
    if (phase_.reductions[i].kind == ReductionKind::Welford) flush_welford(i);
    if (phase_.reductions[i].kind != ReductionKind::Sum) continue;
    const std::string& name = accumulators_[i];
    std::string sum = name + "[0]";
    if (unroll_ == 2) sum = fmt::format("{0}[0] + {0}[1]", name);
    if (unroll_ == 4) sum = fmt::format("({0}[0] + {0}[1]) + ({0}[2] + {0}[3])", name);
    if (has_wide_total(phase_.reductions[i])) sum = fmt::format("__builtin_convertvector({}, f64v)", sum);
    scope_.out.line("{}_total += {};", name, sum);
    std::string zero;
    for (int k = 0; k < unroll_; ++k) zero += fmt::format("{}{}[{}] = ", "", name, k);
    scope_.out.line("{}{}{{}};", zero, vector_type(phase_.reductions[i].accumulate));
  }
  if (several) scope_.out.close();
}

void PhasePrinter::flush_totals() {
  for (size_t i = 0; i < phase_.reductions.size(); ++i)
    if (is_float_sum(phase_.reductions[i]))
      scope_.out.line("{0}_totals += __builtin_convertvector({0}_total, f64v), {0}_total = {1}{{}};",
                      accumulators_[i], vector_type(phase_.reductions[i].accumulate));
}

void PhasePrinter::reduce_lanes(size_t i) {
  Writer& out = scope_.out;
  const Reduction& r = phase_.reductions[i];
  const std::string& name = accumulators_[i];
  std::string_view scalar = scalar_type(r.accumulate);
  if (is_arg(r.kind)) {
    std::string_view order = r.kind == ReductionKind::ArgMax ? ">" : "<";
    out.line("int {}_lane = 0;", name);
    out.open("for (int l = 1; l < W; ++l)");
    out.line("const {0} v = {1}[l], best = {1}[{1}_lane];", r.accumulate == DType::Bool ? "int32_t" : scalar,
             name);
    bool reversed = r.accumulate == DType::Bool;  // true is -1 in a lane
    if (reversed) order = order == ">" ? "<" : ">";
    std::string better = fmt::format("v {} best", order);
    std::string equal = "v == best";
    if (is_floating(r.accumulate)) {
      better += " || (v != v && best == best)";
      equal += " || (v != v && best != best)";
    }
    out.line("if (({0}) || (({1}) && {2}_at[l] < {2}_at[{2}_lane])) {2}_lane = l;", better, equal, name);
    out.close();
    results_.push_back({{fmt::format("{0}_at[{0}_lane]", name), DType::Int64, false, nullptr}});
    return;
  }
  if (r.kind == ReductionKind::Welford) {
    out.line("double {0}_n = {0}_count[0], {0}_m = {0}_mean[0], {0}_s = {0}_squares[0];", name);
    out.open("for (int l = 1; l < W; ++l)");
    out.line("if ({}_count[l] == 0) continue;", name);
    out.line("const double off = {0}_mean[l] - {0}_m, n = {0}_n + {0}_count[l];", name);
    out.line("{0}_m += off * ({0}_count[l] / n);", name);
    out.line("{0}_s += {0}_squares[l] + off * off * ({0}_n * ({0}_count[l] / n));", name);
    out.line("{}_n = n;", name);
    out.close();
    results_.push_back({{fmt::format("({}){}_m", scalar, name), r.accumulate, false, nullptr},
                        {fmt::format("({}){}_s", scalar, name), r.accumulate, false, nullptr}});
    return;
  }
  throw InternalError("lanes of this reduction are combined elsewhere");
}

void PhasePrinter::print_results() {
  for (size_t i = 0; i < phase_.reductions.size(); ++i) {
    const Reduction& r = phase_.reductions[i];
    const std::string& name = accumulators_[i];
    bool special = is_arg(r.kind) || r.kind == ReductionKind::Welford;
    if (r.kind == ReductionKind::Welford && !is_blocked() && phase_.reduction.size() == 1) flush_welford(i);
    if (special && along_reduction_) {
      reduce_lanes(i);
    } else if (is_arg(r.kind)) {
      results_.push_back({{name + "_at", DType::Int64, true, nullptr}});
    } else if (special) {
      const auto narrow = [&](std::string_view what) {
        return Operand{
            fmt::format("__builtin_convertvector({}_{}, {})", name, what, vector_type(r.accumulate)),
            r.accumulate, true, nullptr};
      };
      results_.push_back({narrow("mean"), narrow("squares")});
    } else {
      std::string all = name + "[0]";
      auto both = [&](const std::string& a, const std::string& b) {
        return combined(r.kind, r.accumulate, a, b, scope_.functions);
      };
      if (unroll_ == 2) all = both(name + "[0]", name + "[1]");
      if (unroll_ == 4) all = both(both(name + "[0]", name + "[1]"), both(name + "[2]", name + "[3]"));
      const std::string of_one_block = all;
      if (r.kind == ReductionKind::Sum && (is_blocked() || phase_.reduction.size() > 1))
        all = name + "_total";
      if (totals() && is_float_sum(r)) all = name + "_totals";
      if (has_wide_total(r) || (totals() && is_float_sum(r)))
        all = fmt::format("__builtin_convertvector({}, {})", all, vector_type(r.accumulate));
      if (const auto several = several_blocks_condition(); several && r.kind == ReductionKind::Sum)
        all = fmt::format("({} ? {} : {})", *several, all, of_one_block);
      bool logical = r.accumulate == DType::Bool;
      DType dtype = r.accumulate;
      if (along_reduction_) {
        std::string function;
        switch (r.kind) {
          case ReductionKind::Any:
            function = "reduce_any";
            break;
          case ReductionKind::All:
            function = "reduce_all";
            break;
          case ReductionKind::Max:
            function = logical ? "reduce_any" : fmt::format("reduce_larger_{}", short_name(dtype));
            break;
          case ReductionKind::Min:
            function = logical ? "reduce_all" : fmt::format("reduce_smaller_{}", short_name(dtype));
            break;
          case ReductionKind::Prod:
            function = fmt::format("reduce_prod_{}", short_name(dtype));
            break;
          default:
            function = fmt::format("reduce_sum_{}", short_name(dtype));
            break;
        }
        scope_.functions.insert(function);
        all = fmt::format("{}({})", function, all);
      }
      if (remembers_nan(r) && along_reduction_) {  // the lanes are zero or NaN
        scope_.functions.insert(fmt::format("reduce_sum_{}", short_name(dtype)));
        scope_.out.line("const {0} {1}_any_nan = reduce_sum_{2}({1}_nan);", scalar_type(dtype), name,
                        short_name(dtype));
        all = fmt::format("{0}_any_nan != {0}_any_nan ? {0}_any_nan : {1}", name, all);
      } else if (remembers_nan(r)) {
        all = fmt::format("{0}_nan != {0}_nan ? {0}_nan : {1}", name, all);
      }
      std::string value = fmt::format("{}_all", name);
      scope_.out.line("const {} {} = {};", along_reduction_ ? scalar_type(dtype) : vector_type(dtype), value,
                      all);
      results_.push_back({{value, dtype, !along_reduction_, nullptr}});
    }
    for (const ResultStore& s : r.stores)
      store(s.array, s.offset, results_.back().at(static_cast<size_t>(s.result)), loop::StoreMode::Set);
  }
}

}  // namespace oxy::backend::cpu
