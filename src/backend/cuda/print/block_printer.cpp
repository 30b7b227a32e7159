#include "backend/cuda/print/block_printer.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

bool indices_fit(const LoopNest& nest, const Axes& axes) {
  const auto axis_fits = [](const Axis& axis) { return fits_int32(axis.extent); };
  bool fits = std::ranges::all_of(axes.columns, axis_fits) && fits_int32(axes.programs) &&
              (!axes.rows || axis_fits(*axes.rows));
  LoopNest copy = nest;
  for (Phase& phase : copy.phases)
    for_each_expression(phase, [&](const Expr& e) { fits = fits && fits_int32(e); });
  return fits;
}

bool is_name(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }) &&
         std::isalpha(static_cast<unsigned char>(text[0])) != 0;
}

}  // namespace

BlockPrinter::BlockPrinter(const LoopNest& nest, const LaunchShape& shape, const Axes& axes)
    : nest_(nest),
      shape_(shape),
      axes_(axes),
      has_rows_(shape.rows > 1 || shape.part > 0),
      is_wide_(!indices_fit(nest, axes)) {}

std::string BlockPrinter::new_name(std::string_view prefix) {
  return fmt::format("{}{}", prefix, next_++);
}

void BlockPrinter::open_loop() {
  loops_.push_back({Lines(out().depth() + 1), {}});
}

void BlockPrinter::close_loop(const std::string& head) {
  const Loop loop = std::move(loops_.back());
  loops_.pop_back();
  out().line("{}", head);
  out().append(loop.lines);
}

Value BlockPrinter::named(const std::string& text, DType dtype, unsigned dims, std::string_view prefix) {
  if (is_name(text)) return {text, dtype, dims};
  const bool is_inside = !loops_.empty() && (dims & loop_dims()) != 0;
  if (const auto found = known_.find(text); found != known_.end()) return found->second;
  if (is_inside)
    if (const auto found = loops_.back().known.find(text); found != loops_.back().known.end())
      return found->second;
  Value value{new_name(prefix), dtype, dims};
  (is_inside ? loops_.back().lines : body_).line("{} = {}", value.text, text);
  (is_inside ? loops_.back().known : known_).emplace(text, value);
  return value;
}

