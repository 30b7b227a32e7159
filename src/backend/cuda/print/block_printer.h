// Values of a kernel's block: names, masks, and where a line of text belongs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/cuda/axes.h"
#include "backend/cuda/print/expression_text.h"
#include "backend/cuda/print/lines.h"
#include "backend/cuda/print/op_text.h"

namespace oxy::backend::cuda {

// What all phases of a kernel share while it is printed. Equal texts are one value: each is computed once, in
// the loop that it needs.
class BlockPrinter {
 public:
  BlockPrinter(const LoopNest& nest, const LaunchShape& shape, const Axes& axes);

  // --- Lines
  Lines& out() { return loops_.empty() ? body_ : loops_.back().lines; }
  void open_loop();                          // following lines are in a loop, one level deeper
  void close_loop(const std::string& head);  // `head`, and the lines since open_loop
  Lines& around_loops() { return body_; }    // lines before the loop that is open
  // A name for what `text` computes; before the loop if it does not vary along columns.
  Value named(const std::string& text, DType dtype, unsigned dims, std::string_view prefix = "v");
  std::string new_name(std::string_view prefix);
  // The value that named() gave to the text, if it did, before any loop.
  std::optional<Value> known(const std::string& text) const;

  // --- Blocks
  bool has_rows() const { return has_rows_; }
  unsigned row_dims() const { return has_rows_ ? kRows : kNoDims; }
  void choose_columns(int axis);  // of the phase at hand; -1: none
  std::string block_shape(unsigned dims) const;
  std::string columns_name() const;  // the constant with the size of the block along columns
  const Axis& columns() const { return axes_.columns[static_cast<size_t>(columns_)]; }
  int reduced_dimension() const { return has_rows_ ? 1 : 0; }
  std::string widened(const std::string& reduced) const {
    return has_rows_ ? reduced + "[:, None]" : reduced;
  }
  // What is true where the block is inside the loops along `dims`; empty if all of it is.
  std::string mask(unsigned dims) const;
  // `value` with elements for all of the block.
  std::string whole(const Value& value) const;

  // --- Indices
  void set_variable(const Expr& variable, std::string name, unsigned dims);
  void set_bound(int64_t id, std::string name, unsigned dims);
  ExpressionText expression(const Expr& e);
  // A pointer to element `offset` of the array for each element along `dims` at least.
  std::string pointer(const std::string& array, const ExpressionText& offset, unsigned dims) const;
  // Whether indices have 64 bits.
  bool is_wide() const { return is_wide_; }

  void
  print_axes();  // the lines that give the axes' variables their values; opens the loop over a part's rows
  void close_rows();                             // closes it
  void print_columns(const std::string& start);  // those of the columns; `start`: of a loop's step, or empty
  // The line that gives the variable the numbers of the groups of four columns, unless it is there.
  void print_quads(const Expr& variable);

  Needs needs;
  const std::string& text() const { return body_.text(); }

 private:
  struct Loop {
    Lines lines;
    std::unordered_map<std::string, Value> known;
  };

  void print_part_of_rows(const std::string& program);
  // What varies inside the loops.
  unsigned loop_dims() const { return shape_.part > 0 ? kRows : kColumns; }
  std::string in_bounds(const Axis& axis, const std::string& name) const;
  std::string axis_name(int columns) const;

  const LoopNest& nest_;
  const LaunchShape& shape_;
  const Axes& axes_;
  bool has_rows_;
  bool is_wide_ = false;
  int columns_ = -1;
  Lines body_{1};
  std::unordered_map<std::string, Value> known_;
  std::vector<Loop> loops_;
  std::map<int64_t, ExpressionText> variables_;
  std::string row_mask_;
  std::string column_mask_;
  std::map<int, std::string> column_starts_;  // by axis: of the columns that were printed last
  std::set<int> axes_with_quads_;             // whose quads of these columns have been printed
  int next_ = 0;
};

}  // namespace oxy::backend::cuda
