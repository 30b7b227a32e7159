#include "trace/tensors/trace_tensor.h"

#include <Python.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

#include "ops/core/memory_format.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "sym/relations/layout.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/symbol_questions.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

c10::SmallVector<int64_t, 6> constants(const std::vector<Expr>& values) {
  c10::SmallVector<int64_t, 6> result;
  for (const Expr& value : values) result.push_back(value.constant());
  return result;
}

[[noreturn]] void refuse_data() {
  throw_cannot_trace(
      "the data of a tensor is read while the program is traced (numpy(), tolist(), data_ptr())");
}

const c10::Storage& storage_without_memory(c10::Device device) {
  thread_local c10::Storage storage;
  storage = c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, device), nullptr, false);
  return storage;
}

// The engine tells the allocator of a gradient that goes to another stream, and each device has its own.
// Without memory there is nothing to tell. Python functions that read data hold the GIL, and the engine does
// not.
bool is_asked_by_engine(c10::Device device) {
  return torch::autograd::get_current_graph_task_id() != -1 && device != c10::Device(runtime::kHost) &&
         PyGILState_Check() == 0 && c10::impl::VirtualGuardImpl(device.type()).deviceCount() > 1;
}

[[noreturn]] void refuse_numbers() {
  throw_cannot_trace("PyTorch wants to know a size that changes from call to call");
}

}  // namespace

TraceTensor::TraceTensor(c10::DispatchKeySet keys, const TensorMeta& meta, uint64_t recording,
                         graph::ValueId value, torch_api::SymbolsPointer symbols)
    : TensorImpl(keys, c10::scalarTypeToTypeMeta(runtime::dtype_to_torch(meta.dtype)),
                 runtime::device_to_torch(meta.device)),
      symbols_(std::move(symbols)),
      recording_(recording),
      value_(value) {
  // The base class strips or adds autograd keys by the inference mode of the moment; what counts here is the
  // tensor that this one stands for.
  key_set_ = keys;
  const bool inference = !keys.has(c10::DispatchKey::ADInplaceOrView);
  version_counter_ = inference ? c10::VariableVersion() : c10::VariableVersion(0);
  set_layout(meta);
}

void TraceTensor::set_layout(const TensorMeta& meta) {
  const auto is_number = [](const Expr& e) { return e.is_constant(); };
  if (symbols_ && !(std::ranges::all_of(meta.sizes, is_number) &&
                    std::ranges::all_of(meta.strides, is_number) && is_number(meta.storage_offset)))
    return set_symbolic_layout(meta);
  if (has_symbolic_sizes_strides_) {  // PyTorch takes no numbers for sizes that are symbols
    has_symbolic_sizes_strides_ = false;
    extra_meta_->symbolic_shape_meta_ = nullptr;
    refresh_sizes_strides_policy();
  }
  set_sizes_and_strides(constants(meta.sizes), constants(meta.strides), meta.storage_offset.constant());
}

void TraceTensor::set_symbolic_layout(const TensorMeta& meta) {
  std::vector<c10::SymInt> sizes;
  std::vector<c10::SymInt> strides;
  for (const Expr& size : meta.sizes) sizes.push_back(torch_api::to_torch(symbols_, size));
  for (const Expr& stride : meta.strides) strides.push_back(torch_api::to_torch(symbols_, stride));
  set_sizes_and_strides(sizes, strides, torch_api::to_torch(symbols_, meta.storage_offset));
}

at::IntArrayRef TraceTensor::at_hand(at::SymIntArrayRef values, c10::SmallVector<int64_t, 6>& numbers) const {
  if (!LayoutAtHand::is_enough()) refuse_numbers();
  numbers.clear();
  for (const c10::SymInt& value : values) {
    const std::optional<int64_t> number = symbols_->environment.hint(torch_api::expression_of(value));
    if (!number) refuse_numbers();
    numbers.push_back(*number);
  }
  return numbers;
}

at::IntArrayRef TraceTensor::sizes_custom() const {
  return at_hand(sym_sizes(), sizes_at_hand_);
}
at::IntArrayRef TraceTensor::strides_custom() const {
  return at_hand(sym_strides(), strides_at_hand_);
}
int64_t TraceTensor::numel_custom() const {
  refuse_numbers();
}
int64_t TraceTensor::storage_offset_custom() const {
  refuse_numbers();
}

TraceTensor::SymbolicLayout TraceTensor::symbolic_layout() const {
  SymbolicLayout layout;
  for (const c10::SymInt& size : sym_sizes()) layout.sizes.push_back(torch_api::expression_of(size));
  for (const c10::SymInt& stride : sym_strides()) layout.strides.push_back(torch_api::expression_of(stride));
  return layout;
}

