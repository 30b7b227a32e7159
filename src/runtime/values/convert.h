// Between PyTorch's values and the compiler's: element types, devices, metadata, operators and arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace c10 {
struct IValue;
class OperatorHandle;
}  // namespace c10

namespace oxy::runtime {

// Unsupported for element types, devices and formats that the compiler does not know.
DType dtype_from_torch(c10::ScalarType type);
Device device_from_torch(c10::Device device);
MemoryFormat memory_format_from_torch(c10::MemoryFormat format);
c10::ScalarType dtype_to_torch(DType dtype);
// The devices of the values, each once, without the host.
std::vector<c10::Device> devices_of(const graph::Graph& graph);
c10::Device device_to_torch(Device device);
c10::MemoryFormat memory_format_to_torch(MemoryFormat format);

// Sizes and strides in elements. Unsupported unless the tensor is strided, without conjugate or negative bit,
// and its sizes are numbers or symbols of ours.
TensorMeta metadata_of(const at::Tensor& tensor);
// An at::Tensor on PyTorch's meta device with these metadata; sizes must be constants.
at::Tensor meta_tensor(const TensorMeta& meta);

// Calls `forget` with each operator that is removed from torch's dispatcher from now on, before its handle
// dangles: another operator may get the same handle. For caches; `forget` must not call the dispatcher.
void on_removed_operator(std::function<void(const c10::OperatorHandle&)> forget);

// The operator of a dispatcher handle, with torch's own schema and its nondeterministic_seeded tag. Cached
// and thread-safe. Unsupported if the schema has types that the compiler does not know.
const OperatorSchema* schema_of(const c10::OperatorHandle& op);
// The dispatcher's operator of this name. Cached and thread-safe. UserError if torch has none.
c10::OperatorHandle handle_of(const OperatorSchema& op);

// One argument of a call. `tensor` gives the value id of a defined tensor that is not a wrapped number;
// wrapped numbers become numbers, symbolic integers expressions, undefined tensors None. The strided layout
// becomes None (it is the default everywhere). Unsupported for what a graph cannot hold: generators, streams,
// other layouts, lists of numbers of mixed kind.
graph::Argument argument_from_ivalue(const c10::IValue& value, const ArgumentInfo& info,
                                     const std::function<graph::ValueId(const at::Tensor&)>& tensor);
// The inverse: what the dispatcher wants for `argument` in the place of `info`. Sizes must be constants. A
// number in the place of a tensor becomes a wrapped number.
c10::IValue ivalue_from_argument(const graph::Argument& argument, const ArgumentInfo& info,
                                 const std::function<at::Tensor(graph::ValueId)>& tensor);

// A zero-dimensional tensor that takes part in type promotion as a Python number does.
at::Tensor wrapped_number(const c10::Scalar& number);

// Calls fn(tensor) for every returned tensor on the stack's last `returns` entries, lists flattened;
// undefined tensors are passed as such.
void for_each_returned_tensor(const std::vector<c10::IValue>& stack, size_t returns,
                              const std::function<void(const at::Tensor&)>& fn);

}  // namespace oxy::runtime
