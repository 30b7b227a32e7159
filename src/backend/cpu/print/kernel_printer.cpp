#include "backend/cpu/print/kernel_printer.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "backend/cpu/print/expression_text.h"
#include "backend/cpu/print/phase_printer.h"
#include "backend/cpu/print/prelude.h"
#include "base/error.h"
#include "base/hash.h"
#include "sym/hints.h"

namespace oxy::backend::cpu {

namespace {

constexpr int kMostColumnVectors = 8;
constexpr int64_t kWidestVector = 64;  // bytes
// With vectors of that width: steps over all lanes, and iterations. With narrower ones they are as many more.
constexpr int64_t kShortLoop = 4;
constexpr int64_t kShortReduction = 8;
constexpr size_t kMostUsual = 2;  // sizes in the extent of a loop
constexpr size_t kSmallBody = 40;
constexpr std::string_view kNamePlaceholder = "oxy_kernel_name";

// Whether the nest does little more than reduce columns.
bool reduces_columns(const LoopNest& nest) {
  if (nest.axis != VectorAxis::Outer) return false;
  bool reduces = false;
  size_t work = 0;
  const Expr& lane = nest.outer.back().variable;
  for (const Phase& phase : nest.phases) {
    for (const Reduction& r : phase.reductions) {
      reduces = true;
      bool simple =
          r.kind == ReductionKind::Sum || r.kind == ReductionKind::Max || r.kind == ReductionKind::Min;
      if (!simple || r.accumulate != DType::Float32) return false;
    }
    for (const NestInst& inst : phase.insts) {
      work += inst.op != loop::Op::Constant;
      if (inst.op == loop::Op::BindIndex || (inst.op >= loop::Op::Exp && inst.op <= loop::Op::Erfc))
        return false;
      if (inst.op != loop::Op::Load) continue;
      auto stride = stride_of(phase.expressions[inst.index], lane);
      if (!stride || !(*stride == Expr(0) || *stride == Expr(1)) || inst.operands[0] != loop::kNoInst)
        return false;
    }
  }
  for (const Array& array : nest.arrays)
    if (array.kind != ArrayKind::Dead && array.dtype != DType::Float32) return false;
  return reduces && work <= 12;
}

// Reductions of columns read a few lines of every row: wide steps keep more of them in flight.
int vectors_a_step(const LoopNest& nest, int lanes) {
  if (!reduces_columns(nest)) return 1;
  int64_t extent = backend::estimate(nest.outer.back().extent);
  for (int vectors = kMostColumnVectors; vectors > 1; vectors /= 2)
    if (extent % (vectors * lanes) == 0 || extent >= 16 * vectors * lanes) return vectors;
  return 1;
}

class KernelPrinter {
 public:
  KernelPrinter(const LoopNest& nest, const Target& target)
      : nest_(nest),
        target_(target),
        scope_{.nest = nest, .out = out_, .functions = functions_, .lanes = lane_count(nest, target)} {}

  KernelText print() {
    usual_ = usual_sizes();
    if (usual_.empty()) {
      open_entry();
      for (size_t k = 0; k < nest_.symbols.size(); ++k)
        out_.line("[[maybe_unused]] const int64_t n{0} = sizes[{0}];", k);
    } else {
      std::string sizes;
      for (size_t k = 0; k < nest_.symbols.size(); ++k)
        sizes += fmt::format("[[maybe_unused]] const int64_t n{}, ", k);
      out_.line("template <bool is_usual>");
      out_.open(
          fmt::format("static inline __attribute__((always_inline)) int run(void* const* buffers, {}void* "
                      "scratch, int64_t begin, int64_t end)",
                      sizes));
    }
    for (size_t k = 0; k < nest_.symbols.size(); ++k)
      scope_.variables[nest_.symbols[k].variable.variable_id()] = fmt::format("n{}", k);
    print_arrays();
    out_.line("int error = 0, ignored = 0;");
    out_.line("(void)buffers, {}(void)scratch, (void)ignored;", usual_.empty() ? "(void)sizes, " : "");
    if (nest_.tiled)
      print_tiles();
    else if (nest_.axis == VectorAxis::Outer)
      print_outer_lanes();
    else
      print_rows();
    out_.line("return error;");
    out_.close();
    if (!usual_.empty()) print_entry();

    KernelText text;
    std::string body = prelude(functions_, scope_.lanes, target_) + "\n" + out_.text();
    text.name = "oxy_" + to_hex(hash128(body)).substr(0, 16);
    body.replace(body.find(kNamePlaceholder), kNamePlaceholder.size(), text.name);
    text.source = comment() + body;
    text.parameters = std::move(parameters_);
    return text;
  }

