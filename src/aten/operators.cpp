#include "aten/operators.h"

namespace oxy::op {

const OperatorSchema* alias() {
  static const OperatorSchema* const schema = intern_schema("aten::alias(Tensor(a) self) -> Tensor(a)");
  return schema;
}

const OperatorSchema* detach() {
  static const OperatorSchema* const schema = intern_schema("aten::detach(Tensor(a) self) -> Tensor(a)");
  return schema;
}

const OperatorSchema* masked_select() {
  static const OperatorSchema* const schema =
      intern_schema("aten::masked_select(Tensor self, Tensor mask) -> Tensor");
  return schema;
}

const OperatorSchema* view() {
  static const OperatorSchema* const schema =
      intern_schema("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)");
  return schema;
}

const OperatorSchema* view_dtype() {
  static const OperatorSchema* const schema =
      intern_schema("aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)");
  return schema;
}

const OperatorSchema* view_as_real() {
  static const OperatorSchema* const schema =
      intern_schema("aten::view_as_real(Tensor(a) self) -> Tensor(a)");
  return schema;
}

const OperatorSchema* view_as_complex() {
  static const OperatorSchema* const schema =
      intern_schema("aten::view_as_complex(Tensor(a) self) -> Tensor(a)");
  return schema;
}

const OperatorSchema* expand() {
  static const OperatorSchema* const schema =
      intern_schema("aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)");
  return schema;
}

const OperatorSchema* permute() {
  static const OperatorSchema* const schema =
      intern_schema("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)");
  return schema;
}

const OperatorSchema* transpose() {
  static const OperatorSchema* const schema =
      intern_schema("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)");
  return schema;
}

const OperatorSchema* slice() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
      "SymInt step=1) -> Tensor(a)");
  return schema;
}

const OperatorSchema* select() {
  static const OperatorSchema* const schema =
      intern_schema("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)");
  return schema;
}

const OperatorSchema* as_strided() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
      "storage_offset=None) -> Tensor(a)");
  return schema;
}

const OperatorSchema* slice_scatter() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? "
      "end=None, SymInt step=1) -> Tensor");
  return schema;
}

const OperatorSchema* select_scatter() {
  static const OperatorSchema* const schema =
      intern_schema("aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor");
  return schema;
}

const OperatorSchema* diagonal_scatter() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> "
      "Tensor");
  return schema;
}

const OperatorSchema* as_strided_scatter() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, "
      "SymInt? storage_offset=None) -> Tensor");
  return schema;
}

const OperatorSchema* unsafe_view() {
  static const OperatorSchema* const schema =
      intern_schema("aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor");
  return schema;
}

const OperatorSchema* flip() {
  static const OperatorSchema* const schema = intern_schema("aten::flip(Tensor self, int[] dims) -> Tensor");
  return schema;
}

const OperatorSchema* sum_over() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
      "Tensor");
  return schema;
}

const OperatorSchema* clone() {
  static const OperatorSchema* const schema =
      intern_schema("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor");
  return schema;
}

const OperatorSchema* copy() {
  static const OperatorSchema* const schema =
      intern_schema("aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor");
  return schema;
}

const OperatorSchema* to_copy() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? "
      "memory_format=None) -> Tensor");
  return schema;
}

const OperatorSchema* softmax_rows() {
  static const OperatorSchema* const schema =
      intern_schema("oxyfuel::softmax_rows(Tensor self, int dim) -> (Tensor, Tensor)");
  return schema;
}

const OperatorSchema* exp() {
  static const OperatorSchema* const schema = intern_schema("aten::exp(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* log() {
  static const OperatorSchema* const schema = intern_schema("aten::log(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* full() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor");
  return schema;
}

const OperatorSchema* where() {
  static const OperatorSchema* const schema =
      intern_schema("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor");
  return schema;
}

const OperatorSchema* masked_fill() {
  static const OperatorSchema* const schema =
      intern_schema("aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor");
  return schema;
}

const OperatorSchema* masked_fill_with_tensor() {
  static const OperatorSchema* const schema =
      intern_schema("aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor");
  return schema;
}

const OperatorSchema* cat() {
  static const OperatorSchema* const schema =
      intern_schema("aten::cat(Tensor[] tensors, int dim=0) -> Tensor");
  return schema;
}

const OperatorSchema* index_put() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
      "Tensor");
  return schema;
}

