// What a lowering rule works with: tensors that are evaluated where they are used.
//
// A Tensor is a view (an index transform) of a Source; a Source is either realised (a buffer of the program)
// or an element function that is written into the body of every user. A Source becomes realised when somebody
// needs memory (an extern call, an output, a mutation, a reduction's result), when several nodes use it and
// it is not cheap, or when it has grown past the limits below.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "loop/builder.h"
#include "loop/lowering.h"
#include "loop/program.h"

namespace oxy::loop {

inline constexpr size_t kMaxReads = 8;  // distinct buffers that an inlined element may read
inline constexpr int kMaxWork = 64;     // about the instructions of an inlined element

struct Tensor;
using ElementFunction = std::function<Value(BodyBuilder&, const Index&)>;
using ScalarFunction = std::function<Value(BodyBuilder&, std::span<const Value>)>;

struct Source {
  DType dtype = DType::Float32;
  std::vector<Expr> sizes;
  Device device;
  BufferId buffer;
  ElementFunction element;           // while buffer == kNoBuffer: gives compute_dtype(dtype)
  std::vector<const Source*> reads;  // distinct realised sources, sorted, at most kMaxReads + 1
  int work = 0;
  bool checks = false;        // an element may find an index out of range: none may be left out
  bool is_computed = false;   // `buffer` is written by a computation, not by a call, or from outside
  bool is_read = false;       // elements of another source, or a step, are made of its elements
  std::vector<Expr> strides;  // the layout wanted if memory must be given one; empty: contiguous
  std::shared_ptr<const Tensor> narrow;  // the same elements in a narrower type, or null
  std::vector<std::string_view> origin;  // operators folded in, for readers
  graph::LocationId location;
};

struct Tensor {
  DType dtype = DType::Float32;
  std::vector<Expr> sizes;
  std::shared_ptr<Source> source;
  std::optional<Index> map;  // the source's index over d0, d1, ...; absent: the same index

  bool is_realised() const { return source->buffer != kNoBuffer; }
  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
};

class LoweringContext {
 public:
  LoweringContext(const graph::Graph& graph, const LoweringOptions& options);

  const graph::Graph& graph() const { return graph_; }
  const TensorMeta& meta(graph::ValueId id) const { return graph_.meta(id); }
  const TensorMeta& output_meta(const graph::Node& node, size_t k = 0) const {
    return meta(node.outputs.at(k));
  }

  // --- Arguments. A Tensor argument, or a number as a rank-0 tensor of type Bool, Int64 or Float64.
  Tensor operand(const graph::Argument& argument) const;
  Tensor operand(const graph::Node& node, size_t i) const { return operand(node.args.at(i)); }
  Tensor value(graph::ValueId id) const;
  // Nodes that use the value, outputs and mutations included.
  int uses(graph::ValueId id) const { return uses_[id]; }
  std::span<const graph::NodeId> users(graph::ValueId id) const { return users_[id]; }

  // --- Results: every output that is used must be set.
  void begin_node(const graph::Node& node);
  void set(graph::ValueId id, Tensor tensor);
  bool is_set(graph::ValueId id) const { return values_[id].has_value(); }

  // --- Making tensors
  // Elementwise over inputs that are broadcast to `sizes`; fn gets the elements in their compute types and
  // returns compute_dtype(dtype). `work`: its instructions, about.
  Tensor pointwise(std::vector<Tensor> inputs, std::vector<Expr> sizes, DType dtype, ScalarFunction fn,
                   int work = 1);
  // An element function over the output's index; `inputs` are the tensors that it reads. `checks`: it binds
  // indices that may be out of range.
  Tensor generate(std::vector<Tensor> inputs, std::vector<Expr> sizes, DType dtype, ElementFunction fn,
                  int work = 1, bool checks = false);
  Tensor constant(Scalar value, std::vector<Expr> sizes, DType dtype);
  // Views cost nothing. fn maps an index into the view to an index into x. The view may leave elements out.
  Tensor view(const Tensor& x, std::vector<Expr> sizes, const std::function<Index(const Index&)>& fn);
  Tensor reshape(const Tensor& x, std::vector<Expr> sizes) const;
  Tensor expand(const Tensor& x, std::vector<Expr> sizes) const;
  Tensor permute(const Tensor& x, std::span<const int64_t> dims) const;
  Tensor cast(const Tensor& x, DType dtype);  // the value, not rounded on the way
  // The same for a copy that the program asks for: it is rounded to `dtype`. Several readers of one in a
  // wider type make it again, each from memory in the narrow type.
  Tensor converted(const Tensor& x, DType dtype);
  // The element of x (as compute_dtype) at `index`: to be called in element functions.
  static Value element(BodyBuilder& b, const Tensor& x, const Index& index);

