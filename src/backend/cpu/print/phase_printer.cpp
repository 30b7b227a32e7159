#include "backend/cpu/print/phase_printer.h"

#include <algorithm>

#include "backend/cpu/print/expression_text.h"
#include "backend/cpu/print/prelude.h"
#include "base/error.h"

namespace oxy::backend::cpu {

using loop::kNoInst;
using loop::Op;

namespace {

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

bool is_plain(DType dtype) {
  return dtype != DType::Bool && !is_half(dtype);
}

}  // namespace

Expr terms_of(const Expr& e, const std::set<int64_t>& variables) {
  const auto is_known = [&](const Expr& term) {
    return !term.is_constant() && std::ranges::all_of(sym::variables(term), [&](const Expr& v) {
      return variables.contains(v.variable_id());
    });
  };
  if (e.kind() != sym::Kind::Sum) return is_known(e) ? e : Expr(0);
  Expr known = 0;
  for (const Expr& term : e.operands())
    if (is_known(term)) known = known + term;
  return known;
}

PhasePrinter::PhasePrinter(KernelScope& scope, const Phase& phase) : scope_(scope), phase_(phase) {
  classify();
}

void PhasePrinter::classify() {
  const LoopNest& nest = scope_.nest;
  along_reduction_ = lanes_along_reduction(nest, phase_);
  if (nest.axis == VectorAxis::Phase) {
    scope_.lane_variable = -1;
    if (along_reduction_)
      scope_.lane_variable = phase_.reduction.back().variable.variable_id();
    else if (!phase_.loops.empty())
      scope_.lane_variable = phase_.loops.back().variable.variable_id();
  }
  std::map<int64_t, int> bound_depths;
  printed_.resize(phase_.insts.size());
  for (const InstId id : phase_.insts.ids()) {
    const NestInst& inst = phase_.insts[id];
    bool varying = false;
    int depth = nest.axis == VectorAxis::Outer ? -1 : 0;
    for (InstId operand : inst.operands)
      if (operand != kNoInst) {
        varying = varying || printed_[operand].varies;
        depth = std::max(depth, printed_[operand].depth);
      }
    if (inst.index != loop::kNoIndex) {
      const Expr& e = phase_.expressions[inst.index];
      varying = varying || varies(e);
      depth = std::max(depth, depth_of(e));
      for (const Expr& v : sym::variables(e))
        if (auto found = bound_depths.find(v.variable_id()); found != bound_depths.end())
          depth = std::max(depth, found->second);
    }
    if (inst.op == Op::Load) {
      const Array& array = nest.arrays[inst.buffer];
      if (array.kind == ArrayKind::Register) {
        varying = nest.axis == VectorAxis::Outer;
        depth = std::max(depth, 0);
      }
      if (const int loops = loops_before_reading(nest, phase_, array); loops > 0)
        depth = std::max(depth, loops);
      // What this kernel writes must not be read ahead of its loops.
      if (array.is_written) depth = std::max(depth, 0);
    }
    if (varying) depth = std::max(depth, 0);
    if (varying && nest.axis == VectorAxis::Phase) {
      size_t at = along_reduction_ ? phase_.loops.size() + phase_.reduction.size() : phase_.loops.size();
      depth = std::max(depth, static_cast<int>(at));
    }
    printed_[id].dtype = moved_dtype(id);
    printed_[id].varies = varying;
    printed_[id].depth = depth;
    if (inst.op == Op::BindIndex) {
      bound_depths[inst.variable] = depth;
      // An earlier phase may bind the same variable, lane by lane or not.
      if (varying)
        scope_.lane_bound.insert(inst.variable);
      else
        scope_.lane_bound.erase(inst.variable);
    }
  }
}

// The type whose loads and stores move `id` between arrays: that of its elements, but the bits of half
// precision where nothing computes with them.
DType PhasePrinter::moved_dtype(InstId id) const {
  const NestInst& inst = phase_.insts[id];
  const auto is_user = [&](const NestInst& user) {
    return std::ranges::find(user.operands, id) != user.operands.end();
  };
  const auto computes = [&](const ElementStore& store) {
    const Array& array = scope_.nest.arrays[store.array];
    return store.value == id && (array.dtype != inst.dtype || array.kind == ArrayKind::Register ||
                                 store.mode != loop::StoreMode::Set);
  };
  if (inst.op != Op::Load || !is_half(inst.dtype) || inst.operands[0] != kNoInst) return inst.dtype;
  const Array& array = scope_.nest.arrays[inst.buffer];
  const bool moves =
      array.dtype == inst.dtype && array.kind != ArrayKind::Register &&
      std::ranges::none_of(phase_.insts, is_user) && std::ranges::none_of(phase_.stores, computes) &&
      std::ranges::none_of(phase_.reductions, [&](const Reduction& r) { return r.value == id; });
  return moves ? DType::UInt16 : inst.dtype;
}

// The number of the phase's loops (loops, then reduction) that must be open for e.
int PhasePrinter::depth_of(const Expr& e) const {
  int depth = scope_.nest.axis == VectorAxis::Outer ? -1 : 0;
  if (e.is_constant()) return depth;
  for (const Expr& v : sym::variables(e)) {
    int position = 0;
    for (const auto* loops : {&phase_.loops, &phase_.reduction})
      for (const LoopVariable& l : *loops) {
        ++position;
        if (l.variable.variable_id() == v.variable_id()) depth = std::max(depth, position);
      }
    if (v.variable_id() == scope_.lane_variable) depth = std::max(depth, 0);
  }
  return depth;
}

bool PhasePrinter::varies(const Expr& e) const {
  if (e.is_constant() || scope_.lane_variable < 0) return false;
  for (const Expr& v : sym::variables(e))
    if (v.variable_id() == scope_.lane_variable || scope_.lane_bound.contains(v.variable_id())) return true;
  return false;
}

OpContext PhasePrinter::context(bool vector) {
  return {scope_.functions, vector, vector ? "n" : "1"};
}

Operand PhasePrinter::operand(InstId id) const {
  const NestInst& inst = phase_.insts[id];
  if (inst.op == Op::Constant) return {literal(inst.constant, inst.dtype), inst.dtype, false, &inst.constant};
  return {printed_[id].name, printed_[id].dtype, printed_[id].varies, nullptr};
}

std::string PhasePrinter::text(const Expr& e, bool each_lane) {
  return expression_text(
      e,
      [&](const Expr& v) -> std::string {
        if (v.kind() != sym::Kind::Variable) return scope_.name_of(v);
        int64_t id = v.variable_id();
        auto found = scope_.variables.find(id);
        check(found != scope_.variables.end(), "an index expression uses an unknown variable " + v.str());
        if (!each_lane) return found->second;
        if (id == scope_.lane_variable) return "(" + found->second + " + l)";
        return scope_.lane_bound.contains(id) ? found->second + "[l]" : found->second;
      },
      [&](const char* function) { scope_.functions.insert(function); });
}

// --- loads and stores

std::pair<std::string, Expr> PhasePrinter::located(ArrayId array, const Expr& offset) const {
  if (!scope_.rows.empty()) {
    const Expr place = terms_of(offset, scope_.row_variables);
    for (const RowPointer& row : scope_.rows)
      if (row.array == array && row.place == place) return {row.name, offset - place};
  }
  return {scope_.array_names[array], offset};
}

namespace {

std::string pointer_text(const std::string& base, const std::string& offset) {
  return offset == "0" ? base : base + " + " + offset;
}

}  // namespace

std::string PhasePrinter::load_text(const NestInst& inst, DType dtype, bool vector) {
  const Array& array = scope_.nest.arrays[inst.buffer];
  const auto [name, offset] = located(inst.buffer, phase_.expressions[inst.index]);
  if (array.kind == ArrayKind::Register) return name;
  std::string_view type = short_name(dtype);
  auto call = [&](std::string_view function, const std::string& arguments) {
    std::string full = fmt::format("{}_{}", function, type);
    scope_.functions.insert(full);
    return fmt::format("{}({})", full, arguments);
  };
  if (!vector || !varies(offset)) {
    std::string scalar;
    if (is_plain(dtype))
      scalar = fmt::format("{}[{}]", name, text(offset));
    else if (dtype == DType::Bool)
      scalar = fmt::format("({}[{}] != 0)", name, text(offset));
    else
      scalar = call("load", fmt::format("{}, 1", pointer_text(name, text(offset)))) + "[0]";
    if (!vector) return scalar;
    OpContext c = context(true);
    return as_vector({scalar, dtype, false, nullptr}, c);
  }
  std::optional<Expr> stride;
  if (scope_.variables.contains(scope_.lane_variable)) {
    auto linear = sym::linear_in(offset, scope_.lane_variable);
    if (linear && !varies(linear->first)) {
      bool bound = false;
      for (const Expr& v : sym::variables(offset))
        bound = bound || scope_.lane_bound.contains(v.variable_id());
      if (!bound) stride = linear->first;
    }
  }
  if (stride && *stride == Expr(1)) return call("load", pointer_text(name, text(offset)) + ", n");
  if (stride)
    return call("load_strided", fmt::format("{}, {}, n", pointer_text(name, text(offset)), text(*stride)));
  return call("gather", fmt::format("{}, [&](int64_t l) {{ return {}; }}, n", name, text(offset, true)));
}

std::string PhasePrinter::masked_load_text(const NestInst& inst, bool vector, const Operand& mask) {
  const Array& array = scope_.nest.arrays[inst.buffer];
  const auto [name, offset] = located(inst.buffer, phase_.expressions[inst.index]);
  Operand otherwise = operand(inst.operands[1]);
  OpContext c = context(vector);
  if (!mask.vector) {
    std::string other = vector ? as_vector(otherwise, c) : otherwise.text;
    return fmt::format("{} ? {} : {}", mask.text, load_text(inst, array.dtype, vector), other);
  }
  auto stride = stride_of(offset, Expr::variable("", scope_.lane_variable, {}));
  bool bound = false;
  for (const Expr& v : sym::variables(offset)) bound = bound || scope_.lane_bound.contains(v.variable_id());
  if (stride && *stride == Expr(1) && !bound && array.kind != ArrayKind::Register) {
    std::string function = fmt::format("load_masked_{}", short_name(array.dtype));
    scope_.functions.insert(function);
    return fmt::format("{}({}, {}, {}, n)", function, pointer_text(name, text(offset)), mask.text,
                       as_vector(otherwise, c));
  }
  if (array.kind == ArrayKind::Register) {
    Operand loaded{load_text(inst, array.dtype, vector), array.dtype, true, nullptr};
    return select_text(mask, loaded, otherwise, array.dtype, c);
  }
  std::string function = fmt::format("gather_masked_{}", short_name(array.dtype));
  scope_.functions.insert(function);
  return fmt::format("{}({}, [&](int64_t l) {{ return {}; }}, {}, {}, n)", function, name, text(offset, true),
                     mask.text, as_vector(otherwise, c));
}

std::string PhasePrinter::index_text(const NestInst& inst, bool vector) {
  const Expr& e = phase_.expressions[inst.index];
  OpContext c = context(vector);
  if (!vector || !varies(e)) {
    Operand value{text(e), DType::Int64, false, nullptr};
    std::string scalar = cast_text({"(" + value.text + ")", DType::Int64, false, nullptr}, inst.dtype, c);
    return vector ? as_vector({scalar, inst.dtype, false, nullptr}, c) : scalar;
  }
  std::string lanes;
  auto linear = sym::linear_in(e, scope_.lane_variable);
  bool bound = false;
  for (const Expr& v : sym::variables(e)) bound = bound || scope_.lane_bound.contains(v.variable_id());
  if (linear && !bound && !varies(linear->first)) {
    scope_.functions.insert("iota");
    scope_.functions.insert("splat_i64");
    std::string steps =
        linear->first == Expr(1) ? "iota()" : fmt::format("iota() * int64_t({})", text(linear->first));
    lanes = fmt::format("(splat_i64({}) + {})", text(e), steps);
  } else {
    scope_.functions.insert("each_lane");
    lanes = fmt::format("each_lane([&](int64_t l) {{ return {}; }})", text(e, true));
  }
  return cast_text({lanes, DType::Int64, true, nullptr}, inst.dtype, c);
}

bool PhasePrinter::is_only_stored(InstId id) const {
  const auto uses = [&](const NestInst& user) {
    return std::ranges::find(user.operands, id) != user.operands.end();
  };
  const auto keeps = [&](const ElementStore& store) {
    return store.value == id && scope_.nest.arrays[store.array].kind == ArrayKind::Register;
  };
  return std::ranges::none_of(phase_.insts, uses) && std::ranges::none_of(phase_.stores, keeps) &&
         std::ranges::find(phase_.reductions, id, &Reduction::value) == phase_.reductions.end();
}

void PhasePrinter::store(ArrayId id, const Expr& place, Operand value, loop::StoreMode mode) {
  const Array& array = scope_.nest.arrays[id];
  if (array.kind == ArrayKind::Dead) return;
  const auto [name, offset] = located(id, place);
  bool in_lanes = scope_.lane_variable >= 0 && scope_.variables.contains(scope_.lane_variable);
  OpContext c = context(value.vector);
  const bool moves = is_half(array.dtype) && value.dtype == DType::UInt16;  // moved_dtype
  const DType dtype = moves ? DType::UInt16 : array.dtype;
  if (value.dtype != dtype) {
    DType to = is_half(dtype) && array.kind != ArrayKind::Register
                   ? DType::Float32
                   : array.dtype;  // stores round by themselves
    value = {cast_text(value, to, c), dtype, value.vector, nullptr};
  }
  if (array.kind == ArrayKind::Register) {
    c.vector = scope_.nest.axis == VectorAxis::Outer;
    scope_.out.line("{} = {};", name, c.vector ? as_vector(value, c) : value.text);
    return;
  }
  std::string_view type = short_name(dtype);
  auto call = [&](std::string_view function, const std::string& before, const std::string& after) {
    std::string full = fmt::format("{}_{}", function, type);
    scope_.functions.insert(full);
    c.vector = true;
    scope_.out.line("{}({}, {}{});", full, before, as_vector(value, c), after);
  };
  check(mode != loop::StoreMode::AddInParts, "a kernel for the CPU that adds up parts of rows");
  bool adds = mode == loop::StoreMode::AtomicAdd;
  if (!in_lanes || (!varies(offset) && !value.vector && !adds)) {
    if (adds && is_plain(dtype))
      scope_.out.line("{}[{}] += {};", name, text(offset), value.text);
    else if (adds)
      call("scatter_add", name + fmt::format(", [&](int64_t) {{ return {}; }}", text(offset)), ", 1");
    else if (is_plain(dtype) || dtype == DType::Bool)
      scope_.out.line("{}[{}] = {};", name, text(offset), value.text);
    else
      call("store", pointer_text(name, text(offset)), ", 1");
    return;
  }
  std::optional<Expr> stride;
  bool bound = false;
  for (const Expr& v : sym::variables(offset)) bound = bound || scope_.lane_bound.contains(v.variable_id());
  if (auto linear = sym::linear_in(offset, scope_.lane_variable); linear && !bound && !varies(linear->first))
    stride = linear->first;
  if (adds && stride && *stride == Expr(1) && is_plain(dtype)) {
    std::string place = pointer_text(name, text(offset));
    std::string sum = fmt::format("load_{}({}, n) + {}", type, place, as_vector(value, c));
    scope_.functions.insert(fmt::format("load_{}", type));
    value = {sum, dtype, true, nullptr};
    call("store", place, ", n");
  } else if (adds)
    call("scatter_add", fmt::format("{}, [&](int64_t l) {{ (void)l; return {}; }}", name, text(offset, true)),
         ", n");
  else if (stride && *stride == Expr(1))
    call("store", pointer_text(name, text(offset)), ", n");
  else if (stride)
    call("store_strided", fmt::format("{}, {}", pointer_text(name, text(offset)), text(*stride)), ", n");
  else
    call("scatter", fmt::format("{}, [&](int64_t l) {{ return {}; }}", name, text(offset, true)), ", n");
}

void PhasePrinter::print_stores() {
  for (const ElementStore& s : phase_.stores) store(s.array, s.offset, operand(s.value), s.mode);
}

// --- bodies

void PhasePrinter::print_insts(int depth) {
  for (const InstId id : phase_.insts.ids())
    if (printed_[id].depth == depth) print_inst(id);
}

void PhasePrinter::print_bind(InstId id) {
  const NestInst& inst = phase_.insts[id];
  bool vector = printed_[id].varies;
  std::string name = fmt::format("t{}", scope_.next_name++);
  std::string size = text(phase_.expressions[inst.index]);
  std::string error = inst.checked ? "error" : "ignored";
  Operand position = operand(inst.operands[0]);
  OpContext c = context(vector);
  std::string index = vector ? as_vector(position, c) : position.text;
  if (inst.wraps) {
    const char* wrap = vector ? "wrap_indices" : "wrap_index";
    scope_.functions.insert(wrap);
    index = fmt::format("{}({}, {})", wrap, index, size);
  }
  const char* bind = vector ? "bind_indices" : "bind_index";
  scope_.functions.insert(bind);
  scope_.out.line("const {} {} = {}({}, {}, {}{});", vector ? "i64v" : "int64_t", name, bind, index, size,
                  error, vector ? ", n" : "");
  scope_.variables[inst.variable] = name;
  printed_[id].name = name;
}

void PhasePrinter::print_inst(InstId id) {
  const NestInst& inst = phase_.insts[id];
  if (inst.op == Op::Constant) return;
  if (inst.op == Op::BindIndex) return print_bind(id);
  Printed& printed = printed_[id];
  const bool vector = printed.varies;
  std::string expression;
  if (!printed.tile.empty()) {
    expression = fmt::format("{}[{}]", printed.tile, row_in_tile_);
  } else if (inst.op == Op::Load) {
    DType held = printed.dtype == inst.dtype ? scope_.nest.arrays[inst.buffer].dtype : printed.dtype;
    expression = inst.operands[0] == kNoInst ? load_text(inst, held, vector)
                                             : masked_load_text(inst, vector, operand(inst.operands[0]));
    if (held != printed.dtype) {
      OpContext c = context(vector);
      expression = cast_text({"(" + expression + ")", held, vector, nullptr}, inst.dtype, c);
    }
  } else if (inst.op == Op::Index) {
    expression = index_text(inst, vector);
  } else {
    std::vector<Operand> operands;
    for (InstId operand_id : inst.operands)
      if (operand_id != kNoInst) operands.push_back(operand(operand_id));
    OpContext c = context(vector);
    NestInst shown = inst;
    if (inst.op == Op::Cast && is_half(inst.dtype) && is_only_stored(id)) shown.dtype = DType::Float32;
    expression = op_text(shown, operands, c);
    bool rounds =
        is_half(inst.dtype) && inst.op != Op::Cast && inst.op != Op::Where && inst.op != Op::Bitcast;
    if (rounds) expression = cast_text({expression, DType::Float32, vector, nullptr}, inst.dtype, c);
  }
  printed.name = fmt::format("x{}", scope_.next_name++);
  scope_.out.line("const {} {} = {};", vector ? vector_type(printed.dtype) : scalar_type(printed.dtype),
                  printed.name, expression);
}

void PhasePrinter::print_uniform() {
  print_insts(-1);
}

void PhasePrinter::print_tiles(const std::string& row, const std::string& rows) {
  const LoopNest& nest = scope_.nest;
  const Expr& row_variable = nest.outer[nest.outer.size() - 2].variable;
  scope_.variables[row_variable.variable_id()] = row;
  for (const InstId id : phase_.insts.ids()) {
    const NestInst& inst = phase_.insts[id];
    if (!is_transposed(nest, phase_, inst)) continue;
    scope_.functions.insert("load_tile_f32");
    std::string name = fmt::format("tile{}", scope_.next_name++);
    const Expr& offset = phase_.expressions[inst.index];
    scope_.out.line("f32v {}[W];", name);
    scope_.out.line("load_tile_f32({}, {}, {}, {}, n);", name,
                    pointer_text(scope_.array_names[inst.buffer], text(offset)),
                    text(*stride_of(offset, nest.outer.back().variable)), rows);
    printed_[id].tile = name;
  }
}

void PhasePrinter::print_tile_row(const std::string& row_in_tile) {
  row_in_tile_ = row_in_tile;
  print_uniform();
  print();
}

}  // namespace oxy::backend::cpu
