// The table of operators that make or copy tensors.
#include "ops/core/families.h"
#include "ops/creation/lowerings.h"
#include "ops/creation/shapes.h"
#include "ops/indexing/lowerings.h"
#include "ops/pointwise/lowerings.h"

namespace oxy::ops {

Family creation_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::zeros",
       .schema = "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled,
       .lower = lowerings::zeros,
       .element = elements::zeros},
      {.name = "aten::ones",
       .schema = "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled,
       .lower = lowerings::ones,
       .element = elements::ones},
      {.name = "aten::empty.memory_format",
       .schema = "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::filled,
       .lower = lowerings::zeros,
       .traits = {.is_uninitialised = true}},
      {.name = "aten::full",
       .schema = "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::full,
       .lower = lowerings::full,
       .element = elements::filled,
       .traits = {.counting = Counting::Moves}},
      {.name = "aten::zeros_like",
       .schema = "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .lower = lowerings::zeros,
       .element = elements::zeros,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::ones_like",
       .schema = "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .lower = lowerings::ones,
       .element = elements::ones,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::empty_like",
       .schema = "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .lower = lowerings::zeros,
       .traits = {.is_uninitialised = true, .reads_metadata_only = true}},
      {.name = "aten::full_like",
       .schema =
           "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
           "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .lower = lowerings::full,
       .element = elements::filled,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::new_zeros",
       .schema = "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled_like_type,
       .lower = lowerings::zeros,
       .element = elements::zeros,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::new_ones",
       .schema = "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled_like_type,
       .lower = lowerings::ones,
       .element = elements::ones,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::new_empty",
       .schema = "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled_like_type,
       .lower = lowerings::zeros,
       .traits = {.is_uninitialised = true, .reads_metadata_only = true}},
      {.name = "aten::new_full",
       .schema = "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "
                 "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled_like_type,
       .lower = lowerings::full,
       .element = elements::filled_alike,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::empty_strided",
       .schema = "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::empty_strided,
       .lower = lowerings::zeros,
       .traits = {.is_uninitialised = true}},
      {.name = "aten::new_empty_strided",
       .schema = "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? "
                 "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::new_empty_strided,
       .lower = lowerings::zeros,
       .traits = {.is_uninitialised = true, .reads_metadata_only = true}},
      {.name = "aten::empty_permuted",
       .schema = "aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, "
                 "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::empty_permuted,
       .lower = lowerings::zeros,
       .traits = {.is_uninitialised = true}},
      {.name = "aten::arange",
       .schema = "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::arange,
       .lower = lowerings::arange,
       .element = elements::count_to},
      {.name = "aten::arange.start",
       .schema = "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::arange,
       .lower = lowerings::arange,
       .element = elements::count_from},
      {.name = "aten::arange.start_step",
       .schema = "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? "
                 "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::arange,
       .lower = lowerings::arange,
       .element = elements::count_from},
      {.name = "aten::linspace",
       .schema = "aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::linspace,
       .lower = lowerings::linspace},
      {.name = "aten::logspace",
       .schema = "aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? "
                 "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::linspace},
      {.name = "aten::scalar_tensor",
       .schema = "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::scalar_tensor,
       .lower = lowerings::full,
       .element = elements::scalar_tensor,
       .traits = {.counting = Counting::Moves}},
      {.name = "aten::eye",
       .schema = "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                 "bool? pin_memory=None) -> Tensor",
       .shape = shapes::eye,
       .lower = lowerings::eye},
      {.name = "aten::eye.m",
       .schema = "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::eye,
       .lower = lowerings::eye},
      {.name = "aten::tril_indices",
       .schema = "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::triangle_indices},
      {.name = "aten::triu_indices",
       .schema = "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::triangle_indices},
      {.name = "aten::clone",
       .schema = "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::clone,
       .lower = lowerings::clone,
       .traits = {.movement = Movement::Keep}},
      {.name = "aten::lift_fresh_copy",
       .schema = "aten::lift_fresh_copy(Tensor self) -> Tensor",
       .shape = shapes::clone,
       .lower = lowerings::clone,
       .traits = {.movement = Movement::Keep}},
      {.name = "aten::alias_copy",
       .schema = "aten::alias_copy(Tensor self) -> Tensor",
       .traits = {.movement = Movement::Keep}},
      {.name = "aten::detach_copy",
       .schema = "aten::detach_copy(Tensor self) -> Tensor",
       .traits = {.movement = Movement::Keep}},
      {.name = "aten::as_strided_copy",
       .schema = "aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? "
                 "storage_offset=None) -> Tensor",
       .traits = {.storage_offset = 3}},
      {.name = "aten::as_strided_copy.out",
       .schema = "aten::as_strided_copy.out(Tensor self, SymInt[] size, SymInt[] stride, SymInt? "
                 "storage_offset=None, *, Tensor(a!) out) -> Tensor(a!)",
       .functional = "aten::as_strided_copy",
       .traits = {.storage_offset = 3}},
      {.name = "aten::_to_copy",
       .schema =
           "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
           "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .lower = lowerings::to_copy,
       .traits = {.movement = Movement::Convert}},
      {.name = "aten::copy",
       .schema = "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
       .shape = shapes::copy,
       .lower = lowerings::copy,
       .traits = {.movement = Movement::Replace, .host_operands = HostOperands::All}},
      {.name = "aten::tril",
       .schema = "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
       .shape = shapes::triangle,
       .lower = lowerings::tril,
       .element = elements::lower_triangle},
      {.name = "aten::triu",
       .schema = "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
       .shape = shapes::triangle,
       .lower = lowerings::triu,
       .element = elements::upper_triangle},
      {.name = "aten::fill.Scalar",
       .schema = "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
       .shape = shapes::fill,
       .lower = lowerings::full,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::fill.Tensor",
       .schema = "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
       .shape = shapes::fill,
       .lower = lowerings::full,
       .traits = {.host_operands = HostOperands::Numbers}},
      {.name = "aten::zero",
       .schema = "aten::zero(Tensor self) -> Tensor",
       .shape = shapes::fill,
       .lower = lowerings::zeros,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::complex",
       .schema = "aten::complex(Tensor real, Tensor imag) -> Tensor",
       .shape = shapes::complex_of_parts},
      {.name = "aten::polar",
       .schema = "aten::polar(Tensor abs, Tensor angle) -> Tensor",
       .shape = shapes::complex_of_parts},
      {.name = "aten::hann_window",
       .schema = "aten::hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::hann_window.periodic",
       .schema = "aten::hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
                 "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::hamming_window",
       .schema = "aten::hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::hamming_window.periodic",
       .schema = "aten::hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
                 "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::blackman_window",
       .schema = "aten::blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::blackman_window.periodic",
       .schema = "aten::blackman_window.periodic(int window_length, bool periodic, *, ScalarType? "
                 "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::bartlett_window",
       .schema = "aten::bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::bartlett_window.periodic",
       .schema = "aten::bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? "
                 "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::kaiser_window",
       .schema = "aten::kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
      {.name = "aten::kaiser_window.periodic",
       .schema = "aten::kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
                 "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::window},
  };
  return table;
}

}  // namespace oxy::ops
