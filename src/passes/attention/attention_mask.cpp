#include "passes/attention/attention_mask.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"

namespace oxy::passes {
namespace {

using Kind = ScoreStep::Kind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A number that scores, added to it, do not change.
constexpr double kAbsorbs = -1e30;
// A number to which no score comes near. The program may take it for -inf, but for rows that are hidden as a
// whole.
constexpr double kHides = -1e8;

double lowest(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return std::numeric_limits<double>::lowest();
    case DType::BFloat16:
      return -0x1.FEp127;
    case DType::Float32:
      return std::numeric_limits<float>::lowest();
    default:
      throw Unsupported("a mask of another type");
  }
}

// What stands in the mask where the program fills in `number`. A score is added to it there.
double filled_number(double number, DType scores, DType mask, bool is_last) {
  if (number == -kInfinity) return number;
  if (mask != DType::Float16 && number <= kAbsorbs) return std::max(number, lowest(mask));
  const bool is_lowest_half = scores == DType::Float16 && number == -65504;
  if ((number <= kHides || is_lowest_half) && is_last) return lowest(mask);
  throw Unsupported("a number that does not hide scores");
}

class MaskBuilder {
 public:
  MaskBuilder(const Rewriter& rewriter, ops::Composer& composer, const WrittenAttention& attention,
              bool may_be_float)
      : rewriter_(rewriter), composer_(composer), attention_(attention) {
    const DType type = rewriter.source().meta(attention.values.tensor).dtype;
    const bool is_half = type == DType::Float16 || type == DType::BFloat16;
    types_ = {type, is_half && may_be_float ? DType::Float32 : type};
  }

  std::optional<AttentionMask> build() {
    const auto& steps = attention_.steps;
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      const bool is_last =
          std::all_of(step + 1, steps.end(), [](const ScoreStep& s) { return s.kind == Kind::Fill; });
      switch (step->kind) {
        case Kind::Scale:
          if (mask_) mask_ = composer_.call(op::mul(), {widened(*mask_), step->number});
          break;
        case Kind::Add:
          add(*step);
          break;
        case Kind::Fill:
          fill(*step, is_last);
          break;
      }
    }
    if (!mask_) return std::nullopt;
    const DType dtype = composer_.meta(*mask_).dtype;
    if (dtype != types_.first && dtype != types_.second) mask_ = widened(*mask_);
    const TensorMeta& meta = composer_.meta(*mask_);
    if (meta.sizes.back() != Expr(1) && meta.strides.back() != Expr(1))
      mask_ = composer_.call(op::clone(), {*mask_, MemoryFormat::Contiguous});
    return AttentionMask{*mask_, may_hide_rows_};
  }

 private:
  ValueRef widened(ValueRef mask) { return composer_.convert(mask, types_.second); }

  // The step's tensor with the four dimensions of scores.
  ValueRef operand(const ScoreStep& step) {
    const ValueRef tensor{rewriter_.map(step.tensor)};
    const std::vector<Expr> sizes = composer_.meta(tensor).sizes;
    if (sizes.size() > step.placement.size()) throw Unsupported("a mask of more dimensions");
    Placement placement(step.placement.end() - static_cast<std::ptrdiff_t>(sizes.size()),
                        step.placement.end());
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == Expr(1)) {
        placement[d].clear();
        continue;
      }
      Expr size = 1;
      for (const size_t axis : placement[d]) size = size * attention_.axes.size(axis);
      if (size != sizes[d]) throw Unsupported("a mask of another shape");
    }
    return arranged(composer_, attention_.axes, tensor, placement, {kBatches, kHeads, kRows, kKeys});
  }

  void add(const ScoreStep& step) {
    ValueRef term = operand(step);
    if (!is_floating(composer_.meta(term).dtype)) throw Unsupported("a mask of integers");
    may_hide_rows_ = true;
    if (step.number != 1) term = composer_.call(op::mul(), {widened(term), step.number});
    mask_ = mask_ ? composer_.call(op::add(), {widened(*mask_), widened(term)}) : term;
  }

  void fill(const ScoreStep& step, bool is_last) {
    const DType scores = rewriter_.source().meta(step.scores).dtype;
    const double number = filled_number(step.number, scores, types_.second, is_last);
    may_hide_rows_ = may_hide_rows_ || number == -kInfinity || !is_last;
    const ValueRef condition = operand(step);
    const ValueRef base = mask_
                              ? widened(*mask_)
                              : composer_.call(op::full(), {std::vector<Expr>(4, Expr(1)), 0.0, types_.second,
                                                            Argument{}, composer_.meta(condition).device});
    mask_ = composer_.call(op::where(), step.where ? std::vector<Argument>{condition, number, base}
                                                   : std::vector<Argument>{condition, base, number});
  }

  const Rewriter& rewriter_;
  ops::Composer& composer_;
  const WrittenAttention& attention_;
  std::pair<DType, DType> types_;  // of a tensor of the program's, and of one that is computed
  std::optional<ValueRef> mask_;
  bool may_hide_rows_ = false;
};

}  // namespace

std::optional<AttentionMask> attention_mask(const Rewriter& rewriter, ops::Composer& composer,
                                            const WrittenAttention& attention, bool may_be_float) {
  return MaskBuilder(rewriter, composer, attention, may_be_float).build();
}

// One for each hidden key, and less than minus their number for each other. A sum of nothing is 0.
ValueRef hidden_rows(ops::Composer& composer, ValueRef mask) {
  const ValueRef is_hidden = composer.call(op::equal_to_number(), {mask, -kInfinity});
  const ValueRef one = composer.call(
      op::full(), {std::vector<Expr>{}, 1.0, DType::Float32, Argument{}, composer.meta(mask).device});
  const ValueRef counted = composer.call(op::where(), {is_hidden, one, -1e30});
  const ValueRef sum = composer.call(op::sum_over(), {counted, std::vector<Expr>{Expr(-1)}, true});
  return composer.call(op::greater_than_number(), {sum, 0.0});
}

}  // namespace oxy::passes