const OperatorSchema* scatter() {
  static const OperatorSchema* const schema =
      intern_schema("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor");
  return schema;
}
const OperatorSchema* constant_pad() {
  static const OperatorSchema* const schema =
      intern_schema("aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor");
  return schema;
}

const OperatorSchema* embedding_gradient() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
      "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor");
  return schema;
}

const OperatorSchema* add() {
  static const OperatorSchema* const schema =
      intern_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  return schema;
}

const OperatorSchema* sub() {
  static const OperatorSchema* const schema =
      intern_schema("aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  return schema;
}

const OperatorSchema* mul() {
  static const OperatorSchema* const schema =
      intern_schema("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor");
  return schema;
}

const OperatorSchema* vector_product() {
  static const OperatorSchema* const schema =
      intern_schema("oxyfuel::vector_product(Tensor row, Tensor matrix) -> Tensor");
  return schema;
}

const OperatorSchema* rsqrt() {
  static const OperatorSchema* const schema = intern_schema("aten::rsqrt(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* neg() {
  static const OperatorSchema* const schema = intern_schema("aten::neg(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* div() {
  static const OperatorSchema* const schema =
      intern_schema("aten::div.Tensor(Tensor self, Tensor other) -> Tensor");
  return schema;
}

const OperatorSchema* mul_by_number() {
  static const OperatorSchema* const schema =
      intern_schema("aten::mul.Scalar(Tensor self, Scalar other) -> Tensor");
  return schema;
}

const OperatorSchema* div_by_number() {
  static const OperatorSchema* const schema =
      intern_schema("aten::div.Scalar(Tensor self, Scalar other) -> Tensor");
  return schema;
}

const OperatorSchema* pow_scalar() {
  static const OperatorSchema* const schema =
      intern_schema("aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor");
  return schema;
}

const OperatorSchema* tanh() {
  static const OperatorSchema* const schema = intern_schema("aten::tanh(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* erf() {
  static const OperatorSchema* const schema = intern_schema("aten::erf(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* sigmoid() {
  static const OperatorSchema* const schema = intern_schema("aten::sigmoid(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* silu() {
  static const OperatorSchema* const schema = intern_schema("aten::silu(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* addmm_activation() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool "
      "use_gelu=False) -> Tensor");
  return schema;
}

const OperatorSchema* gelu() {
  static const OperatorSchema* const schema =
      intern_schema("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor");
  return schema;
}

const OperatorSchema* philox_states() {
  static const OperatorSchema* const schema =
      intern_schema("oxyfuel::philox_states(SymInt[] counts, int threads, Device device) -> Tensor", true);
  return schema;
}

const OperatorSchema* philox_mask() {
  static const OperatorSchema* const schema = intern_schema(
      "oxyfuel::philox_mask(Tensor states, int place, float p, int width, int threads, ScalarType dtype, "
      "SymInt[] sizes, SymInt[] strides) -> Tensor");
  return schema;
}

const OperatorSchema* scale_kept() {
  static const OperatorSchema* const schema =
      intern_schema("oxyfuel::scale_kept(Tensor input, Tensor mask, float p) -> Tensor");
  return schema;
}

const OperatorSchema* native_dropout() {
  static const OperatorSchema* const schema =
      intern_schema("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", true);
  return schema;
}

const OperatorSchema* equal_to_number() {
  static const OperatorSchema* const schema =
      intern_schema("aten::eq.Scalar(Tensor self, Scalar other) -> Tensor");
  return schema;
}

const OperatorSchema* greater_than_number() {
  static const OperatorSchema* const schema =
      intern_schema("aten::gt.Scalar(Tensor self, Scalar other) -> Tensor");
  return schema;
}

const OperatorSchema* flash_attention() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
      "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor "
      "logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor "
      "unused, Tensor debug_attn_mask)",
      /*is_random=*/true);
  return schema;
}

const OperatorSchema* cudnn_attention() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, "
      "bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, "
      "float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt "
      "max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
      /*is_random=*/true);
  return schema;
}

const OperatorSchema* softmax() {
  static const OperatorSchema* const schema =
      intern_schema("aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor");
  return schema;
}

const OperatorSchema* bmm() {
  static const OperatorSchema* const schema = intern_schema("aten::bmm(Tensor self, Tensor mat2) -> Tensor");
  return schema;
}

const OperatorSchema* mm() {
  static const OperatorSchema* const schema = intern_schema("aten::mm(Tensor self, Tensor mat2) -> Tensor");
  return schema;
}

const OperatorSchema* mm_dtype() {
  static const OperatorSchema* const schema =
      intern_schema("aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor");
  return schema;
}

const OperatorSchema* addmm() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor");
  return schema;
}

const OperatorSchema* convolution() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
      "padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> "
      "Tensor");
  return schema;
}

