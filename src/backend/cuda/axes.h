// The loops of a nest as the axes of a program's block.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/cuda/launch_shape.h"

namespace oxy::backend::cuda {

struct Axis {
  Expr variable;
  Expr extent = 1;
  int64_t block = 1;  // iterations of it in a program's block
};

struct Axes {
  std::optional<Axis> rows;   // Rows: the outer loops as one, or the last of them; Tile: the loops of the rows
  std::vector<Axis> columns;  // Flat: the outer loops as one; Tile: the last; Rows: each space of the phases
  std::optional<Axis> rest;   // the other outer loops as one; one iteration a program
  std::vector<int> columns_of_phase;  // by phase: its axis among `columns`; -1: none
  Expr programs = 1;
};

// Replaces the loop variables in all expressions of the nest by the axes' variables. Unsupported if a phase
// has loops and reduction loops, which no form holds.
Axes make_axes(LoopNest& nest, const LaunchShape& shape);

// Whether every value that passes between phases in a Scratch row is read where it was stored, so that it
// needs no memory. `nest` has axes.
bool passes_in_registers(const LoopNest& nest, const Axes& axes);

}  // namespace oxy::backend::cuda
