// A phase of a loop nest as lines of a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/print/block_printer.h"
#include "backend/cuda/print/quads.h"

namespace oxy::backend::cuda {

// What the phases so far have done with an array.
struct ArrayState {
  std::string name;                     // of the pointer; empty unless it is a Parameter
  std::map<std::string, Value> stored;  // by place: what was stored there and is held in registers
  bool is_written = false;              // in memory
};

class PhasePrinter {
 public:
  // `is_precise`: OpContext's.
  PhasePrinter(const LoopNest& nest, const LaunchShape& shape, const Axes& axes, BlockPrinter& block,
               IdVector<ArrayId, ArrayState>& arrays, bool is_precise)
      : nest_(nest), shape_(shape), axes_(axes), block_(block), arrays_(arrays), is_precise_(is_precise) {}

  // Loads that need not wait for the kernels before this one: of what no kernel of the plan writes.
  void print_loads_before_wait();
  void print(size_t phase);  // in order
  void store_sums();         // of parts of rows, behind the loop over them
  bool checks_indices() const { return checks_indices_; }

 private:
  // Other threads of the program may have stored what the phase loads.
  bool reads_what_others_stored() const;
  void print_body();
  std::set<int64_t> bound_indices() const;
  bool is_indexed(const NestInst& load, const std::set<int64_t>& bound) const;
  void print_loads_of_rows();
  void print_loads_with_columns(size_t first, const std::function<bool(const NestInst&)>& is_wanted);
  bool is_of_columns(const NestInst& load) const;
  bool makes_row_for_all() const;
  bool may_be_ahead(const NestInst& load) const;
  void print_loads_ahead();
  Value print_inst(const NestInst& inst);
  Value print_load(const NestInst& inst);
  // What has to be true for an element to be loaded, and the value elsewhere; none if all are loaded.
  std::pair<std::optional<Value>, std::optional<Value>> condition_of(const NestInst& load) const;
  // The elements as memory holds them, and along which dimensions there are several.
  std::pair<std::string, unsigned> load_text(const NestInst& inst);
  std::string eviction(ArrayId array, unsigned dims) const;
  Value print_index(const NestInst& inst);
  Value index_value(const Expr& expression, DType dtype);
  Value value_of_group(loop::InstId id, const Quads& quads);
  Value print_quads(const NestInst& inst, const Quads& quads);
  Value print_bind(const NestInst& inst);
  Value print_scan(const NestInst& inst);
  bool is_whole_row() const;  // the block has the phase's row as a whole, which no loop walks
  std::string where(graph::LocationId location) const;
  void add_up(const ElementStore& store);
  void store(ArrayId array, const Expr& offset, const Value& value, unsigned dims, loop::StoreMode mode);
  void store_results(const Reduction& reduction, const std::vector<Value>& results);
  static std::string place(const Expr& offset);
  const Value& value(loop::InstId id) const { return values_[id]; }

  const LoopNest& nest_;
  const LaunchShape& shape_;
  const Axes& axes_;
  BlockPrinter& block_;
  IdVector<ArrayId, ArrayState>& arrays_;
  bool is_precise_;
  bool checks_indices_ = false;
  std::set<std::string> checked_;  // indices, by name
  std::vector<std::string> sums_;  // lines that store them
  std::set<int> printed_columns_;
  const Phase* phase_ = nullptr;
  size_t number_ = 0;
  IdVector<loop::InstId, Value> values_;  // of the phase
};

}  // namespace oxy::backend::cuda
