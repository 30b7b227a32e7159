// The loop program: what lowering makes of a graph and what the scheduler fuses.
//
// Buffers are logical n-dimensional arrays; loads and stores name an element by its logical index (one
// expression a dimension), so that the memory layout of an intermediate stays open until something needs it
// fixed. A Computation is one perfect loop nest with a straight-line element program (a Body) in single
// assignment. Views never appear: lowering folds them into the index expressions. ExternCalls run eager
// kernels or library routines on whole buffers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "aten/tensor_meta.h"
#include "base/id.h"
#include "graph/graph.h"

namespace oxy::loop {

struct Buffer;
using BufferId = Id<Buffer>;
inline constexpr BufferId kNoBuffer;

using IndexId = Id<struct IndexTag>;  // of an index that instructions name
inline constexpr IndexId kNoIndex;

enum class BufferKind : uint8_t {
  Input,         // graph input `source`: its layout is fixed
  Constant,      // graph constant with handle `source`: its layout is fixed
  Intermediate,  // written by one step of the program (scatters: by several, in order; parts: in any)
};

struct Buffer {
  std::string name;  // "arg0", "buf3"
  DType dtype = DType::Float32;
  std::vector<Expr> sizes;
  BufferKind kind = BufferKind::Intermediate;
  int32_t source = -1;
  // Fixed layout in elements; none while it is still free (the scheduler picks, contiguous by default).
  std::optional<std::vector<Expr>> strides;
  Expr offset = 0;  // elements, nonzero for inputs that are views into a larger storage
  Device device;
  bool is_of_parts = false;  // the steps that write it write different elements
  bool is_fixed = false;     // an input or constant that nothing writes while the plan runs; the scheduler's
};

enum class Op : uint8_t {
  // sources of values
  Load,  // element of `buffer` at Body::indices[index]; operands[0] (a Bool, optional): only where true, and
         // then operands[1] is the value elsewhere and the address is not touched
  Constant,  // `constant`, converted to dtype
  Index,     // value of the single expression Body::indices[index][0], as dtype (an integer type)
  // one operand
  Cast,
  Bitcast,
  Neg,
  Abs,
  Sign,  // 0 for a NaN
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Sigmoid,
  NormalCdf,  // the share of a standard normal distribution below the operand
  Erf,
  Erfc,
  Floor,
  Ceil,
  Trunc,
  Round,  // half to even
  IsNan,
  IsInf,
  Not,  // Not: logical for Bool, bitwise for integers
  // two operands of equal dtype
  Add,
  Sub,
  Mul,
  Div,       // floating division
  FloorDiv,  // Python's //, integers and floats
  TruncDiv,  // C's integer /, or trunc(a / b)
  Mod,       // Python's %
  Fmod,      // C's %
  Pow,
  Atan2,
  Minimum,
  Maximum,  // a NaN operand gives NaN
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,  // result Bool
  // three
  Where,   // Bool, then, else
  Fma,     // a * b + c with one rounding
  Philox,  // of Int64 seed, counter and position: the random Float32 of philox_uniform() (random_bits.h)
  // indirect indexing: operands[0] (Int64) becomes the index variable with id `variable` in later
  // expressions.
  // Body::indices[index][0] is the size of the indexed dimension: negative values have it added if `wraps`; a
  // value outside [0, size) makes the kernel report an index error if `checked`.
  BindIndex,
  // In phases of loop nests alone: the operand at the iterations of the phase's loops up to this one, which
  // run in their order, combined as `scan` says.
  Scan,
};

enum class ReductionKind : uint8_t {
  None,
  Sum,
  Prod,
  Max,
  Min,
  Any,
  All,
  ArgMax,
  ArgMin,         // one value; result Int64: the first position in the flattened reduction space
  Welford,        // one value; results: mean, sum of squared deviations
  OnlineSoftmax,  // one value; results: maximum, sum of exp(x - maximum)
  // Scans: one value and a result at each iteration of the reduction loops, of it and those before it.
  RunningSum,
  RunningProd,
  RunningLogSumExp,
};

constexpr bool is_scan(ReductionKind kind) {
  return kind >= ReductionKind::RunningSum;
}

using InstId = Id<struct InstTag>;
inline constexpr InstId kNoInst;

struct Scalar {
  std::variant<bool, int64_t, double> value = int64_t{0};
  // By their bits: 0.0 is not -0.0.
  friend bool operator==(const Scalar& a, const Scalar& b) {
    const double *x = std::get_if<double>(&a.value), *y = std::get_if<double>(&b.value);
    return x && y ? std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y) : a.value == b.value;
  }
};

// The user's line that asked for an instruction. Instructions are equal whoever asked for them.
struct AskedAt {
  graph::LocationId location;
  friend bool operator==(AskedAt, AskedAt) { return true; }
};

