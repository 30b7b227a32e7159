// Programs whose results name numbers that are computed once.
#pragma once

#include "sym/program/integer_program.h"

namespace oxy::sym {

// A variable that stands for an expression.
struct Definition {
  int64_t variable;  // its id
  Expr value;        // over inputs and the definitions before
};

// The program without conditions of these results, which are over inputs and definitions. Throws as the
// constructor of IntegerProgram does.
IntegerProgram compile(std::span<const int64_t> inputs, std::span<const Definition> definitions,
                       std::span<const Expr> results);

}  // namespace oxy::sym