c10::SymBool TraceTensor::sym_is_contiguous_custom(at::MemoryFormat format) const {
  if (!has_symbolic_sizes_strides()) return TensorImpl::sym_is_contiguous_custom(format);
  const auto [sizes, strides] = symbolic_layout();
  switch (format) {
    case at::MemoryFormat::ChannelsLast:
      return torch_api::to_torch(symbols_, sym::channels_last_contiguous(sizes, strides, 2));
    case at::MemoryFormat::ChannelsLast3d:
      return torch_api::to_torch(symbols_, sym::channels_last_contiguous(sizes, strides, 3));
    default:
      return torch_api::to_torch(symbols_, sym::contiguous(sizes, strides));
  }
}

bool TraceTensor::is_strides_like_custom(at::MemoryFormat format) const {
  const bool has_space =
      format == at::MemoryFormat::ChannelsLast || format == at::MemoryFormat::ChannelsLast3d;
  if (!has_symbolic_sizes_strides() || !has_space) return TensorImpl::is_strides_like_custom(format);
  const auto [sizes, strides] = symbolic_layout();
  const size_t spatial = format == at::MemoryFormat::ChannelsLast ? 2 : 3;
  const sym::Condition is_like = sym::channels_last_strides(sizes, strides, spatial);
  if (!torch_api::to_torch(symbols_, is_like).guard_bool(__FILE__, __LINE__)) {
    TensorMeta meta;
    for (const Expr& size : sizes) meta.sizes.push_back(symbols_->environment.simplify(size));
    for (const Expr& stride : strides) meta.strides.push_back(symbols_->environment.simplify(stride));
    ops::decide_disordered_ones(SymbolQuestions(*symbols_), meta);
    return false;
  }
  symbols_->decide_ones(std::span(sizes).subspan(1, 1));
  symbols_->decide_ones(std::span(sizes).subspan(2));
  return true;
}

void TraceTensor::become(const TensorMeta& meta, graph::ValueId value) {
  set_layout(meta);
  value_ = value;
}

bool& LayoutAtHand::current() {
  thread_local bool current = false;
  return current;
}

int& StorageIsAskedFor::depth() {
  thread_local int depth = 0;
  return depth;
}

bool TraceTensor::has_storage() const {
  // The autograd engine asks this to find out whether it may add a gradient in place. All others read the
  // data next.
  if (torch::autograd::get_current_graph_task_id() != -1 || StorageIsAskedFor::is_alive()) return false;
  refuse_data();
}
const c10::Storage& TraceTensor::storage() const {
  if (is_asked_by_engine(device())) return storage_without_memory(device());
  refuse_data();
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> TraceTensor::copy(Version&& version,
                                                      bool allow_tensor_metadata_change) const {
  TensorMeta empty;
  empty.dtype = runtime::dtype_from_torch(c10::typeMetaToScalarType(dtype()));
  empty.device = runtime::device_from_torch(device());
  auto result = c10::make_intrusive<TraceTensor>(key_set(), empty, recording_, value_, symbols_);
  copy_tensor_metadata(this, result.get(), std::forward<Version>(version), allow_tensor_metadata_change);
  // PyTorch makes its own views with it set, and `.data` without it.
  result->is_data_ = is_data_ || !allow_tensor_metadata_change;
  return result;
}

c10::intrusive_ptr<c10::TensorImpl> TraceTensor::shallow_copy_and_detach(
    const c10::VariableVersion& version, bool allow_tensor_metadata_change) const {
  return copy(version, allow_tensor_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> TraceTensor::shallow_copy_and_detach(
    c10::VariableVersion&& version, bool allow_tensor_metadata_change) const {
  return copy(std::move(version), allow_tensor_metadata_change);
}

void TraceTensor::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& /*other*/) {
  throw_cannot_trace("the data of a tensor is replaced (`x.data = y`)");
}

TraceTensor* trace_tensor(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.key_set().has(kTraceKey)) return nullptr;
  return dynamic_cast<TraceTensor*>(tensor.unsafeGetTensorImpl());
}

c10::DispatchKeySet trace_keys(c10::Device device, bool inference) {
  const c10::DispatchKey backend = c10::computeDispatchKey(std::nullopt, c10::kStrided, device);
  c10::DispatchKeySet keys = c10::DispatchKeySet(backend) | kTraceKeySet |
                             c10::getAutocastRelatedKeySetFromBackend(c10::toBackendComponent(backend));
  if (!inference)
    keys = keys | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView) |
           c10::getAutogradRelatedKeySetFromBackend(c10::toBackendComponent(backend));
  return keys;
}

}  // namespace oxy::trace