 private:
  // Not part of the name: the same kernel may come from other operators.
  std::string comment() const {
    constexpr size_t kLongest = 110;
    if (nest_.comment.empty()) return "";
    bool is_long = nest_.comment.size() > kLongest;
    return "// " + nest_.comment.substr(0, kLongest) + (is_long ? " ...\n" : "\n");
  }

  void open_entry() {
    out_.open(fmt::format(
        "extern \"C\" int {}(void* const* buffers, const int64_t* sizes, void* scratch, int64_t begin, "
        "int64_t end)",
        kNamePlaceholder));
  }

  // The sizes at hand in extents of short loops, by the place of the symbol: such a loop costs up to several
  // times as much where its extent is no number, so that the kernel is compiled twice, once for these sizes.
  // That pays for loops over lanes whose last step is partial, or whose vectors are not the widest, and in
  // kernels of one small phase, which take little time to compile, for others.
  std::map<size_t, int64_t> usual_sizes() const {
    std::map<size_t, int64_t> usual;
    // That make one of the widest.
    const int64_t vectors = std::max<int64_t>(kWidestVector / target_.vector_bytes, 1);
    const auto note = [&](const Expr& extent, int64_t most) {
      const std::vector<Expr> sizes = extent.is_constant() ? std::vector<Expr>{} : sym::variables(extent);
      if (sizes.size() > kMostUsual || sym::estimate(extent) > most) return;
      for (size_t k = 0; k < nest_.symbols.size(); ++k)
        if (std::ranges::find(sizes, nest_.symbols[k].variable) != sizes.end())
          usual.emplace(k, sym::estimate(nest_.symbols[k].variable));
    };
    const auto note_lanes = [&](const std::vector<LoopVariable>& loops) {
      if (loops.empty()) return;
      const Expr& extent = loops.back().extent;
      const bool is_slow =
          extent.kind() == sym::Kind::Variable && (vectors > 1 || sym::estimate(extent) % scope_.lanes != 0);
      if (is_slow || (is_small() && !gathers())) note(extent, kShortLoop * vectors * scope_.lanes);
    };
    if (nest_.axis == VectorAxis::Outer && nest_.outer.size() > 1) note_lanes(nest_.outer);
    if (nest_.axis == VectorAxis::Outer && is_small())
      for (const LoopVariable& l : nest_.phases[0].reduction) note(l.extent, kShortReduction * vectors);
    if (nest_.axis == VectorAxis::Phase)
      for (const Phase& phase : nest_.phases)
        note_lanes(phase.reduction.empty() ? phase.loops : phase.reduction);
    return usual;
  }

  // One phase of little work along outer lanes.
  bool is_small() const {
    if (nest_.axis != VectorAxis::Outer || nest_.tiled || nest_.phases.size() != 1) return false;
    const Phase& phase = nest_.phases[0];
    return phase.loops.empty() && phase.reduction.size() <= 1 && phase.insts.size() <= kSmallBody;
  }

