// Trace tensors: tensors with metadata and autograd state but without data. Each stands for a value of a
// recording.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include "graph/graph.h"
#include "torch_api/symbolic_node.h"

namespace oxy::trace {

class TraceTensor final : public c10::TensorImpl {
 public:
  // `keys`: the complete dispatch key set (trace_keys()). `recording`: the Session::id of the recording to
  // which `value` belongs. The sizes in `meta` must be constants if there are no `symbols`.
  TraceTensor(c10::DispatchKeySet keys, const TensorMeta& meta, uint64_t recording, graph::ValueId value,
              torch_api::SymbolsPointer symbols);

  uint64_t recording() const { return recording_; }
  graph::ValueId value() const { return value_; }
  // Whether it is the `.data` of another tensor, or a view of that: the same memory with a version counter of
  // its own.
  bool is_data() const { return is_data_; }
  void become_data() { is_data_ = true; }
  // PyTorch takes it for a ZeroTensor from now on: zeros without memory, which may not be written to.
  void become_zero_tensor() { key_set_ = key_set_.add(c10::DispatchKey::ZeroTensor); }
  // Stands for another value from now on. Called after an operator that changes metadata in place
  // (transpose_).
  void become(const TensorMeta& meta, graph::ValueId value);

  // Every access to data ends in one of these, which throw CannotTrace. Inside of the autograd engine and
  // while a StorageIsAskedFor lives, has_storage() is false instead, and PyTorch throws a RuntimeError of its
  // own.
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
  // Code of PyTorch's that wants numbers for symbolic sizes. Throw CannotTrace, but for sizes and strides
  // while LayoutAtHand says that those at hand will do.
  at::IntArrayRef sizes_custom() const override;
  at::IntArrayRef strides_custom() const override;
  int64_t numel_custom() const override;
  int64_t storage_offset_custom() const override;
  // Of symbolic sizes. PyTorch's own way asks of each size whether it is 1, which the answer does not depend
  // on where strides are as they should be.
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override;
  bool is_strides_like_custom(at::MemoryFormat format) const override;

 private:
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy(Version&& version, bool allow_tensor_metadata_change) const;
  void set_layout(const TensorMeta& meta);
  void set_symbolic_layout(const TensorMeta& meta);
  struct SymbolicLayout {
    std::vector<Expr> sizes;
    std::vector<Expr> strides;
  };
  SymbolicLayout symbolic_layout() const;
  // Their values at hand, written to `numbers`. CannotTrace if LayoutAtHand forbids it, or one has none.
  at::IntArrayRef at_hand(at::SymIntArrayRef values, c10::SmallVector<int64_t, 6>& numbers) const;

  torch_api::SymbolsPointer symbols_;
  uint64_t recording_;
  graph::ValueId value_;
  bool is_data_ = false;
  mutable c10::SmallVector<int64_t, 6> sizes_at_hand_;  // what sizes_custom() returned last
  mutable c10::SmallVector<int64_t, 6> strides_at_hand_;
};

// While the innermost one alive on this thread was made with true, the numbers of symbolic sizes and strides
// are those at hand, without a guard: nothing but speed depends on them.
class LayoutAtHand {
 public:
  explicit LayoutAtHand(bool is_enough) : before_(current()) { current() = is_enough; }
  ~LayoutAtHand() { current() = before_; }
  LayoutAtHand(const LayoutAtHand&) = delete;
  LayoutAtHand& operator=(const LayoutAtHand&) = delete;

  static bool is_enough() { return current(); }

 private:
  static bool& current();
  bool before_;
};

// While one lives, has_storage() of trace tensors is false on this thread. For code of PyTorch's that asks
// for the storage without reading data.
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

// The trace tensor behind `tensor` (not owned), or null.
TraceTensor* trace_tensor(const at::Tensor& tensor);

// The dispatch keys of a new trace tensor on `device`. `inference`: an inference tensor, without autograd's
// keys.
c10::DispatchKeySet trace_keys(c10::Device device, bool inference);

}  // namespace oxy::trace
