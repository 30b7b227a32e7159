// The table of operators that the recorder treats in a way of its own; few of them are ever nodes.
#include "ops/core/families.h"
#include "ops/recording/shapes.h"

namespace oxy::ops {

Family recording_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::lift",
       .schema = "aten::lift(Tensor self) -> Tensor",
       .traits = {.recording = Recording::Literal}},

      {.name = "aten::_efficientzerotensor",  // zeros without memory, which autograd's formulas make
       .schema = "aten::_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .traits = {.recording = Recording::ZeroTensor, .recorded_as = "aten::zeros"}},
      {.name = "aten::_conj",
       .schema = "aten::_conj(Tensor(a) self) -> Tensor(a)",
       .traits = {.recording = Recording::LazyBit, .recorded_as = "aten::_conj_physical"}},
      {.name = "aten::_neg_view",
       .schema = "aten::_neg_view(Tensor(a) self) -> Tensor(a)",
       .traits = {.recording = Recording::LazyBit, .recorded_as = "aten::neg"}},

      {.name = "aten::set_",
       .schema = "aten::set_(Tensor(a!) self) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::set_.source_Tensor",
       .schema = "aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::set_.source_Tensor_storage_offset",
       .schema = "aten::set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt "
                 "storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::set_.source_Storage",
       .schema = "aten::set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::set_.source_Storage_storage_offset",
       .schema = "aten::set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt "
                 "storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::set_data",
       .schema = "aten::set_data(Tensor(a!) self, Tensor new_data) -> ()",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::resize_",
       .schema = "aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> "
                 "Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::resize_as_",
       .schema = "aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? "
                 "memory_format=None) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::_resize_output_",
       .schema = "aten::_resize_output_(Tensor(a!) self, SymInt[] size, Device device) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::resize_as_sparse_",
       .schema = "aten::resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::sparse_resize_",
       .schema = "aten::sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> "
                 "Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},
      {.name = "aten::sparse_resize_and_clear_",
       .schema = "aten::sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int "
                 "dense_dim) -> Tensor(a!)",
       .traits = {.recording = Recording::SwapsStorage}},

      {.name = "aten::_local_scalar_dense",
       .schema = "aten::_local_scalar_dense(Tensor self) -> Scalar",
       .traits = {.recording = Recording::Number}},

      {.name = "aten::_assert_async",
       .schema = "aten::_assert_async(Tensor self) -> ()",
       .shape = shapes::nothing,
       .raises = Raises::OnAnyElements,
       .traits = {.recording = Recording::Check}},
      {.name = "aten::_assert_async.msg",
       .schema = "aten::_assert_async.msg(Tensor self, str assert_msg) -> ()",
       .shape = shapes::nothing,
       .raises = Raises::OnAnyElements,
       .traits = {.recording = Recording::Check}},
      {.name = "aten::is_set_to",
       .schema = "aten::is_set_to(Tensor self, Tensor tensor) -> bool",
       .traits = {.recording = Recording::NeedsData}},

      {.name = "aten::lstm.input",
       .schema =
           "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
           "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::recurrent,
       .traits = {.mixes_elements = true, .recording = Recording::Whole}},
      {.name = "aten::gru.input",
       .schema = "aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
                 "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       .shape = shapes::recurrent,
       .traits = {.mixes_elements = true, .recording = Recording::Whole}},
      {.name = "aten::rnn_tanh.input",
       .schema =
           "aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
           "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       .shape = shapes::recurrent,
       .traits = {.mixes_elements = true, .recording = Recording::Whole}},
      {.name = "aten::rnn_relu.input",
       .schema =
           "aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
           "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       .shape = shapes::recurrent,
       .traits = {.mixes_elements = true, .recording = Recording::Whole}},
      // Of ours (runtime/extern/recurrent.h).
      {.name = "oxyfuel::recurrent_backward",
       .schema = "oxyfuel::recurrent_backward(Tensor?[] gradients, Tensor input, Tensor[] states, Tensor[] "
                 "params, str cell, bool has_biases, int num_layers, bool train, bool bidirectional, bool "
                 "batch_first, bool[] wanted) -> Tensor[]",
       .shape = shapes::recurrent_backward,
       .traits = {.mixes_elements = true}},
      {.name = "aten::mkldnn_rnn_layer",
       .schema =
           "aten::mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor "
           "weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int "
           "num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, "
           "Tensor, Tensor, Tensor)",
       .traits = {.keeps_workspace = true}},
  };
  return table;
}

}  // namespace oxy::ops