std::optional<Value> BlockPrinter::known(const std::string& text) const {
  const auto found = known_.find(text);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

std::string BlockPrinter::axis_name(int columns) const {
  const std::string name = shape_.form == Form::Flat ? "i" : "column";
  return columns == 0 ? name : fmt::format("{}{}", name, columns + 1);
}

std::string BlockPrinter::columns_name() const {
  return columns_ == 0 ? "COLUMNS" : fmt::format("COLUMNS{}", columns_ + 1);
}

std::string BlockPrinter::in_bounds(const Axis& axis, const std::string& name) const {
  const auto extent = axis.extent.as_constant();
  return extent && *extent % axis.block == 0 && *extent > 0 ? "" : name + "_in";
}

std::string BlockPrinter::block_shape(unsigned dims) const {
  if (!has_rows_) return fmt::format("[{}]", columns_name());
  const bool columns = (dims & kColumns) != 0;
  return fmt::format("[{}, {}]", (dims & kRows) != 0 ? "ROWS" : "1", columns ? columns_name() : "1");
}

std::string BlockPrinter::mask(unsigned dims) const {
  const std::string rows = (dims & kRows) != 0 ? row_mask_ : "";
  const std::string columns = (dims & kColumns) != 0 ? column_mask_ : "";
  return rows.empty() ? columns : columns.empty() ? rows : rows + " & " + columns;
}

std::string BlockPrinter::whole(const Value& value) const {
  const unsigned all = row_dims() | kColumns;
  if (value.dims == all) return value.text;
  return fmt::format("tl.broadcast_to({}, {})", tensor_text(value), block_shape(all));
}

void BlockPrinter::set_variable(const Expr& variable, std::string name, unsigned dims) {
  set_bound(variable.variable_id(), std::move(name), dims);
}

void BlockPrinter::set_bound(int64_t id, std::string name, unsigned dims) {
  variables_[id] = {std::move(name), dims, true};
}

ExpressionText BlockPrinter::expression(const Expr& e) {
  const ExpressionContext context{[&](const Expr& variable) {
                                    const auto found = variables_.find(variable.variable_id());
                                    check(found != variables_.end(),
                                          "a kernel uses an index that nothing gives: " + variable.str());
                                    return found->second;
                                  },
                                  [&](const ExpressionText& part) {
                                    const Value value = named(part.text, DType::Int64, part.dims, "i");
                                    return ExpressionText{value.text, value.dims, true};
                                  },
                                  needs};
  return expression_text(e, context);
}

std::string BlockPrinter::pointer(const std::string& array, const ExpressionText& offset,
                                  unsigned dims) const {
  const unsigned missing = dims & ~offset.dims;
  std::string text = array;
  if (offset.text != "0") text += offset.is_simple ? " + " + offset.text : " + (" + offset.text + ")";
  if (missing != 0) text += fmt::format(" + tl.zeros({}, tl.int32)", block_shape(dims));
  return text;
}

void BlockPrinter::print_axes() {
  const std::string program = is_wide_ ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
  std::string row_program = program;
  if (shape_.form == Form::Tile || axes_.rest) {
    body_.line("program = {}", program);
    row_program = "program";
  }
  if (shape_.form == Form::Tile) {
    const std::string tiles =
        parenthesized(expression(sym::ceildiv(axes_.columns[0].extent, axes_.columns[0].block)));
    body_.line("column_tile = program % {}", tiles);
    body_.line("program = program // {}", tiles);
  }
  if (axes_.rest) {
    const std::string row_tiles =
        parenthesized(expression(sym::ceildiv(axes_.rows->extent, axes_.rows->block)));
    body_.line("rest = program // {}", row_tiles);
    body_.line("program = program % {}", row_tiles);
    if (axes_.rest->variable.kind() == sym::Kind::Variable)
      set_variable(axes_.rest->variable, "rest", kNoDims);
  }
  if (shape_.part > 0) return print_part_of_rows(program);
  if (axes_.rows) {
    if (has_rows_)
      body_.line("row = {} * ROWS + tl.arange(0, ROWS)[:, None]", row_program);
    else
      body_.line("row = {}", row_program);
    if (has_rows_) row_mask_ = in_bounds(*axes_.rows, "row");
    if (!row_mask_.empty()) body_.line("{} = row < {}", row_mask_, expression(axes_.rows->extent).text);
    if (axes_.rows->variable.kind() == sym::Kind::Variable)
      set_variable(axes_.rows->variable, "row", row_dims());
  }
  if (shape_.form != Form::Rows) {
    choose_columns(0);
    print_columns(shape_.form == Form::Tile ? "column_tile * COLUMNS" : program + " * COLUMNS");
  }
}

void BlockPrinter::print_part_of_rows(const std::string& program) {
  const std::string extent = expression(axes_.rows->extent).text;
  body_.line("program = {}", program);
  body_.line("end = tl.minimum((program + 1) * {}, {})", shape_.part, extent);
  open_loop();
  out().line("row = start + tl.arange(0, ROWS)[:, None]");
  const auto count = axes_.rows->extent.as_constant();
  if (!count || *count % shape_.rows != 0 || shape_.part % shape_.rows != 0) {
    row_mask_ = "row_in";
    out().line("row_in = row < end");
  }
  if (axes_.rows->variable.kind() == sym::Kind::Variable) set_variable(axes_.rows->variable, "row", kRows);
}

void BlockPrinter::close_rows() {
  const std::string range = fmt::format("program * {}, end, ROWS", shape_.part);
  close_loop(shape_.stages > 0
                 ? fmt::format("for start in tl.range({}, num_stages={}):", range, shape_.stages)
                 : fmt::format("for start in range({}):", range));
}

void BlockPrinter::print_columns(const std::string& start) {
  const Axis& axis = columns();
  column_starts_[columns_] = start;
  axes_with_quads_.erase(columns_);
  const std::string name = axis_name(columns_);
  const std::string range = fmt::format("tl.arange(0, {}){}", columns_name(), has_rows_ ? "[None, :]" : "");
  std::string value = start.empty() ? range : start + " + " + range;
  if (is_wide_ && shape_.form == Form::Rows) value = fmt::format("({}).to(tl.int64)", value);
  Lines& lines = shape_.part > 0 ? body_ : out();
  lines.line("{} = {}", name, value);
  set_variable(axis.variable, name, kColumns);
  column_mask_ = in_bounds(axis, name);
  if (!column_mask_.empty()) lines.line("{} = {} < {}", column_mask_, name, expression(axis.extent).text);
}

void BlockPrinter::print_quads(const Expr& variable) {
  if (!axes_with_quads_.insert(columns_).second) return;
  const std::string name = axis_name(columns_) + "_quad";
  const std::string range =
      fmt::format("tl.arange(0, {} // 4){}", columns_name(), has_rows_ ? "[None, :]" : "");
  const std::string& start = column_starts_[columns_];
  std::string value = start.empty() ? range : fmt::format("({}) // 4 + {}", start, range);
  if (is_wide_ && shape_.form == Form::Rows) value = fmt::format("({}).to(tl.int64)", value);
  out().line("{} = {}", name, value);
  set_variable(variable, name, kColumns);
}

void BlockPrinter::choose_columns(int axis) {
  columns_ = axis;
  column_mask_ = axis < 0 ? "" : in_bounds(columns(), axis_name(axis));
}

}  // namespace oxy::backend::cuda
