// The loops of a phase and what they hold: plain loops, loops whose iterations are lanes, reductions.
#include "backend/cpu/print/expression_text.h"
#include "backend/cpu/print/phase_printer.h"

namespace oxy::backend::cpu {

void PhasePrinter::print_loop(const LoopVariable& l, const std::string& name, int depth) {
  scope_.out.open(fmt::format("for (int64_t {0} = 0; {0} < {1}; ++{0})", name, text(l.extent)));
  scope_.variables[l.variable.variable_id()] = name;
  print_insts(depth);
}

void PhasePrinter::print() {
  print_insts(0);
  print_inner(0);
}

void PhasePrinter::print_inner(size_t loop) {
  if (loop < phase_.loops.size()) {
    const LoopVariable& l = phase_.loops[loop];
    std::string name = fmt::format("i{}", loop);
    int depth = static_cast<int>(loop) + 1;
    if (l.variable.variable_id() == scope_.lane_variable) return print_lane_loop(l, name, depth);
    print_loop(l, name, depth);
    print_inner(loop + 1);
    scope_.out.close();
    return;
  }
  if (phase_.reduction.empty()) return print_stores();
  declare_accumulators();
  print_reduction_loops(0);
  print_results();
}

void PhasePrinter::print_lane_loop(const LoopVariable& l, const std::string& name, int depth) {
  Writer& out = scope_.out;
  auto extent = l.extent.as_constant();
  int64_t lanes = scope_.lanes;
  scope_.functions.insert("full");
  std::string step = fmt::format("step{}", scope_.next_name++);
  out.open(fmt::format("auto {} = [&](int64_t {}, auto n) __attribute__((always_inline))", step, name));
  out.line("(void)n;");
  scope_.variables[l.variable.variable_id()] = name;
  print_insts(depth);
  print_inner(static_cast<size_t>(depth));
  out.close("};");
  scope_.variables.erase(l.variable.variable_id());
  if (extent && *extent < lanes) {
    if (*extent > 0) out.line("{}(0, int64_t({}));", step, *extent);
    return;
  }
  std::string end = text(l.extent);
  auto rest = sym::mod(l.extent, lanes).as_constant();
  if (!rest) {
    out.line("const int64_t {}_whole = {} & -W;", step, end);
    out.line("for (int64_t at = 0; at < {0}_whole; at += W) {0}(at, Full{{}});", step);
    out.line("if ({0}_whole < {1}) {0}({0}_whole, {1} - {0}_whole);", step, end);
    return;
  }
  out.line("int64_t {} = 0;", step + "_at");
  out.line("for (; {0}_at + W <= {1}; {0}_at += W) {0}({0}_at, Full{{}});", step, end);
  if (*rest != 0) out.line("{0}({0}_at, int64_t({1}));", step, *rest);
}

void PhasePrinter::print_reduction_loops(size_t loop) {
  const LoopVariable& l = phase_.reduction[loop];
  std::string name = fmt::format("r{}", loop);
  int depth = static_cast<int>(phase_.loops.size() + loop) + 1;
  if (l.variable.variable_id() == scope_.lane_variable) return print_lane_reduction(l, name, depth);
  bool innermost = loop + 1 == phase_.reduction.size();
  if (innermost && is_blocked()) {
    Writer& out = scope_.out;
    scope_.functions.insert("least");
    std::string end = text(l.extent);
    out.open(block_loop(end));
    out.open(fmt::format("for (int64_t {0} = block, end = {1}; {0} < end; ++{0})", name, block_end(end)));
    scope_.variables[l.variable.variable_id()] = name;
    print_insts(depth);
    print_stores();
    accumulate();
    out.close();
    flush_accumulators();
    out.close();
    return;
  }
  if (const auto totals = this->totals(); totals && totals->loop == loop) {
    Writer& out = scope_.out;
    scope_.functions.insert("least");
    const std::string end = text(l.extent);
    out.open(fmt::format("for (int64_t {0}_block = 0; {0}_block < {1}; {0}_block += {2})", name, end,
                         totals->block));
    out.open(fmt::format(
        "for (int64_t {0} = {0}_block, {0}_end = least({0}_block + {1}, {2}); {0} < {0}_end; ++{0})", name,
        totals->block, end));
    scope_.variables[l.variable.variable_id()] = name;
    print_insts(depth);
    print_reduction_loops(loop + 1);
    out.close();
    flush_totals();
    out.close();
    return;
  }
  print_loop(l, name, depth);
  if (innermost) {
    print_stores();
    accumulate();
  } else {
    print_reduction_loops(loop + 1);
  }
  scope_.out.close();
  if (innermost) flush_accumulators();
}

void PhasePrinter::print_lane_reduction(const LoopVariable& l, const std::string& name, int depth) {
  Writer& out = scope_.out;
  auto extent = l.extent.as_constant();
  int64_t lanes = scope_.lanes;
  scope_.functions.insert("full");
  std::string step = fmt::format("step{}", scope_.next_name++);
  out.open(
      fmt::format("auto {} = [&](int64_t {}, auto n, int k) __attribute__((always_inline))", step, name));
  out.line("(void)n, (void)k;");
  scope_.variables[l.variable.variable_id()] = name;
  print_insts(depth);
  print_stores();
  accumulate();
  out.close("};");
  scope_.variables.erase(l.variable.variable_id());
  bool blocked = is_blocked();
  const std::string all = text(l.extent);
  // Where the usual sizes of a kernel make one block, the code for them has no loop over blocks.
  const std::optional<std::string> several_blocks = several_blocks_condition();
  std::string at = step + "_at";
  if (blocked) scope_.functions.insert("least");
  if (several_blocks) {
    out.open(
        fmt::format("auto {}_block = [&](int64_t block, int64_t end) __attribute__((always_inline))", step));
  } else if (blocked) {
    out.open(block_loop(all));
    out.line("const int64_t end = {};", block_end(all));
  }
  const std::string end = blocked ? "end" : all;
  bool is_short = extent && *extent < lanes;
  if (!is_short) {
    out.line("int64_t {} = {};", at, blocked ? "block" : "0");
    bool whole = unroll_ > 1 && l.extent.range().high >= unroll_ * lanes;
    if (whole) {
      out.open(fmt::format("for (; {0} + {1} * W <= {2}; {0} += {1} * W)", at, unroll_, end));
      for (int k = 0; k < unroll_; ++k) out.line("{}({} + {} * W, Full{{}}, {});", step, at, k, k);
      out.close();
    }
    int64_t after = extent && whole && !blocked ? *extent % (unroll_ * lanes) : -1;
    auto rest = sym::mod(l.extent, lanes).as_constant();
    if (rest && (blocked || !extent || !whole || after >= lanes))
      out.line("for (; {0} + W <= {1}; {0} += W) {2}({0}, Full{{}}, 0);", at, end, step);
    if (!rest) {
      // Blocks begin at whole steps.
      out.line("const int64_t {}_whole = {} & -W;", step, end);
      out.line("for (; {0} < {1}_whole; {0} += W) {1}({0}, Full{{}}, 0);", at, step);
      out.line("if ({0}_whole < {1}) {0}({0}_whole, {1} - {0}_whole, 0);", step, end);
    } else if (*rest != 0) {
      out.line("{0}{1}({2}, int64_t({3}), 0);", blocked ? fmt::format("if ({} < end) ", at) : "", step, at,
               *rest);
    }
  } else if (*extent > 0) {
    out.line("{}(0, int64_t({}), 0);", step, *extent);
  }
  flush_accumulators();
  if (several_blocks) {
    out.close("};");
    out.line("if (__builtin_constant_p({0}) && !{1}) {2}_block(0, {0});", all, *several_blocks, step);
    out.line("else {} {}_block(block, {});", block_loop(all), step, block_end(all));
  } else if (blocked) {
    out.close();
  }
}

}  // namespace oxy::backend::cpu
