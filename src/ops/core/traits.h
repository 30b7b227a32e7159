// What is special about an operator: each field is a question that a stage asks. An operator's entry states
// the answers that differ from the usual ones, which are the defaults here.
//
// What holds for one operator alone is no trait: stages name it through aten/operators.h.
#pragma once

#include <string_view>

#include "ops/core/view_inverse.h"

namespace oxy::ops {

// What an operator that computes nothing does with elements. The first argument is their tensor.
enum class Movement : uint8_t {
  None,      // it computes, or moves elements in a way that no stage asks for
  Keep,      // they stay in their order; where no size changes, all of them: alias, clone, slice
  Reshape,   // they stay in their order, in other dimensions
  Permute,   // dimensions change places
  Expand,    // dimensions of one element repeat it
  Split,     // a result for each piece of a dimension
  Unbind,    // a result for each index of a dimension
  Restride,  // any elements of the storage
  Convert,   // to another type, device or layout
  Replace,   // the second argument takes the place of some of them, or of all
  Join,      // of a list of tensors
};

// The operand that changes nothing, where it is a number.
enum class Neutral : uint8_t {
  None,
  Zero,        // x + alpha * 0, 0 + x
  ZeroSecond,  // x - alpha * 0
  One,         // x * 1, 1 * x
  OneSecond,   // x / 1
};

// Which layouts PyTorch's kernel takes. Views, and operators with a lowering or a decomposition, take any, if
// they do not say Alike: then the decomposition may leave some calls to the kernel.
enum class Layouts : uint8_t {
  Recorded,  // it may rely on what eager's callers have seen to: operands of one layout, dense rows
  Any,
  Alike,  // the first two operands both contiguous, or both channels-last
};

// Where an operator stands in a recording.
enum class Recording : uint8_t {
  Node,           // it is a node
  Literal,        // it makes a tensor of a literal: a constant
  OtherOperator,  // `recorded_as` is a node in its place
  ZeroTensor,     // likewise; the result is zeros without memory, for which PyTorch has kernels of their own
  LazyBit,       // refused: its result is conjugated or negated lazily. In backward passes `recorded_as` is a
                 // node in its place, since nobody sees the difference there
  SwapsStorage,  // refused: it changes the storage of a tensor
  NeedsData,     // its result depends on data
  Check,         // it returns nothing, and raises for what its tensors hold: a node that stays
  Whole,         // PyTorch decomposes it; a node where trace/composites/ makes it one
  Number,  // it depends on data as well: the number in a tensor, which may be a symbol that the host reads
};

// How the recorder calculates the elements of small tensors of integers where they are expressions
// (trace/session/element_expressions.h). Operators with a `movement` need no rule.
enum class Counting : uint8_t {
  None,     // it does not
  Moves,    // each element of the result is one of the arguments'; of an operator of numbers, the first one
  Picks,    // likewise; which one, the second argument says
  Pads,     // of the first argument; the last one is the number between which they lie
  Repeats,  // how often each place comes: the place, so often
  Add,      // of the first two arguments, the second times the last one
  Subtract,
  SubtractFrom,
  Multiply,
  Negate,
  Divide,
  FloorDivide,  // rounded down, if the last argument does not say otherwise
  Remainder,
  Maximum,
  Minimum,
  Floor,
  Ceil,
  Less,  // and the other comparisons: 1 or 0, which is guarded
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  Sum,  // over the dimensions that the argument `dim` names, or all
  Product,
  LargestOf,
  SmallestOf,
  RunningSum,  // along the dimension that the second argument names
};

// Operators whose results have sizes that depend on data, except for some calls.
enum class KnownSize : uint8_t {
  Never,
  WithoutMasks,  // no index, of the second argument's list, is boolean
  WhenGiven,     // the second argument gives the size
};

// Which operands eager's kernels of a device take from the host.
enum class HostOperands : uint8_t {
  None,
  Numbers,  // tensors without dimensions
  Indices,  // likewise, and all tensors in a list of indices
  All,
};

// How the recorder finds out that eager refuses the types of a call.
enum class TypeCheck : uint8_t {
  TryOut,    // it calls the operator with tensors of one element
  OneFloat,  // the same, but tensors of one floating point type are never refused
  Known,     // it does not ask: they are results of an operator whose types were checked
};

// A function of each element x of a row, the row's maximum m and the sum s of all exp(x - m): exp(x - m) / s,
// or x - m - log(s).
enum class Rows : uint8_t { None, Softmax, LogSoftmax };

struct Traits {
  Movement movement = Movement::None;
  ViewInverse inverse = {};  // of a view
  Layouts layouts = Layouts::Recorded;
  std::string_view activation = {};  // the name by which packed kernels apply it to their result
  Neutral neutral = Neutral::None;
  bool is_idempotent = false;  // f(f(x)) is f(x)
  // The place of a flag: where it is false, the first result is the first argument.
  int acts_if = -1;
  // The place of an offset that counts from the beginning of the storage, whatever part of it the first
  // argument is. Sizes and strides stand before it.
  int storage_offset = -1;
  // The result shares the first argument's memory although the schema does not say so.
  bool shares_memory = false;
  // PyTorch's kernel writes its result into a given tensor at no cost: plans say where it goes.
  bool fills_given_results = false;
  // PyTorch's kernel fails where the output_mask, its last argument, leaves out the first result.
  bool needs_first_result = false;
  bool is_uninitialised = false;     // the elements are whatever the memory holds
  bool reads_metadata_only = false;  // of its tensors
  // An element of the result depends on elements at other places of the arguments, or kernels read arguments
  // while they write results: eager refuses to write to what is read.
  bool mixes_elements = false;
  // It writes elements to places that a tensor names. Which of several writes to a place is the last one, or
  // the order of their sum, is up to chance.
  bool scatters = false;
  // It writes running statistics, which autograd does not notice.
  bool writes_unseen = false;
  // Eager compares whole numbers with a float as numbers of the default type.
  bool compares_in_default_dtype = false;
  bool writes_bool_only = false;                    // an out= tensor of another type is refused
  HostOperands host_operands = HostOperands::None;  // the registry sets it for families as a whole
  // The place of an operand whose mean or deviation, from the forward pass, is another operand. The two have
  // to be of the same numbers, rounded as memory holds them.
  int statistics_of = -1;
  bool draws_by_layout = false;  // other numbers come to a tensor that is not contiguous

  TypeCheck type_check = TypeCheck::TryOut;
  Recording recording = Recording::Node;
  std::string_view recorded_as = {};  // an operator of the same arguments
  // The operator of the same arguments that declares the writes which this one makes when it trains.
  std::string_view declared_as = {};
  KnownSize known_size = KnownSize::Never;
  Counting counting = Counting::None;
  // Attention (query, key, value, …) that reads each head of key and value for several heads of the query.
  bool shares_key_heads = false;
  bool keeps_workspace = false;  // for its backward pass, of a size that only the library knows

  // Computes each element of its results from the elements at the same place of its arguments, at the cost of
  // a few instructions: views, new tensors of numbers, and pointwise operators that draw no random numbers.
  // Cheaper to compute again inside of a fused kernel than to write to memory and read back. The registry
  // sets it for entries with a lowering in families of such operators, and clears it where there is none.
  bool is_cheap = false;
  Rows rows = Rows::None;

  bool addresses_storage() const { return storage_offset >= 0; }
  bool operator==(const Traits&) const = default;
};

}  // namespace oxy::ops