  // Whether lanes are loaded or stored one by one, which takes long to compile, and longer than a step of the
  // loop.
  bool gathers() const {
    const Phase& phase = nest_.phases[0];
    const auto is_apart = [&](const Expr& offset) {
      const auto stride = stride_of(offset, nest_.outer.back().variable);
      return !stride || !(*stride == Expr(0) || *stride == Expr(1)) || has_bound_variable(offset);
    };
    return std::ranges::any_of(phase.stores, [&](const ElementStore& s) { return is_apart(s.offset); }) ||
           std::ranges::any_of(phase.insts, [&](const NestInst& inst) {
             return inst.op == loop::Op::Load && is_apart(phase.expressions[inst.index]);
           });
  }

  void print_entry() {
    open_entry();
    const auto call = [&](bool is_usual) {
      std::string sizes;
      for (size_t k = 0; k < nest_.symbols.size(); ++k)
        sizes += is_usual && usual_.contains(k) ? fmt::format("{}, ", usual_.at(k))
                                                : fmt::format("sizes[{}], ", k);
      return fmt::format("return run<{}>(buffers, {}scratch, begin, end);", is_usual, sizes);
    };
    std::string condition;
    for (const auto& [place, size] : usual_)
      condition += fmt::format("{}sizes[{}] == {}", condition.empty() ? "" : " && ", place, size);
    out_.line("if ({}) {}", condition, call(true));
    out_.line("{}", call(false));
    out_.close();
  }

  void print_arrays() {
    scope_.array_names.resize(nest_.arrays.size());
    int inputs = 0, outputs = 0, both = 0, rows = 0;
    for (const ArrayId id : nest_.arrays.ids()) {
      const Array& array = nest_.arrays[id];
      std::string& name = scope_.array_names[id];
      if (array.kind == ArrayKind::Dead || (!array.is_read && !array.is_written)) continue;
      if (array.kind == ArrayKind::Register) {
        name = fmt::format("s{}", scope_.next_name++);
        continue;
      }
      std::string_view type = memory_type(array.dtype);
      if (array.kind == ArrayKind::Scratch) {
        name = fmt::format("row{}", rows++);
        out_.line("{0}* __restrict {1} = ({0}*)((char*)scratch + {2});", type, name,
                  expression(array.scratch_offset));
        continue;
      }
      name = array.is_read && array.is_written ? fmt::format("inout{}", both++)
             : array.is_written                ? fmt::format("out{}", outputs++)
                                               : fmt::format("in{}", inputs++);
      out_.line("{0}{1}* __restrict {2} = ({0}{1}*)buffers[{3}];", array.is_written ? "" : "const ", type,
                name, parameters_.size());
      parameters_.push_back(id);
    }
  }

  void declare_registers(bool vector) {
    for (const ArrayId id : nest_.arrays.ids()) {
      const Array& array = nest_.arrays[id];
      if (array.kind != ArrayKind::Register || scope_.array_names[id].empty()) continue;
      out_.line("{} {}{};", vector ? vector_type(array.dtype) : scalar_type(array.dtype),
                scope_.array_names[id], vector ? " = {}" : " = 0");
    }
  }

  std::string expression(const Expr& e) {
    return expression_text(
        e,
        [&](const Expr& v) {
          return v.kind() == sym::Kind::Variable ? scope_.variables.at(v.variable_id()) : scope_.name_of(v);
        },
        [&](const char* function) { functions_.insert(function); });
  }

