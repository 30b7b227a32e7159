// Trace tensors: tensors with metadata and autograd state but no data, standing for values of a recording.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include "graph/graph.h"
#include "torch_api/symbolic_node.h"

namespace oxy::trace {

class TraceTensor final : public c10::TensorImpl {
 public:
  // `keys`: the complete dispatch key set (trace_keys). `recording` names the recording that `value` belongs
  // to. The sizes in `meta` must be constants if there are no `symbols`.
  TraceTensor(c10::DispatchKeySet keys, const TensorMeta& meta, uint64_t recording, graph::ValueId value,
              torch_api::SymbolsPointer symbols);

  uint64_t recording() const { return recording_; }
  graph::ValueId value() const { return value_; }
  // It is the `.data` of another, or a view of that: the same memory with a version counter of its own.
  bool is_data() const { return is_data_; }
  void become_data() { is_data_ = true; }
  // After an operator that changes an argument's metadata in place (transpose_).
  void become(const TensorMeta& meta, graph::ValueId value);

  // Every access to data ends in one of these: CannotTrace (where has_storage() is false, inside the autograd
  // engine and while a StorageIsAskedFor lives, PyTorch's own RuntimeError).
  bool has_storage() const override;
  const c10::Storage& storage() const override;

  // Copies stand for the same value.
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool allow_tensor_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& other) override;  // `x.data = y`: CannotTrace

 protected:
  const char* tensorimpl_type_name() const override { return "oxyfuel's trace tensor"; }
  // Of symbolic sizes. PyTorch's own way asks of each size whether it is 1, which the answer does not depend
  // on where strides are as they should be.
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override;

 private:
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy(Version&& version, bool allow_tensor_metadata_change) const;
  void set_layout(const TensorMeta& meta);
  void set_symbolic_layout(const TensorMeta& meta);

  torch_api::SymbolsPointer symbols_;
  uint64_t recording_;
  graph::ValueId value_;
  bool is_data_ = false;
};

// While one lives, this thread's trace tensors say that they have no storage: what PyTorch does there asks
// for it without reading data.
class StorageIsAskedFor {
 public:
  StorageIsAskedFor() { ++depth(); }
  ~StorageIsAskedFor() { --depth(); }
  StorageIsAskedFor(const StorageIsAskedFor&) = delete;
  StorageIsAskedFor& operator=(const StorageIsAskedFor&) = delete;

  static bool is_alive() { return depth() > 0; }

 private:
  static int& depth();
};

// The trace tensor behind `tensor`, or nullptr.
TraceTensor* trace_tensor(const at::Tensor& tensor);

// Keys of a new trace tensor on `device`: an inference tensor has neither autograd nor a version counter.
c10::DispatchKeySet trace_keys(c10::Device device, bool inference);

}  // namespace oxy::trace