// `Memory` is the kind of id of what a Load reads.
template <class Memory>
struct InstOver {
  Op op = Op::Constant;
  DType dtype = DType::Float32;  // of the result
  std::array<InstId, 3> operands = {kNoInst, kNoInst, kNoInst};
  Memory buffer;
  IndexId index;
  Scalar constant;
  int64_t variable = -1;
  bool checked = true;
  bool wraps = true;
  AskedAt asked_at;                          // of a BindIndex
  ReductionKind scan = ReductionKind::None;  // of a Scan
  // Of Tanh, NormalCdf and Erf, in Float32: the half precision type to which eager rounds the result of the
  // operator that they belong to. A backend may compute them to a few digits more than that type has.
  std::optional<DType> rounded_to;
  friend bool operator==(const InstOver&, const InstOver&) = default;

  // The same instruction over other memory.
  template <class Other>
  InstOver<Other> over(Other other) const {
    return {op,       dtype,   operands, other,    index, constant,
            variable, checked, wraps,    asked_at, scan,  rounded_to};
  }
};
using Inst = InstOver<BufferId>;

struct Body {
  IdVector<InstId, Inst> insts;                  // operands come before their users
  IdVector<IndexId, std::vector<Expr>> indices;  // over the loop variables and bound index variables
};

struct LoopVariable {
  Expr variable;  // Kind::Variable with range [0, extent - 1]
  Expr extent;
};

// AddInParts: the loops that the index does not depend on, as one, are divided into parts, and each part is
// added up in a row of its own of the buffer: its first dimension counts them, and the index is 0 there.
enum class StoreMode : uint8_t { Set, AtomicAdd, AddInParts };

// Of AddInParts: iterations of the loops that are divided, but for the last part, and results of a part.
struct RowPart {
  int64_t rows = 0;
  int64_t elements = 0;
};

struct Store {
  BufferId buffer;
  std::vector<Expr> index;  // logical index into the buffer
  InstId value;             // of the buffer's dtype; none with a reduction
  StoreMode mode = StoreMode::Set;
  int result = 0;         // with a reduction: which of its results
  bool in_order = false;  // of the elements that go to one place, on the host, the last one stays
  RowPart part;
};

// for (loops) { for (reduction) body; stores }: without a reduction the stores take values of the body. With
// one, `reduced` names the body's value that is combined over the reduction loops in `accumulate` precision
// and stores[k] stores result number k, at an index over `loops` alone. A scan stores its result at each
// iteration of the reduction loops, in their order, at an index over all loops.
struct Computation {
  std::vector<LoopVariable> loops;
  std::vector<LoopVariable> reduction;
  ReductionKind kind = ReductionKind::None;
  DType accumulate = DType::Float32;
  InstId reduced;
  // Welford: how many elements count, at least one, the first in the order of `reduction`; over `loops`.
  std::optional<Expr> counted;
  Body body;
  std::vector<Store> stores;
  graph::LocationId location;  // of the graph node it came from
  std::string origin;          // "gelu, add": graph operators folded into it, for readers
};

// A strided window on a buffer, as an extern call sees it.
struct BufferView {
  BufferId buffer;
  std::vector<Expr> sizes;
  std::vector<Expr> strides;  // elements, relative to the buffer's first element
  Expr offset = 0;            // elements
};

using ExternArgument = std::variant<graph::None, BufferView, std::vector<std::optional<BufferView>>, bool,
                                    Expr, double, std::complex<double>, std::string, DType, Device,
                                    MemoryFormat, std::vector<bool>, std::vector<Expr>, std::vector<double>>;

struct ExternCall {
  const OperatorSchema* op = nullptr;
  std::vector<ExternArgument> args;  // one a schema argument
  std::vector<BufferId> outputs;     // buffers with fixed layouts, one a returned tensor; kNoBuffer: unused
  bool writes_in_place = false;      // the runtime may pass the outputs as out= arguments
  bool may_raise = false;            // because of the elements that it reads: it runs though nobody needs it
  graph::LocationId location;
};

using Step = std::variant<Computation, ExternCall>;
using StepId = Id<struct StepTag>;

struct ProgramOutput {
  BufferView view;  // the tensor that the user gets
  graph::OutputKind kind = graph::OutputKind::Value;
  int32_t alias = -1;
  DType dtype = DType::Float32;
};

struct ProgramMutation {
  int32_t input = -1;  // graph input
  BufferView value;
  bool is_seen = true;  // graph::Mutation's
};

struct Program {
  IdVector<BufferId, Buffer> buffers;
  IdVector<StepId, Step> steps;  // in dependency order; random and effectful calls in program order
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramMutation> mutations;  // committed after the last step
  IdVector<graph::LocationId, std::string> locations;
  // Sizes that are indexed, and might be 0: then there is nothing to read, and eager runs the call.
  std::vector<Expr> positive;
};

std::string print(const Program& program);  // for OXYFUEL_LOGS=loops and golden tests
void verify(const Program& program);        // InternalError naming the first broken rule

}  // namespace oxy::loop