  // These loops over the slice. The last one is a loop of its own, so that the others are computed once
  // around it and what grows with it is added up: there is no division at an iteration.
  void open_slice(const std::vector<LoopVariable>& loops) {
    const size_t last = loops.size() - 1;
    for (size_t k = 0; k < last; ++k)
      scope_.variables[loops[k].variable.variable_id()] = fmt::format("o{}", k);
    const int64_t innermost = loops[last].variable.variable_id();
    if (last == 0) {
      out_.open("for (int64_t o0 = begin; o0 < end; ++o0)");
      scope_.variables[innermost] = "o0";
      return name_divisions();
    }
    functions_.insert("least");
    out_.line("int64_t rest = begin;");
    for (size_t k = loops.size(); k-- > 1;) {
      std::string extent = expression(loops[k].extent);
      out_.line("int64_t o{} = rest % ({});", k, extent);
      out_.line("rest /= {};", loops[k].extent.kind() == sym::Kind::Product ? "(" + extent + ")" : extent);
    }
    out_.line("int64_t o0 = rest;");
    out_.open("for (int64_t o = begin; o < end;)");
    out_.line("const int64_t last = o{0} + least({1} - o{0}, end - o);", last,
              expression(loops[last].extent));
    out_.line("o += last - o{};", last);
    name_divisions();
    out_.open(fmt::format("for (; o{0} < last; ++o{0})", last));
    scope_.variables[innermost] = fmt::format("o{}", last);
    name_divisions();
  }

  void close_slice(const std::vector<LoopVariable>& loops) {
    out_.close();
    if (loops.size() == 1) return;
    for (size_t k = loops.size() - 1; k > 0; --k) {
      out_.line("o{} = 0;", k);
      if (k > 1) out_.open(fmt::format("if (++o{} == {})", k - 1, expression(loops[k - 1].extent)));
    }
    out_.line("++o0;");
    for (size_t k = 2; k < loops.size(); ++k) out_.close();
    out_.close();
  }

  // Quotients and remainders of what is known around the phases: the compiler cannot move a division out of a
  // loop that may have no iteration.
  void name_divisions() {
    if (nest_.tiled) return;  // its rows have other names
    const auto is_known = [&](const Expr& e) {
      return std::ranges::all_of(sym::variables(e),
                                 [&](const Expr& v) { return scope_.variables.contains(v.variable_id()); });
    };
    // Here, where loops of phases may have no iteration: a factor of what is not 0 is not 0.
    const auto is_positive = [&](const Expr& divisor) {
      return divisor.range().low > 0 &&
             (divisor.is_constant() || std::ranges::any_of(nest_.outer, [&](const LoopVariable& l) {
                return sym::mod(l.extent, divisor) == Expr(0);
              }));
    };
    const std::function<void(const Expr&)> visit = [&](const Expr& e) {
      const bool divides = e.kind() == sym::Kind::FloorDiv || e.kind() == sym::Kind::Mod;
      if (divides && is_known(e) && is_positive(e.operands()[1])) {
        if (!scope_.name_of(e).empty()) return;
        std::string name = fmt::format("d{}", scope_.named.size());
        out_.line("const int64_t {} = {};", name, expression(e));
        scope_.named.emplace_back(e, std::move(name));
        return;
      }
      if (e.is_constant() || e.kind() == sym::Kind::Variable) return;
      for (const Expr& operand : e.operands()) visit(operand);
    };
    for (const Phase& phase : nest_.phases) for_each_expression(phase, visit);
  }

  // Whether the strides of outer loops in a place are numbers: always, or where sizes are the usual ones.
  std::string_view strides_are_numbers(const Expr& place) const {
    std::string_view answer = "true";
    for (const Expr& v : sym::variables(place)) {
      if (backend::is_nest_variable(v.variable_id())) continue;
      const auto symbol = std::ranges::find(nest_.symbols, v, &backend::Symbol::variable);
      if (!usual_.contains(static_cast<size_t>(symbol - nest_.symbols.begin()))) return "false";
      answer = "is_usual";
    }
    return answer;
  }