const OperatorSchema* convolution_backward() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? "
      "bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
      "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)");
  return schema;
}

const OperatorSchema* depthwise_convolution() {
  static const OperatorSchema* const schema = intern_schema(
      "oxyfuel::depthwise_convolution(Tensor input, Tensor weight, int[] stride, int[] padding, int[] "
      "dilation, MemoryFormat memory_format) -> Tensor");
  return schema;
}

const OperatorSchema* batch_norm() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
      "running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, "
      "Tensor, Tensor)");
  return schema;
}

const OperatorSchema* batch_norm_evaluation() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, "
      "Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, "
      "Tensor)");
  return schema;
}

const OperatorSchema* copy_into() {
  static const OperatorSchema* const schema =
      intern_schema("aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)");
  return schema;
}

const OperatorSchema* fill_with_number() {
  static const OperatorSchema* const schema =
      intern_schema("aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)");
  return schema;
}

const OperatorSchema* fill_with_tensor() {
  static const OperatorSchema* const schema =
      intern_schema("aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)");
  return schema;
}

const OperatorSchema* zero_out() {
  static const OperatorSchema* const schema = intern_schema("aten::zero_(Tensor(a!) self) -> Tensor(a!)");
  return schema;
}

const OperatorSchema* bernoulli_into() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> "
      "Tensor(a!)");
  return schema;
}

const OperatorSchema* is_pinned() {
  static const OperatorSchema* const schema =
      intern_schema("aten::is_pinned(Tensor self, Device? device=None) -> bool");
  return schema;
}

const OperatorSchema* check_indices() {
  static const OperatorSchema* const schema = intern_schema(
      "oxyfuel::check_indices(Tensor index, SymInt size, int dim, bool counts_back, SymInt? ignored, SymInt "
      "elements, bool is_left_to_eager, str where) -> ()");
  return schema;
}

const OperatorSchema* total() {
  static const OperatorSchema* const schema =
      intern_schema("oxyfuel::total(Tensor self, int tangent) -> Tensor");
  return schema;
}

const OperatorSchema* pack_linear() {
  static const OperatorSchema* const schema =
      intern_schema("oxyfuel::pack_linear(Tensor weight, SymInt rows) -> Tensor");
  return schema;
}

const OperatorSchema* packed_linear() {
  static const OperatorSchema* const schema = intern_schema(
      "oxyfuel::packed_linear(Tensor x, Tensor packed, Tensor? bias, str activation, Tensor? "
      "residual) -> Tensor");
  return schema;
}

const OperatorSchema* pack_convolution() {
  static const OperatorSchema* const schema = intern_schema(
      "oxyfuel::pack_convolution(Tensor weight, SymInt[] input_size, SymInt[] stride, SymInt[] "
      "padding, SymInt[] dilation, int groups) -> Tensor");
  return schema;
}

const OperatorSchema* packed_convolution() {
  static const OperatorSchema* const schema = intern_schema(
      "oxyfuel::packed_convolution(Tensor x, Tensor packed_weight, Tensor? bias, SymInt[] "
      "stride, SymInt[] padding, SymInt[] dilation, int groups, str activation, Tensor? "
      "residual) -> Tensor");
  return schema;
}

}  // namespace oxy::op
