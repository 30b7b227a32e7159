// Which part of a loop nest one program of a Triton kernel works on, and by how many warps.
//
// Kernels made of loop nests move memory: their limit is bytes over the bandwidth of the device's memory. The
// shape is chosen so that whole lines of memory are read, enough bytes are under way for every
// multiprocessor, and values fit in registers. Nothing is tried out: the same nest has the same shape
// everywhere. With mode="max-autotune" others are timed beside it (tune/).
#pragma once

#include <cstdint>
#include <vector>

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cuda {

enum class Form : uint8_t {
  Flat,  // a block of iterations of the outer loops, taken as one loop
  Tile,  // a rectangle: of the last outer loop and of others along which some operands are contiguous
  Rows,  // some iterations of the outer loops, each with all elements of the phases' loops: the rows
};

struct LaunchShape {
  Form form = Form::Flat;
  int64_t rows = 1;           // Rows: outer iterations a program; Tile: iterations of tile_rows()
  int64_t columns = 1024;     // Flat, Tile: iterations; Rows: elements of a row in registers at once
  bool is_persistent = true;  // Rows: a row is in registers as a whole and is read once
  int64_t part = 0;           // Rows: of all rows of a program, which it goes through in turn; 0: `rows`
  size_t tile_loop = 0;       // Tile: the first of the outer loops that the rows of the tile run along
  size_t tile_loops = 1;      // Tile: how many those are, side by side
  int warps = 4;
  // Rows that a program walks in steps: those whose loads are under way together; 0: Triton's choice
  int stages = 0;

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

// Elements of the longest row that stays in registers.
inline constexpr int64_t kLongestPersistentRow = 16384;

// Elements of short rows that a program takes together where it goes through many.
inline constexpr int64_t kRowBlock = 2048;

LaunchShape choose_launch_shape(const LoopNest& nest);

// The loops that the rows of a tile run along, taken as one.
std::vector<LoopVariable> tile_rows(const LoopNest& nest, const LaunchShape& shape);

// The least power of 2 that is not below n; 1 for 0.
int64_t power_of_two(int64_t n);

}  // namespace oxy::backend::cuda