  // Pointers to what the lanes of this iteration load and store. Where strides are variables, the compiler
  // would look for the best of all ways to step through all loops, which can take most of its time. Where
  // they are numbers, it sees that rows do not overlap.
  void name_rows() {
    if (nest_.symbols.empty()) return;
    for (const auto& [variable, name] : scope_.variables) scope_.row_variables.insert(variable);
    const auto note = [&](ArrayId id, const Expr& offset) {
      const std::vector<Expr> used = offset.is_constant() ? std::vector<Expr>{} : sym::variables(offset);
      const bool in_lanes = std::ranges::find(used, nest_.outer.back().variable) != used.end();
      const Array& array = nest_.arrays[id];
      const Expr place = terms_of(offset, scope_.row_variables);
      if (!in_lanes || array.kind != ArrayKind::Parameter || place == Expr(0)) return;
      for (const RowPointer& row : scope_.rows)
        if (row.array == id && row.place == place) return;
      functions_.insert("row_pointer");
      std::string name = fmt::format("p{}", scope_.rows.size());
      out_.line("{}{}* {} = row_pointer<{}>({} + {});", array.is_written ? "" : "const ",
                memory_type(array.dtype), name, strides_are_numbers(place), scope_.array_names[id],
                expression(place));
      scope_.rows.push_back({id, place, std::move(name)});
    };
    for (const Phase& phase : nest_.phases) {
      for (const NestInst& inst : phase.insts)
        if (inst.op == loop::Op::Load) note(inst.buffer, phase.expressions[inst.index]);
      for (const ElementStore& store : phase.stores) note(store.array, store.offset);
      for (const Reduction& reduction : phase.reductions)
        for (const ResultStore& store : reduction.stores) note(store.array, store.offset);
    }
  }

  void print_rows() {
    if (nest_.outer.empty())
      out_.open("for (int64_t o = begin; o < end; ++o)");
    else
      open_slice(nest_.outer);
    declare_registers(false);
    for (const Phase& phase : nest_.phases) {
      const bool is_optional = phase.condition.is_valid();
      out_.open(is_optional ? fmt::format("if (__builtin_expect({}, 0))", scope_.array_names[phase.condition])
                            : "");
      PhasePrinter(scope_, phase).print();
      out_.close();
    }
    if (nest_.outer.empty())
      out_.close();
    else
      close_slice(nest_.outer);
  }

  // Walks the last two outer loops in tiles of W rows by W lanes.
  void print_tiles() {
    const LoopVariable& lane = nest_.outer.back();
    const LoopVariable& row = nest_.outer[nest_.outer.size() - 2];
    std::vector<LoopVariable> sliced(nest_.outer.begin(), nest_.outer.end() - 2);
    sliced.push_back(
        {row.variable, sym::floordiv(row.extent + (backend::kTileSide - 1), backend::kTileSide)});
    open_slice(sliced);
    functions_.insert({"full", "lanes", "least"});
    std::string name = fmt::format("o{}", sliced.size());
    std::string end = expression(row.extent);
    out_.line("const int64_t stop = least(({} + 1) * {}, {});",
              scope_.variables.at(row.variable.variable_id()), backend::kTileSide, end);
    out_.line("const int64_t start = {} * {};", scope_.variables.at(row.variable.variable_id()),
              backend::kTileSide);
    scope_.lane_variable = lane.variable.variable_id();
    PhasePrinter printer(scope_, nest_.phases[0]);
    out_.open(fmt::format(
        "auto step = [&](int64_t {}, int64_t row, auto n, auto rows) __attribute__((always_inline))", name));
    out_.line("(void)n;");
    scope_.variables[scope_.lane_variable] = name;
    printer.print_tiles("row", "rows");
    out_.line("#pragma clang loop unroll(disable)");
    out_.open("for (int64_t j = 0; j < lanes(rows); ++j)");
    scope_.variables[row.variable.variable_id()] = "(row + j)";
    declare_registers(true);
    printer.print_tile_row("j");
    out_.close();
    out_.close("};");
    std::string width = expression(lane.extent);
    const auto is_multiple = [&](const Expr& extent) {
      const auto rest = sym::mod(extent, scope_.lanes).as_constant();
      return rest && *rest == 0;
    };
    const auto print_rows = [&](const std::string& n) {
      out_.line("int64_t row = start;");
      out_.line("for (; row + W <= stop; row += W) step(at, row, {}, Full{{}});", n);
      if (!is_multiple(row.extent)) out_.line("if (row < stop) step(at, row, {}, stop - row);", n);
    };
    out_.line("int64_t at = 0;");
    out_.open(fmt::format("for (; at + W <= {}; at += W)", width));
    print_rows("Full{}");
    out_.close();
    if (!is_multiple(lane.extent)) {
      out_.open(fmt::format("if (at < {0})", width));
      print_rows(fmt::format("{} - at", width));
      out_.close();
    }
    close_slice(sliced);
  }

