// A kernel before it is text: what the scheduler makes of a fused group and every code generator prints.
//
//   for (outer) {                 // parallel: the launch splits this space
//     phase; phase; ...           // each a loop nest of its own: for (loops) for (reduction) body
//   }
//
// Arrays are addressed by one linear offset in elements. Values pass between phases through arrays: Register
// (one element an iteration of `outer`), Scratch (a row of the thread's own) or Parameter (memory that others
// see too).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/shared/nest_expressions.h"
#include "loop/program.h"

namespace oxy::backend {

using loop::BufferId;
using loop::IndexId;
using loop::InstId;
using loop::LoopVariable;
using loop::ReductionKind;

struct Array;
using ArrayId = Id<Array>;
using NestInst = loop::InstOver<ArrayId>;  // Load reads an array of the nest

enum class ArrayKind : uint8_t { Parameter, Scratch, Register, Dead };

struct Array {
  ArrayKind kind = ArrayKind::Parameter;
  DType dtype = DType::Float32;
  BufferId buffer;                // of the program; for Parameter
  Expr elements = 0;              // of a Scratch row
  Expr scratch_offset = 0;        // of a Scratch row, bytes; filled in by finish()
  bool is_read = false;           // Parameter: by this kernel
  bool is_written = false;        // likewise
  bool is_fixed = false;          // Parameter: loop::Buffer's
  std::vector<Expr> empty_sizes;  // Parameter: those of the buffer's sizes that may be 0
};

struct ElementStore {
  ArrayId array;
  Expr offset;
  InstId value;
  loop::StoreMode mode = loop::StoreMode::Set;
  bool in_order = false;  // loop::Store's
  loop::RowPart part;     // likewise; `offset` is that in a part
};

struct ResultStore {
  ArrayId array;
  Expr offset;     // over outer and the phase's loops
  int result = 0;  // number of the reduction's result
};

struct Reduction {
  ReductionKind kind = ReductionKind::Sum;
  DType accumulate = DType::Float32;
  InstId value;
  std::vector<ResultStore> stores;
  std::optional<Expr> counted;  // loop::Computation's, over outer and the phase's loops
};

struct Phase {
  std::vector<LoopVariable> loops;
  std::vector<LoopVariable> reduction;
  // Load: `index` names the offset in the array. Index, BindIndex: it names the expression or size.
  IdVector<InstId, NestInst> insts;
  IdVector<IndexId, Expr> expressions;
  std::vector<ElementStore> stores;   // made at every iteration of loops and reduction, after the body
  std::vector<Reduction> reductions;  // all over `reduction`
  ArrayId condition;                  // a Bool Register: the phase runs where it is true; none: always
};

enum class VectorAxis : uint8_t {
  None,   // scalar code
  Outer,  // lanes are consecutive iterations of the last outer loop
  Phase,  // lanes are consecutive iterations of a phase's last loop or last reduction loop (Phase by Phase)
};

// A run-time integer of the kernel, and what a launch passes for it.
struct Symbol {
  Expr variable;
  Expr value;  // the variable itself if it is a size of the program's
};

struct LoopNest {
  std::string comment;  // the operators computed, for readers
  std::vector<LoopVariable> outer;
  IdVector<ArrayId, Array> arrays;
  std::vector<Phase> phases;
  VectorAxis axis = VectorAxis::None;
  // With VectorAxis::Outer: some load runs along the last outer loop but one where lanes run along the last.
  // Both are walked in square tiles, and such loads are transposed in registers.
  bool tiled = false;
  bool serial = false;                             // one thread runs it all
  std::map<graph::LocationId, std::string> lines;  // of the user's, that asked for indices that are checked

  // Filled in by finish(): the size variables that expressions use, in the order of the kernel's `sizes`.
  // What size_arguments.h and long_formulas.h make symbols of stands behind them.
  std::vector<Symbol> symbols;
};

// Calls fn(Expr&), or fn(const Expr&), for each index, offset and value of the phase.
template <class AnyPhase, class Fn>
void for_each_expression(AnyPhase& phase, const Fn& fn) {
  for (auto& e : phase.expressions) fn(e);
  for (auto& store : phase.stores) fn(store.offset);
  for (auto& reduction : phase.reductions)
    for (auto& store : reduction.stores) fn(store.offset);
  for (auto& reduction : phase.reductions)
    if (reduction.counted) fn(*reduction.counted);
}

// Removes dead instructions, merges adjacent loops that every access crosses with one stride, removes phases
// without iterations if there are others, places scratch rows and numbers symbols.
void finish(LoopNest& nest);

// Rows of a tile that one iteration of a tiled nest's launch walks. No fewer than any target's lanes of four
// bytes.
inline constexpr int64_t kTileSide = 64;

// Whether lanes run along `load`'s other loop: its stride is 1 along the last outer loop but one, not along
// the last.
bool is_transposed(const LoopNest& nest, const Phase& phase, const NestInst& load);

// Iterations that a launch splits over threads (none if any loop around all phases has none), and the work of
// one of them in nanoseconds, about.
Expr launch_extent(const LoopNest& nest);
double nanoseconds_per_iteration(const LoopNest& nest);
Expr scratch_bytes(const LoopNest& nest);

// How many of the phase's loops (loops, then reduction) have to be open before an element of `array` is
// read: with fewer, there may be no iteration that reads it, and no memory.
int loops_before_reading(const LoopNest& nest, const Phase& phase, const Array& array);

// Bytes that element type `dtype` has in memory.
inline int64_t bytes(DType dtype) {
  return static_cast<int64_t>(item_size(dtype));
}

// Whether the phase's lanes run along its last reduction loop (else along its last loop), with
// VectorAxis::Phase.
bool lanes_along_reduction(const LoopNest& nest, const Phase& phase);

// Replaces a loop variable in every offset and expression.
void substitute(LoopNest& nest, const Expr& variable, const Expr& value);

// The rows of a part that the nest adds up columns in; 0 if it adds up none.
int64_t rows_of_part(const LoopNest& nest);

std::string print(const LoopNest& nest);

}  // namespace oxy::backend
