// Random numbers by fours. One draw of Philox gives four words, and elements of a dropout that are neighbours
// in memory mostly have the words of one draw, in their order. Such a block draws once for four columns.
#pragma once

#include "backend/cuda/axes.h"

namespace oxy::backend::cuda {

// The columns of the axis in groups: column 4 * quad + k.
class Quads {
 public:
  // Axes of one iteration and blocks that 4 does not divide have no groups: are_of_one_draw() is false.
  explicit Quads(const Axis& columns);

  // Which group it is: a variable.
  const Expr& quad() const { return quad_; }
  // Whether the operands of Op::Philox name the words of one draw in each group.
  bool are_of_one_draw(const Phase& phase, const NestInst& philox) const;
  // The expression with the columns as groups. Where a group has one value, it depends on quad() alone.
  Expr split(const Expr& e) const;

 private:
  bool is_same_in_group(const Expr& e) const;
  bool is_same_in_group(const Phase& phase, loop::InstId id) const;

  const Axis& columns_;
  Expr quad_, word_;
};

}  // namespace oxy::backend::cuda
