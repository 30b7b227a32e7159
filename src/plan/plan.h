// The executable plan as data: what the runtime does on a call, with no addresses in it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "aten/schema.h"
#include "aten/tensor_meta.h"
#include "base/id.h"
#include "graph/graph.h"

namespace oxy::plan {

struct Buffer;
using BufferId = Id<Buffer>;
inline constexpr BufferId kNoBuffer;

struct Kernel;
using KernelId = Id<Kernel>;

enum class Storage : uint8_t {
  Input,      // the caller's tensor number `slot`
  Constant,   // the tensor with handle `slot`
  Arena,      // bytes [arena_offset, + size) of the call's arena, which is on one device; 64-byte aligned
  Temporary,  // allocated at the first step that uses it, gone with its Free
  Output,     // allocated afresh for the caller
  Extern,     // owned by the tensor an extern call returned
};

struct Buffer {
  std::string name;
  DType dtype = DType::Float32;
  Device device;
  std::vector<Expr> sizes;
  std::vector<Expr> strides;  // elements
  Storage storage = Storage::Arena;
  int32_t slot = -1;
  Expr arena_offset = 0;  // bytes
};

// A strided window on a buffer; equal to the buffer itself when sizes and strides are and offset is 0.
struct View {
  BufferId buffer;
  std::vector<Expr> sizes;
  std::vector<Expr> strides;  // elements
  Expr offset = 0;            // elements from the buffer's first
};

enum class Language : uint8_t {
  Cpp,     // a function with C linkage, a backend::SliceFunction
  Triton,  // a function of Python that Triton compiles
  Loops,   // the text form of a loop program, for the reference interpreter
};

struct Kernel {
  std::string name;    // the function's
  std::string source;  // one file, complete
  Language language = Language::Cpp;
  Device::Kind device{};
};

// The kernel runs over slices of [0, extent), several at once if extent > grain.
struct Slices {
  Expr extent = 1;
  int64_t grain = 1;       // the smallest slice that is worth running beside others
  Expr scratch_bytes = 0;  // of each slice that runs at once
};

// The kernel runs once for each point of a grid.
struct Grid {
  std::array<Expr, 3> size = {1, 1, 1};
};

// What an error of a launch tells the user.
struct LaunchOrigin {
  std::string kernel;
  std::vector<std::string> lines;  // of the user's, whose operators the kernel performs: the first of them
};

// Runs kernels[kernel].
struct Launch {
  KernelId kernel;
  std::vector<BufferId> buffers;  // the kernel's pointers, in its order, all on the device where it runs
  std::vector<Expr> sizes;        // the kernel's run-time integers, in its order
  std::variant<Slices, Grid> shape;
  std::vector<BufferId> written;               // those of `buffers` that the kernel writes to
  std::shared_ptr<const LaunchOrigin> origin;  // null: not known
};

using CallArgument = std::variant<graph::None, View, std::vector<std::optional<View>>, bool, Expr, double,
                                  std::complex<double>, std::string, DType, Device, MemoryFormat,
                                  std::vector<bool>, std::vector<Expr>, std::vector<double>>;

struct Call {
  const OperatorSchema* op = nullptr;
  std::vector<CallArgument> args;
  std::vector<BufferId> outputs;  // kNoBuffer: unused. Arena and Output buffers are filled in place.
};

// The last use of a temporary or extern-owned buffer has passed.
struct Free {
  BufferId buffer;
};

using Step = std::variant<Launch, Call, Free>;

// Value: the tensor over `view`; contents of an Input, Constant or Arena buffer are copied for the caller.
// InputAlias, OutputAlias: sizes, strides and offset (from the aliased tensor's first element) of the view
// that the caller gets; the view's buffer is not read.
struct Output {
  View view;
  DType dtype = DType::Float32;
  graph::OutputKind kind = graph::OutputKind::Value;
  int32_t alias = -1;
};

struct Mutation {
  int32_t input = -1;
  View value;  // copied into the input after the last step; a view of the input: the steps have written it
  bool is_seen = true;  // graph::Mutation's
};

// An integer that later expressions of a plan name by a variable.
struct Definition {
  Expr variable;
  Expr value;  // over symbols and variables of definitions before
};

struct Plan {
  std::vector<Definition> definitions;
  IdVector<BufferId, Buffer> buffers;
  IdVector<KernelId, Kernel> kernels;
  std::vector<Step> steps;
  std::vector<Output> outputs;
  std::vector<Mutation> mutations;
  Expr arena_bytes = 0;
  int32_t input_count = 0;
  std::vector<Expr> positive;  // sizes that have to be so at a call; else eager runs it
};

std::string print(const Plan& plan);
void verify(const Plan& plan);  // InternalError naming the first broken rule

}  // namespace oxy::plan
