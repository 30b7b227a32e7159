#include "backend/nests/size_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace oxy::backend {

namespace {

constexpr int64_t kArgumentVariables = int64_t{1} << 38;  // above sizes, below loop variables
constexpr int64_t kLongestUnrolled = 16;                  // iterations

class Arguments {
 public:
  Arguments(const LoopNest& nest, int64_t lanes) : nest_(nest), lanes_(lanes) {}

  LoopNest make() {
    find_loops();
    for (const Phase& phase : nest_.phases)
      for (const NestInst& inst : phase.insts) {
        if (inst.index == loop::kNoIndex) continue;
        const Expr& e = phase.expressions[inst.index];
        if (inst.op == loop::Op::Index) indices_.insert(e);
        if (nest_.tiled && is_transposed(nest_, phase, inst)) transposed_.insert(e);
      }
    for (const int64_t id : order_) loops_.at(id).renamed = rename(loops_.at(id));
    LoopNest result = nest_;
    rename_loops(result.outer);
    for (Phase& phase : result.phases) {
      rename_loops(phase.loops);
      rename_loops(phase.reduction);
      for_each_expression(phase, [&](Expr& e) { e = renamed(e); });
    }
    for (Array& array : result.arrays)
      if (array.kind == ArrayKind::Scratch) array.scratch_offset = argument_for(array.scratch_offset);
    result.symbols.insert(result.symbols.end(), symbols_.begin(), symbols_.end());
    return result;
  }

 private:
  struct Loop {
    LoopVariable loop;
    bool is_outer = false;
    bool is_lane = false;     // its iterations are lanes
    bool is_row = false;      // of a tiled nest
    bool is_printed = false;  // the kernel's text has its extent
    LoopVariable renamed;
  };

  void find_loops() {
    for (size_t k = 0; k < nest_.outer.size(); ++k) {
      const bool is_last = k + 1 == nest_.outer.size();
      Loop& loop = loop_of(nest_.outer[k]);
      loop.is_outer = true;
      loop.is_row = nest_.tiled && k + 2 == nest_.outer.size();
      loop.is_printed = k > 0 || loop.is_row;
      loop.is_lane = is_last && nest_.axis == VectorAxis::Outer;
    }
    for (const Phase& phase : nest_.phases) {
      for (const LoopVariable& l : phase.loops) loop_of(l).is_printed = true;
      for (const LoopVariable& l : phase.reduction) loop_of(l).is_printed = true;
      if (nest_.axis != VectorAxis::Phase) continue;
      if (lanes_along_reduction(nest_, phase))
        loop_of(phase.reduction.back()).is_lane = true;
      else if (!phase.loops.empty())
        loop_of(phase.loops.back()).is_lane = true;
    }
  }

  Loop& loop_of(const LoopVariable& l) {
    auto [it, is_new] = loops_.try_emplace(l.variable.variable_id(), Loop{.loop = l, .renamed = l});
    if (is_new) order_.push_back(it->first);
    return it->second;
  }

  Expr new_argument(int64_t value) { return new_argument(value, {value, value}); }
  Expr new_argument(int64_t value, sym::Range range) {
    const auto number = static_cast<int64_t>(symbols_.size());
    Expr variable = Expr::variable(fmt::format("k{}", number), kArgumentVariables + number, range);
    symbols_.push_back({variable, value});
    return variable;
  }

  Expr argument_for(const Expr& e) {
    auto constant = e.as_constant();
    return constant && *constant != 0 ? new_argument(*constant) : e;
  }

  bool is_unrolled(const Loop& l) const {
    auto extent = l.loop.extent.as_constant();
    return extent && !l.is_outer && *extent <= kLongestUnrolled;
  }

  // Whether the rows of every tile are as many as the lanes, which the compiler then knows.
  bool has_whole_tiles(const Loop& l) const {
    auto extent = l.loop.extent.as_constant();
    return l.is_row && extent && *extent <= kTileSide && *extent % lanes_ == 0;
  }

  LoopVariable rename(const Loop& l) {
    auto extent = l.loop.extent.as_constant();
    if (!extent || !l.is_printed) return l.loop;
    Expr argument = *extent;
    if (l.is_row) {
      if (*extent > kTileSide) argument = new_argument(*extent, {kTileSide, sym::kMaxInt});
    } else if (l.is_lane) {
      if (nest_.tiled && *extent >= lanes_)
        argument = new_argument(*extent / lanes_) * lanes_ + *extent % lanes_;
    } else if (!is_unrolled(l)) {
      argument = new_argument(*extent);
    }
    return {nest_variable(variable_position(l.loop.variable), argument), argument};
  }

  void rename_loops(std::vector<LoopVariable>& loops) const {
    for (LoopVariable& l : loops) l = loops_.at(l.variable.variable_id()).renamed;
  }

  Expr with_new_variables(const Expr& e) const {
    return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
      auto found = loops_.find(id);
      return found == loops_.end() ? std::nullopt : std::optional(found->second.renamed.variable);
    });
  }

  // The stride of `variable`: equal ones are one argument.
  Expr stride(const Expr& variable, int64_t value) {
    auto [it, is_new] = strides_.try_emplace({variable.variable_id(), value});
    if (is_new) it->second = new_argument(value);
    return it->second;
  }

  Expr renamed_term(const Expr& term, bool is_transposed) {
    if (term.is_constant()) return argument_for(term);
    if (term.kind() != sym::Kind::Product || term.operands().size() != 2) return with_new_variables(term);
    const Expr& variable = term.operands()[1];
    auto coefficient = term.operands()[0].as_constant();
    if (!coefficient || *coefficient == -1 || variable.kind() != sym::Kind::Variable)
      return with_new_variables(term);
    const int64_t id = variable.variable_id();
    if (is_bound_variable(id)) return stride(variable, *coefficient) * variable;
    auto found = loops_.find(id);
    if (found == loops_.end() || (found->second.is_lane && !is_transposed) || has_whole_tiles(found->second))
      return with_new_variables(term);
    return stride(variable, *coefficient) * found->second.renamed.variable;
  }

  bool has_unrolled_variable(const Expr& e) const {
    return std::ranges::any_of(sym::variables(e), [&](const Expr& v) {
      auto found = loops_.find(v.variable_id());
      return found != loops_.end() && is_unrolled(found->second);
    });
  }

  Expr renamed(const Expr& e) {
    auto [it, is_new] = expressions_.try_emplace(e);
    if (!is_new) return it->second;
    if (indices_.contains(e) || has_unrolled_variable(e)) return it->second = with_new_variables(e);
    const bool is_transposed = transposed_.contains(e);
    if (e.kind() != sym::Kind::Sum) return it->second = renamed_term(e, is_transposed);
    for (const Expr& term : e.operands()) it->second = it->second + renamed_term(term, is_transposed);
    return it->second;
  }

  const LoopNest& nest_;
  int64_t lanes_;
  std::map<int64_t, Loop> loops_;                        // by the variable's id
  std::vector<int64_t> order_;                           // ids as they appear
  std::unordered_set<Expr> indices_;                     // values that the body computes with
  std::unordered_set<Expr> transposed_;                  // offsets of loads through tiles
  std::map<std::pair<int64_t, int64_t>, Expr> strides_;  // by variable and number
  std::unordered_map<Expr, Expr> expressions_;
  std::vector<Symbol> symbols_;
};

}  // namespace

LoopNest with_size_arguments(const LoopNest& nest, int64_t lanes) {
  return Arguments(nest, lanes).make();
}

}  // namespace oxy::backend
