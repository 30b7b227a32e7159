#include "backend/cuda/print/phase_printer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <optional>

#include "backend/cuda/accesses.h"
#include "backend/cuda/print/loads_ahead.h"
#include "backend/cuda/print/reductions.h"
#include "backend/cuda/print/scans.h"
#include "base/error.h"
#include "loop/builder.h"
#include "loop/random_bits.h"

namespace oxy::backend::cuda {

using loop::InstId;
using loop::kNoInst;
using loop::Op;
using loop::ReductionKind;

namespace {

constexpr const char* kRegister = "register";  // the place of a Register array's one element
constexpr const char* kStart = "start";        // the variable of a loop over a row

// What the reduction accumulates in; of positions, what they are compared by.
DType reduced_dtype(const Phase& phase, const Reduction& reduction) {
  if (reduction.kind != ReductionKind::ArgMax && reduction.kind != ReductionKind::ArgMin)
    return reduction.accumulate;
  const DType dtype = held_dtype(phase.insts[reduction.value].dtype);
  return dtype == DType::Bool ? DType::Int32 : dtype;
}

// A constant that is the same number in every type.
bool is_small_integer(const Value& value) {
  if (!value.constant) return false;
  const double number = std::visit([](auto v) { return static_cast<double>(v); }, value.constant->value);
  return number >= 0 && number <= 127 && number == std::floor(number) && !std::signbit(number);
}

// Whether comparing in the type of indices gives the same.
bool compares_as_index(const Value& value) {
  if (!value.index.empty()) return true;
  const auto* number = value.constant ? std::get_if<int64_t>(&value.constant->value) : nullptr;
  return number && std::abs(*number) < (int64_t{1} << 31);
}

// What is loaded from memory of the type, in the type that kernels hold it in.
std::string in_compute_type(const std::string& loaded, DType dtype) {
  return held_dtype(dtype) == dtype ? loaded : loaded + ".to(tl.float32)";
}

bool is_one(const Value& value) {
  return value.constant && std::visit([](auto v) { return v == 1; }, value.constant->value);
}

}  // namespace

std::string PhasePrinter::place(const Expr& offset) {
  return offset.str();
}

void PhasePrinter::print(size_t number) {
  if (number == 0) print_loads_of_rows();
  phase_ = &nest_.phases[number];
  number_ = number;
  const int columns = axes_.columns_of_phase[number];
  block_.choose_columns(columns);
  if (reads_what_others_stored()) block_.out().line("tl.debug_barrier()");
  if (columns < 0 || shape_.form != Form::Rows) return print_body();

  if (is_whole_row()) {
    if (printed_columns_.insert(columns).second) block_.print_columns("");
    print_body();
    if (number == 0 && !phase_->reductions.empty()) print_loads_ahead();
    for (const Reduction& reduction : phase_->reductions)
      store_results(reduction, reduce_row(block_, reduction.kind, reduced_dtype(*phase_, reduction),
                                          reduction.counted, value(reduction.value)));
    return;
  }
  std::vector<LoopedReduction> reductions;
  for (const Reduction& reduction : phase_->reductions)
    reductions.emplace_back(block_, reduction.kind, reduced_dtype(*phase_, reduction), reduction.counted);
  block_.open_loop();
  block_.print_columns(kStart);
  print_body();
  for (size_t k = 0; k < reductions.size(); ++k)
    reductions[k].add(value(phase_->reductions[k].value), kStart);
  const std::string range =
      fmt::format("0, {}, {}", block_.expression(block_.columns().extent).text, block_.columns_name());
  block_.close_loop(shape_.stages > 0
                        ? fmt::format("for {} in tl.range({}, num_stages={}):", kStart, range, shape_.stages)
                        : fmt::format("for {} in range({}):", kStart, range));
  for (ArrayState& array : arrays_)
    std::erase_if(array.stored, [](const auto& entry) { return (entry.second.dims & kColumns) != 0; });
  for (size_t k = 0; k < reductions.size(); ++k) store_results(phase_->reductions[k], reductions[k].join());
}

bool PhasePrinter::is_whole_row() const {
  const auto extent = block_.columns().extent.as_constant();
  return extent && *extent <= block_.columns().block;
}

bool PhasePrinter::reads_what_others_stored() const {
  return std::ranges::any_of(phase_->insts, [&](const NestInst& inst) {
    if (inst.op != Op::Load) return false;
    const ArrayState& array = arrays_[inst.buffer];
    const Expr& offset = phase_->expressions[inst.index];
    return array.is_written && !array.name.empty() && !array.stored.contains(place(offset));
  });
}

void PhasePrinter::print_body() {
  values_.clear();
  for (const NestInst& inst : phase_->insts) values_.add(print_inst(inst));
  const unsigned dims = block_.row_dims() | (axes_.columns_of_phase[number_] < 0 ? kNoDims : kColumns);
  for (const ElementStore& s : phase_->stores)
    if (s.mode == loop::StoreMode::AddInParts)
      add_up(s);
    else
      store(s.array, s.offset, value(s.value), dims, s.mode);
}

// Indices that are loaded themselves.
std::set<int64_t> PhasePrinter::bound_indices() const {
  std::set<int64_t> bound;
  for (const Phase& phase : nest_.phases)
    for (const NestInst& inst : phase.insts)
      if (inst.op == Op::BindIndex) bound.insert(inst.variable);
  return bound;
}

bool PhasePrinter::is_indexed(const NestInst& load, const std::set<int64_t>& bound) const {
  return std::ranges::any_of(sym::variables(phase_->expressions[load.index]),
                             [&](const Expr& variable) { return bound.contains(variable.variable_id()); });
}

// Loads of rows that need no index which is loaded itself come before the check of such an index, for which
// they would wait.
void PhasePrinter::print_loads_of_rows() {
  if (bound_indices().empty() || shape_.form != Form::Rows || shape_.part > 0) return;
  print_loads_with_columns(0, [](const NestInst&) { return true; });
}

// Those of the phases from number `first` on that a program does in one step, and whose places are known from
// the beginning.
void PhasePrinter::print_loads_with_columns(size_t first,
                                            const std::function<bool(const NestInst&)>& is_wanted) {
  const std::set<int64_t> bound = bound_indices();
  for (number_ = first; number_ < nest_.phases.size(); ++number_) {
    phase_ = &nest_.phases[number_];
    const int columns = axes_.columns_of_phase[number_];
    if (columns < 0) continue;
    block_.choose_columns(columns);
    if (!is_whole_row()) continue;
    for (const NestInst& inst : phase_->insts) {
      if (inst.op != Op::Load || inst.operands[0] != kNoInst) continue;
      const Array& array = nest_.arrays[inst.buffer];
      if (array.kind != ArrayKind::Parameter || array.is_written || is_indexed(inst, bound)) continue;
      if (!is_wanted(inst)) continue;
      if (printed_columns_.insert(columns).second) block_.print_columns("");
      const auto [text, dims] = load_text(inst);
      if (!block_.known(in_compute_type(text, array.dtype))) block_.named(text, array.dtype, dims);
    }
  }
}

void PhasePrinter::print_loads_before_wait() {
  if (shape_.form != Form::Rows || shape_.part > 0) return;
  print_loads_with_columns(0, [&](const NestInst& load) {
    return nest_.arrays[load.buffer].is_fixed && (number_ == 0 || may_be_ahead(load));
  });
}

// Whether all rows load the same elements.
bool PhasePrinter::is_of_columns(const NestInst& load) const {
  const int64_t column = block_.columns().variable.variable_id();
  return std::ranges::all_of(sym::variables(phase_->expressions[load.index]),
                             [&](const Expr& variable) { return variable.variable_id() == column; });
}

// Whether the first phase reduces a row that is the same for all rows of the kernel (repeated_rows.h).
bool PhasePrinter::makes_row_for_all() const {
  const Phase& first = nest_.phases.front();
  const int columns = axes_.columns_of_phase.front();
  if (nest_.outer.empty() || first.reductions.empty() || columns < 0) return false;
  const Expr& column = axes_.columns[static_cast<size_t>(columns)].variable;
  return std::ranges::all_of(first.expressions, [&](const Expr& e) {
    return std::ranges::all_of(sym::variables(e), [&](const Expr& variable) { return variable == column; });
  });
}

// Whether a load of a later phase begins before the first phase reduces its row. It does where that row is
// the same for all rows of the kernel: later phases load most of what the kernel reads. Elsewhere it does if
// all rows load the same, and it fits in registers beside the row.
bool PhasePrinter::may_be_ahead(const NestInst& load) const {
  if (shape_.part > 0) return false;
  return makes_row_for_all() ||
         (shape_.rows * shape_.columns <= kElementsAThread * kThreadsAWarp * shape_.warps &&
          is_of_columns(load));
}

// What later phases load and need not wait for. The first phase has begun its loads.
void PhasePrinter::print_loads_ahead() {
  auto values = std::move(values_);
  print_loads_with_columns(1, [&](const NestInst& load) { return may_be_ahead(load); });
  for (number_ = 1; number_ < nest_.phases.size(); ++number_) {
    if (axes_.columns_of_phase[number_] >= 0) continue;
    phase_ = &nest_.phases[number_];
    block_.choose_columns(-1);
    const std::vector<bool> is_ahead = loads_ahead(nest_, *phase_);
    values_.clear();
    for (const InstId id : phase_->insts.ids())
      values_.add(is_ahead[id.number()] ? print_inst(phase_->insts[id]) : Value{});
  }
  values_ = std::move(values);
  number_ = 0;
  phase_ = &nest_.phases[0];
  block_.choose_columns(axes_.columns_of_phase[0]);
}

// Each element of the block adds up the rows that it sees.
void PhasePrinter::add_up(const ElementStore& store) {
  const Array& array = nest_.arrays[store.array];
  const std::string sum = block_.new_name("acc"), zero = is_floating(array.dtype) ? "0.0" : "0";
  block_.around_loops().line("{} = tl.full({}, {}, {})", sum, block_.block_shape(kRows | kColumns), zero,
                             triton_type(array.dtype));
  const std::string added = block_.whole(value(store.value)), mask = block_.mask(kRows);
  block_.out().line("{0} = {0} + {1}", sum,
                    mask.empty() ? added : fmt::format("tl.where({}, {}, {})", mask, added, zero));
  const std::string columns = block_.mask(kColumns);
  sums_.push_back(fmt::format("tl.store({} + (program * {} + {}), tl.sum({}, 0)[None, :]{})",
                              arrays_[store.array].name, store.part.elements,
                              parenthesized(block_.expression(store.offset)), sum,
                              columns.empty() ? "" : ", " + columns));
}

void PhasePrinter::store_sums() {
  for (const std::string& line : sums_) block_.around_loops().line("{}", line);
}

Value PhasePrinter::print_inst(const NestInst& inst) {
  switch (inst.op) {
    case Op::Load:
      return print_load(inst);
    case Op::Constant:
      return {literal(inst.constant, inst.dtype), inst.dtype, kNoDims, &inst.constant};
    case Op::Index:
      return print_index(inst);
    case Op::BindIndex:
      return print_bind(inst);
    case Op::Scan:
      return print_scan(inst);
    case Op::Philox:
      if (axes_.columns_of_phase[number_] >= 0)
        if (const Quads quads(block_.columns()); quads.are_of_one_draw(*phase_, inst))
          return print_quads(inst, quads);
      break;
    default:
      break;
  }
  std::vector<Value> operands;
  unsigned dims = kNoDims;
  for (const InstId id : inst.operands)
    if (id != kNoInst) {
      operands.push_back(value(id));
      dims |= operands.back().dims;
    }
  if (inst.op == Op::Cast && is_small_integer(operands[0]) && inst.dtype != DType::Bool)
    return {literal(*operands[0].constant, inst.dtype), inst.dtype, kNoDims, operands[0].constant};
  if (inst.op == Op::Mul && is_one(operands[1]) && !operands[0].constant)
    return {operands[0].text, inst.dtype, operands[0].dims};
  OpContext context{block_.needs, is_precise_};
  if (loop::is_comparison(inst.op) && std::ranges::all_of(operands, compares_as_index)) {
    for (Value& x : operands)
      x = {x.constant ? literal(*x.constant, DType::Int32) : x.index, DType::Int32, x.dims};
    return block_.named(op_text(inst, operands, context), inst.dtype, dims);
  }
  // Indices are wide values only where one is computed with.
  for (Value& x : operands)
    if (!x.index.empty()) x = block_.named(x.text, x.dtype, x.dims);
  const std::string text = op_text(inst, operands, context);
  return block_.named(text, inst.dtype, dims);
}

std::pair<std::optional<Value>, std::optional<Value>> PhasePrinter::condition_of(const NestInst& load) const {
  if (load.operands[0] == kNoInst) return {};
  return {value(load.operands[0]), value(load.operands[1])};
}

std::pair<std::string, unsigned> PhasePrinter::load_text(const NestInst& inst) {
  const Array& array = nest_.arrays[inst.buffer];
  const auto [condition, otherwise] = condition_of(inst);
  const ExpressionText at = block_.expression(phase_->expressions[inst.index]);
  unsigned dims = at.dims;
  if (condition) dims |= condition->dims | otherwise->dims;
  // Of an empty row nothing is read: the memory may be none.
  const int columns = axes_.columns_of_phase[number_];
  if (columns >= 0 && !array.empty_sizes.empty() && block_.columns().extent.range().low < 1) dims |= kColumns;
  std::string mask = block_.mask(dims);
  if (condition) mask = mask.empty() ? tensor_text(*condition) : tensor_text(*condition) + " & " + mask;
  std::string text = "tl.load(" + block_.pointer(arrays_[inst.buffer].name, at, dims);
  if (!mask.empty()) {
    const std::string other = condition ? otherwise->text : is_floating(array.dtype) ? "0.0" : "0";
    text += fmt::format(", {}, other={}", mask, other);
  }
  return {text + eviction(inst.buffer, dims) + ")", dims};
}

Value PhasePrinter::print_load(const NestInst& inst) {
  const Array& array = nest_.arrays[inst.buffer];
  ArrayState& state = arrays_[inst.buffer];
  const Expr& offset = phase_->expressions[inst.index];
  const auto [condition, otherwise] = condition_of(inst);
  const auto converted = [&](const Value& held) {
    if (held_dtype(held.dtype) == held_dtype(inst.dtype)) return Value{held.text, inst.dtype, held.dims};
    return block_.named(cast_text(held, inst.dtype), inst.dtype, held.dims);
  };
  const bool is_register = array.kind == ArrayKind::Register;
  if (const auto found = state.stored.find(is_register ? kRegister : place(offset));
      found != state.stored.end()) {
    const Value held = converted(found->second);
    if (!condition) return held;
    return block_.named(
        fmt::format("tl.where({}, {}, {})", tensor_text(*condition), tensor_text(held), otherwise->text),
        inst.dtype, held.dims | condition->dims | otherwise->dims);
  }
  check(array.kind == ArrayKind::Parameter, "a kernel reads a value that it has not made");
  auto [text, dims] = load_text(inst);
  if (const auto begun = block_.known(text); begun && !state.is_written) text = begun->text;
  text = in_compute_type(text, array.dtype);
  if (!state.is_written) return converted(block_.named(text, array.dtype, dims));
  Value fresh{block_.new_name("v"), array.dtype, dims};
  block_.out().line("{} = {}", fresh.text, text);
  return converted(fresh);
}

// A long row that several phases read stays in the cache until the last of them, as far as it can.
std::string PhasePrinter::eviction(ArrayId array, unsigned dims) const {
  if (shape_.form != Form::Rows || shape_.is_persistent || (dims & kColumns) == 0) return "";
  size_t first = nest_.phases.size(), last = 0;
  for (size_t p = 0; p < nest_.phases.size(); ++p)
    for (const NestInst& inst : nest_.phases[p].insts)
      if (inst.op == Op::Load && inst.buffer == array && axes_.columns_of_phase[p] >= 0) {
        first = std::min(first, p);
        last = p;
      }
  if (first >= last) return "";
  return number_ == last ? ", eviction_policy=\"evict_first\"" : ", eviction_policy=\"evict_last\"";
}

Value PhasePrinter::print_index(const NestInst& inst) {
  return index_value(phase_->expressions[inst.index], inst.dtype);
}

Value PhasePrinter::index_value(const Expr& expression, DType dtype) {
  const ExpressionText e = block_.expression(expression);
  const std::string_view type = triton_type(dtype);
  const std::string text =
      e.dims == kNoDims ? fmt::format("tl.cast({}, {})", e.text, type)
                        : fmt::format(fmt::runtime(e.is_simple ? "{}.to({})" : "({}).to({})"), e.text, type);
  return {text, dtype, e.dims, nullptr, parenthesized(e)};
}

// What has one value in each group of four columns, with one element a group.
Value PhasePrinter::value_of_group(InstId id, const Quads& quads) {
  const NestInst& inst = phase_->insts[id];
  const Value whole = value(id);
  if ((whole.dims & kColumns) == 0) return whole;
  if (inst.op == Op::Index) return index_value(quads.split(phase_->expressions[inst.index]), inst.dtype);
  check(inst.op == Op::Add, "a group of columns has several values");
  const Value a = value_of_group(inst.operands[0], quads), b = value_of_group(inst.operands[1], quads);
  return block_.named(fmt::format("{} + {}", a.text, b.text), inst.dtype, a.dims | b.dims);
}

Value PhasePrinter::print_quads(const NestInst& inst, const Quads& quads) {
  block_.print_quads(quads.quad());
  const Value seed = value(inst.operands[0]), counter = value_of_group(inst.operands[1], quads);
  const NestInst& position = phase_->insts[inst.operands[2]];
  const Value sequence = index_value(
      sym::floordiv(quads.split(phase_->expressions[position.index]), loop::kPhiloxWords), position.dtype);
  const std::string_view helper = block_.has_rows() ? "uniform_numbers_of_rows" : "uniform_numbers";
  block_.needs.helpers.insert(std::string(helper));
  return block_.named(fmt::format("{}({}, {}, {})", helper, seed.text, counter.text, sequence.text),
                      inst.dtype, counter.dims | sequence.dims | kColumns);
}

// " at model.py:12 in forward", as a part of a Python string. Empty where the line is not known.
std::string PhasePrinter::where(graph::LocationId location) const {
  const auto line = nest_.lines.find(location);
  if (line == nest_.lines.end() || line->second.empty()) return "";
  std::string text = " at ";
  for (const char c : line->second) {
    if (c == '"' || c == '\\') text += '\\';
    if (std::isprint(static_cast<unsigned char>(c))) text += c;
  }
  return text;
}

Value PhasePrinter::print_bind(const NestInst& inst) {
  const Value i = value(inst.operands[0]);
  const ExpressionText size = block_.expression(phase_->expressions[inst.index]);
  const std::string text = tensor_text(i);
  const unsigned dims = i.dims | size.dims;
  const std::string wrapped =
      inst.wraps ? fmt::format("tl.where({0} < 0, {0} + {1}, {0})", text, parenthesized(size)) : text;
  const Value bound = block_.named(wrapped, DType::Int64, dims);
  if (inst.checked && checked_.insert(bound.text).second) {
    checks_indices_ = true;
    const std::string mask = block_.mask(dims);
    block_.out().line("tl.device_assert(({0} >= 0) & ({0} < {1}), \"index out of range{2}\"{3})", bound.text,
                      size.text, where(inst.asked_at.location), mask.empty() ? "" : ", " + mask);
  }
  const Value narrow =
      block_.is_wide() ? bound : block_.named(bound.text + ".to(tl.int32)", DType::Int32, dims, "i");
  block_.set_bound(inst.variable, narrow.text, dims);
  return bound;
}

Value PhasePrinter::print_scan(const NestInst& inst) {
  const Value scanned = scan_block(block_, inst.scan, value(inst.operands[0]));
  return is_whole_row() ? scanned : continue_scan(block_, inst.scan, scanned);
}

void PhasePrinter::store(ArrayId id, const Expr& offset, const Value& value, unsigned dims,
                         loop::StoreMode mode) {
  const Array& array = nest_.arrays[id];
  ArrayState& state = arrays_[id];
  // What is read back is rounded as memory rounds it.
  Value held = value;
  if (held_dtype(array.dtype) != array.dtype && value.dtype != array.dtype)
    held = block_.named(cast_text(value, array.dtype), array.dtype, value.dims);
  held.dtype = array.dtype;
  if (array.kind == ArrayKind::Register) {
    state.stored[kRegister] = held;
    return;
  }
  if (mode == loop::StoreMode::Set) state.stored[place(offset)] = held;
  if (array.kind == ArrayKind::Scratch) return;
  state.is_written = true;
  const ExpressionText at = block_.expression(offset);
  const std::string mask = block_.mask(dims);
  const std::string text = tensor_text(value);
  const std::string arguments =
      fmt::format("{}, {}{}", block_.pointer(state.name, at, dims), text, mask.empty() ? "" : ", " + mask);
  if (mode == loop::StoreMode::Set)
    block_.out().line("tl.store({})", arguments);
  else
    block_.out().line("tl.atomic_add({}, sem=\"relaxed\")", arguments);
}

void PhasePrinter::store_results(const Reduction& reduction, const std::vector<Value>& results) {
  for (const ResultStore& s : reduction.stores) {
    store(s.array, s.offset, results.at(static_cast<size_t>(s.result)), block_.row_dims(),
          loop::StoreMode::Set);
  }
}

}  // namespace oxy::backend::cuda