  // One reduction over `reduced` for every element of `kept`: fn(b, kept index, reduction index). One tensor
  // of sizes `kept` a result of the kind, in `accumulate` (Bool for Any and All, Int64 for positions).
  using ReductionFunction = std::function<Value(BodyBuilder&, const Index& kept, const Index& reduced)>;
  std::vector<Tensor> reduce(ReductionKind kind, std::vector<Tensor> inputs, const std::vector<Expr>& kept,
                             const std::vector<Expr>& reduced, DType accumulate, const ReductionFunction& fn);
  // Over dimensions `dims` (sorted, not negative; empty: all of them) of x, each element passed through `fn`
  // if given. The results have size 1 in the reduced dimensions if keepdim, else none.
  std::vector<Tensor> reduce(ReductionKind kind, const Tensor& x, std::vector<int64_t> dims, bool keepdim,
                             DType accumulate, const std::function<Value(Value)>& fn = nullptr);

  // The type in which the device accumulates squares and products of elements that are computed in `dtype`.
  DType wide_accumulator(DType dtype) const {
    return dtype == DType::Float32 && options_.accumulates_in_double ? DType::Float64 : dtype;
  }

  // Whether scan() may be called. Under use_deterministic_algorithms() eager refuses some scans on devices.
  bool has_scans() const { return options_.has_scans && !options_.deterministic; }
  // For each element of x along `dim`, which has several: the results of a scan of that row, as `dtype`. Each
  // element is passed through `fn`, which gives `accumulate`.
  Tensor scan(ReductionKind kind, const Tensor& x, int64_t dim, DType accumulate, DType dtype,
              const std::function<Value(Value)>& fn);

  bool chooses_among_joined() const { return options_.chooses_among_joined; }
  int64_t roots_worth_a_kernel() const { return options_.roots_worth_a_kernel; }

  // --- Conditions of a call
  // Kernels read something for every index, also for one that is out of range. Where the size is 0 there is
  // nothing to read, and eager runs the call. Unsupported for a size that is always 0.
  void need_elements(const graph::Node& node, const Expr& size);

  // --- Memory
  void realise(const Tensor& x);  // after it, x.is_realised()
  // Realised unless its element is as cheap to compute as to load: for rules that read x in several passes.
  void realise_unless_cheap(const Tensor& x);
  // A new buffer and the tensor that is all of it; the caller adds the computations that write it.
  Tensor new_buffer(std::vector<Expr> sizes, DType dtype,
                    std::optional<std::vector<Expr>> strides = std::nullopt);
  // The same, for computations that write different elements of it.
  Tensor new_buffer_of_parts(std::vector<Expr> sizes, DType dtype);
  // for (index over sizes) target[position(index)] = fn(index). Target is new_buffer()'s. `in_order`:
  // Store's.
  using StoreFunction = std::function<Index(BodyBuilder&, const Index&)>;
  void store(const Tensor& target, const std::vector<Expr>& sizes, const ElementFunction& fn,
             const StoreFunction& position, StoreMode mode = StoreMode::Set,
             std::span<const Tensor> inputs = {}, bool in_order = false);
  // x in a buffer of its own with these strides.
  Tensor copy(const Tensor& x, std::vector<Expr> strides);

  // --- Extern calls, and the program's end
  // `writes_in_place`, `may_raise`: ExternCall's.
  void extern_call(const graph::Node& node, bool writes_in_place, bool may_raise);
  Program finish();

 private:
  std::shared_ptr<Source> new_source(std::span<const Tensor> inputs, std::vector<Expr> sizes, DType dtype,
                                     int work);
  void realise(Source& source);
  // For several readers: that their elements are read from memory.
  void keep(Source& source);
  // Before a reader that may leave elements out: those that may raise are computed all the same.
  void keep_checks(std::span<const Tensor> inputs);
  // A view that shows every element.
  Tensor whole_view(const Tensor& x, std::vector<Expr> sizes,
                    const std::function<Index(const Index&)>& fn) const;
  BufferId add_buffer(Buffer buffer);
  Tensor buffer_tensor(BufferId id);
  BufferView argument_view(graph::ValueId id);
  // x as a window on its buffer, whose layout is fixed if it was free; nothing if no strides express it.
  std::optional<BufferView> window(const Tensor& x);
  // Eager makes some results in a copy of an operand's whole storage, and they begin where the operand does.
  bool begins_behind_room(graph::ValueId id) const;
  BufferView behind_room(const Tensor& x, const TensorMeta& m);
  // Whether the value is a part of a tensor that an operator computes, so that no two elements share memory
  // unless a stride is 0.
  bool is_part_of_computed(graph::ValueId id) const;
  // The outermost dense value whose memory `id` is a view of; kNoValue: there is none.
  graph::ValueId viewed_whole(graph::ValueId id) const;
  BufferView output_view(graph::ValueId id, IdVector<BufferId, bool>& exposed);
  ProgramOutput finish_output(const graph::Output& output, IdVector<BufferId, bool>& exposed);

  const graph::Graph& graph_;
  LoweringOptions options_;
  Program program_;
  IdVector<graph::ValueId, std::optional<Tensor>> values_;
  IdVector<graph::ValueId, int> uses_;
  IdVector<graph::ValueId, std::vector<graph::NodeId>> users_;
  std::vector<BufferId> input_buffers_;
  const graph::Node* node_ = nullptr;
  Device device_;  // of the results of node_
};

}  // namespace oxy::loop