  void print_outer_lanes() {
    const LoopVariable& lane = nest_.outer.back();
    bool flat = nest_.outer.size() == 1;
    scope_.lane_variable = lane.variable.variable_id();
    functions_.insert("full");
    const std::vector<LoopVariable> sliced(nest_.outer.begin(), nest_.outer.end() - 1);
    if (!flat) open_slice(sliced);
    std::string name = fmt::format("o{}", nest_.outer.size() - 1);
    std::vector<PhasePrinter> printers;
    for (const Phase& phase : nest_.phases) printers.emplace_back(scope_, phase);
    if (!flat) name_rows();
    for (PhasePrinter& printer : printers) printer.print_uniform();
    out_.open(fmt::format("auto step = [&](int64_t {}, auto n) __attribute__((always_inline))", name));
    out_.line("(void)n;");
    scope_.variables[scope_.lane_variable] = name;
    declare_registers(true);
    for (PhasePrinter& printer : printers) {
      if (printers.size() > 1) out_.open("");
      printer.print();
      if (printers.size() > 1) out_.close();
    }
    out_.close("};");
    if (flat) {
      out_.line("int64_t at = begin;");
      out_.line("for (; at + W <= end; at += W) step(at, Full{{}});");
      out_.line("if (at < end) step(at, end - at);");
    } else if (auto extent = lane.extent.as_constant(); extent && *extent < scope_.lanes) {
      if (*extent > 0) out_.line("step(0, int64_t({}));", *extent);
    } else {
      std::string stop = expression(lane.extent);
      auto rest = sym::mod(lane.extent, scope_.lanes).as_constant();
      if (!rest) {
        out_.line("const int64_t whole = {} & -W;", stop);
        out_.line("for (int64_t at = 0; at < whole; at += W) step(at, Full{{}});");
        out_.line("if (whole < {0}) step(whole, {0} - whole);", stop);
      } else {
        out_.line("int64_t at = 0;");
        out_.line("for (; at + W <= {}; at += W) step(at, Full{{}});", stop);
        if (*rest != 0) out_.line("step(at, int64_t({}));", *rest);
      }
    }
    if (!flat) close_slice(sliced);
  }

  const LoopNest& nest_;
  const Target& target_;
  Writer out_;
  std::set<std::string> functions_;
  std::vector<ArrayId> parameters_;
  std::map<size_t, int64_t> usual_;  // usual_sizes()
  KernelScope scope_;
};

}  // namespace

// As many lanes as elements of four bytes fill a vector register; of eight if the kernel has no smaller ones.
int lane_count(const LoopNest& nest, const Target& target) {
  int lanes = target.vector_bytes / 4;
  if (int vectors = vectors_a_step(nest, lanes); vectors > 1) return vectors * lanes;
  bool small = false;
  bool any = false;
  for (const Array& array : nest.arrays) {
    if (array.kind == ArrayKind::Dead || (!array.is_read && !array.is_written)) continue;
    any = true;
    small = small || (item_size(array.dtype) < 8 && array.dtype != DType::Bool);
  }
  for (const Phase& phase : nest.phases)
    for (const NestInst& inst : phase.insts)
      small =
          small || (inst.op != loop::Op::Constant && inst.dtype != DType::Bool && item_size(inst.dtype) < 8);
  return any && !small ? target.vector_bytes / 8 : lanes;
}

KernelText print_kernel(const LoopNest& nest, const Target& target) {
  return KernelPrinter(nest, target).print();
}

}  // namespace oxy::backend::cpu
