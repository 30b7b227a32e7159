// The phases of a loop nest as source text: bodies, loops over lanes, reductions, stores.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/print/op_text.h"
#include "backend/cpu/print/writer.h"
#include "backend/nests/loop_nest.h"

namespace oxy::backend::cpu {

// The elements of an array from a place on that is the same for all lanes.
struct RowPointer {
  ArrayId array;
  Expr place;
  std::string name;
};

// What all phases of a kernel share.
struct KernelScope {
  const LoopNest& nest;
  Writer& out;
  std::set<std::string>& functions;
  int lanes = 1;
  IdVector<ArrayId, std::string> array_names;  // pointer or register variable
  std::map<int64_t, std::string> variables;    // loop variables, bound variables and symbols in scope, by id
  std::vector<std::pair<Expr, std::string>> named;  // divisions that have been computed
  std::vector<RowPointer> rows;
  std::set<int64_t> row_variables;  // those that the places of `rows` may use
  int next_name = 0;
  int64_t lane_variable = -1;    // id of the variable whose iterations are lanes; -1: scalar code
  std::set<int64_t> lane_bound;  // bound variables that differ by lane

  // Of a division that has been computed; else empty.
  std::string name_of(const Expr& division) const {
    for (const auto& [expression, name] : named)
      if (expression == division) return name;
    return "";
  }
};

// The terms of e that are made of these variables, without its constant.
Expr terms_of(const Expr& e, const std::set<int64_t>& variables);

class PhasePrinter {
 public:
  PhasePrinter(KernelScope& scope, const Phase& phase);

  // What depends neither on the phase's loops nor on lanes, with VectorAxis::Outer: to be printed before its
  // lane loop.
  void print_uniform();
  void print();
  // Loads the tiles of transposed loads (backend::is_transposed) for the lanes at the lane variable and the
  // rows from `row` on, `rows` of them; then the body for one row, whose variable has been given a name.
  void print_tiles(const std::string& row, const std::string& rows);
  void print_tile_row(const std::string& row_in_tile);

 private:
  struct Accumulator;

  void classify();
  int depth_of(const Expr& e) const;
  bool varies(const Expr& e) const;

  void print_insts(int depth);
  void print_inst(InstId id);
  void print_bind(InstId id);
  Operand operand(InstId id) const;
  DType moved_dtype(InstId id) const;
  OpContext context(bool vector);
  std::string text(const Expr& e, bool each_lane = false);
  // A pointer to elements of the array, and the offset from there of the element at `offset`.
  std::pair<std::string, Expr> located(ArrayId array, const Expr& offset) const;
  std::string load_text(const NestInst& inst, DType dtype, bool vector);
  std::string masked_load_text(const NestInst& inst, bool vector, const Operand& mask);
  std::string index_text(const NestInst& inst, bool vector);
  // Whether nothing uses the value but stores to memory, which round it themselves.
  bool is_only_stored(InstId id) const;
  void store(ArrayId array, const Expr& place, Operand value, loop::StoreMode mode);
  void print_stores();

  void print_loop(const LoopVariable& variable, const std::string& name, int depth);
  void print_inner(size_t loop);  // loops from number `loop` on, and what they hold
  void print_reduction_loops(size_t loop);
  void print_lane_loop(const LoopVariable& variable, const std::string& name, int depth);
  void print_lane_reduction(const LoopVariable& variable, const std::string& name, int depth);

  void declare_accumulators();
  void accumulate();
  void flush_accumulators();
  void flush_welford(size_t i);
  void print_results();
  void reduce_lanes(size_t k);
  std::string flat_position();
  // Whether the last reduction loop runs by blocks, so that no accumulator adds up too much.
  bool is_blocked() const;
  // Whether the sums of its blocks are added in float64.
  bool has_wide_total(const Reduction& r) const;
  // The reduction loop by blocks of whose iterations the totals of the loops inside it go on in float64.
  // Where they are many, one float32 would lose what is added to it.
  struct Totals {
    size_t loop;
    int64_t block;
  };
  std::optional<Totals> totals() const;
  void flush_totals();
  bool has_welford() const;
  // Elements of the first and of every other block of a blocked reduction, and the loop over the blocks.
  int64_t first_block() const;
  int64_t block() const;
  // As text: whether a sum has several blocks, where only a symbol's value tells. With one, the blocks' total
  // is left out. Nothing where that is known, and for blocks within an outer reduction loop.
  std::optional<std::string> several_blocks_condition();
  std::string block_loop(const std::string& end) const;
  std::string block_end(const std::string& end) const;

  KernelScope& scope_;
  const Phase& phase_;
  bool along_reduction_ = false;  // lanes run along the last reduction loop
  int unroll_ = 1;                // accumulators a reduction along lanes
  // How an instruction's value is printed.
  struct Printed {
    DType dtype = DType::Float32;
    bool varies = false;  // by lane
    int depth = 0;        // of the loop that holds it; -1: before an outer lane loop
    std::string name;
    std::string tile;  // of a transposed load
  };
  IdVector<InstId, Printed> printed_;
  std::string row_in_tile_;
  std::vector<std::string> accumulators_;
  std::vector<std::vector<Operand>> results_;
};

}  // namespace oxy::backend::cpu
