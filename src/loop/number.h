// Elements as the interpreter computes them: floating types in `f`, rounded to their precision, the others in
// `i`.
#pragma once

#include <cstdint>

#include "loop/program.h"

namespace oxy::loop {

struct Number {
  double f = 0;
  int64_t i = 0;
};

Number rounded(Number n, DType dtype);
Number converted(Number n, DType from, DType to);
// The integers that eager converts a floating number to first: those of type `to` take their low bits. What
// does not fit gives the least of them, as x86 converts.
DType first_integer(DType to);
// InternalError for an Op that is not of this kind.
double unary(Op op, double x);
int64_t unary(Op op, int64_t x, DType dtype);
double binary(Op op, double a, double b);
int64_t binary(Op op, int64_t a, int64_t b);  // UserError if an integer is divided by zero

}  // namespace oxy::loop
