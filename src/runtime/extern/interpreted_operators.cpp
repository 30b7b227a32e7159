#include "runtime/extern/interpreted_operators.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <c10/util/accumulate.h>

#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "loop/dropout_threads.h"
#include "loop/random_bits.h"
#include "runtime/values/host.h"

namespace oxy::runtime {

namespace {

using at::IntArrayRef;

at::Tensor as_stored(const at::Tensor& self) {
  return self.clone();
}

std::tuple<at::Tensor, at::Tensor> softmax_rows(const at::Tensor& self, int64_t dim) {
  const at::Tensor wide = at::isReducedFloatingType(self.scalar_type()) ? self.to(at::kFloat) : self;
  if (wide.size(dim) == 0) {
    const at::Tensor none = at::sum(wide, dim, true);  // zeros, if there are rows
    return {at::full_like(none, -INFINITY), none};
  }
  const at::Tensor maxima = at::amax(wide, dim, true);
  return {maxima, at::sum(at::exp(at::sub(wide, maxima)), dim, true)};
}

// The matrix has a row for each result.
at::Tensor vector_product(const at::Tensor& row, const at::Tensor& matrix) {
  return at::mm(row, matrix.t());
}

// The weight is a window of rows of columns of channels.
at::Tensor depthwise_convolution(const at::Tensor& input, const at::Tensor& weight, IntArrayRef stride,
                                 IntArrayRef padding, IntArrayRef dilation, at::MemoryFormat format) {
  const at::Tensor filters = weight.permute({2, 3, 0, 1});
  return at::convolution(input, filters, {}, stride, padding, dilation, false, {0, 0}, filters.size(0))
      .contiguous(format);
}

// Rows and columns.
std::array<int64_t, 2> pair_of(IntArrayRef numbers) {
  return {numbers.front(), numbers.back()};
}

struct Windows {
  std::array<int64_t, 2> kernel, stride, padding, dilation;
  Windows(IntArrayRef sizes, IntArrayRef strides, IntArrayRef paddings, IntArrayRef dilations)
      : kernel(pair_of(sizes)),
        stride(pair_of(strides.empty() ? sizes : strides)),
        padding(pair_of(paddings)),
        dilation(pair_of(dilations)) {}
};

// Of each window, its first row (dim -2) or column (-1) in the image, to be broadcast against the pooled
// image.
at::Tensor first_of_windows(const at::Tensor& pooled, const Windows& windows, int64_t dim) {
  const auto d = static_cast<size_t>(dim + 2);
  const at::Tensor number = at::arange(pooled.size(dim), pooled.options().dtype(at::kLong));
  const at::Tensor first = at::sub(at::mul(number, windows.stride[d]), windows.padding[d]);
  return dim == -2 ? first.unsqueeze(-1) : first;
}

std::tuple<at::Tensor, at::Tensor> max_pool2d_places(const at::Tensor& self, IntArrayRef kernel,
                                                     IntArrayRef stride, IntArrayRef padding,
                                                     IntArrayRef dilation, bool ceil_mode) {
  const Windows windows(kernel, stride, padding, dilation);
  auto [values, indices] = at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode);
  const int64_t width = self.size(-1);
  const at::Tensor image_row = at::div(indices, width, "floor"), image_column = at::remainder(indices, width);
  const auto within = [&](const at::Tensor& place, int64_t dim) {
    const at::Tensor beyond = at::sub(place, first_of_windows(values, windows, dim));
    return at::div(beyond, windows.dilation[static_cast<size_t>(dim + 2)], "floor");
  };
  const at::Tensor row = within(image_row, -2), column = within(image_column, -1);
  return {values, at::add(at::mul(row, windows.kernel[1]), column).to(at::kChar)};
}

at::Tensor max_pool2d_indices(const at::Tensor& places, int64_t width, IntArrayRef kernel, IntArrayRef stride,
                              IntArrayRef padding, IntArrayRef dilation) {
  const Windows windows(kernel, stride, padding, dilation);
  const at::Tensor place = places.to(at::kLong);
  const auto in_image = [&](const at::Tensor& within, int64_t dim) {
    return at::add(at::mul(within, windows.dilation[static_cast<size_t>(dim + 2)]),
                   first_of_windows(places, windows, dim));
  };
  const at::Tensor row = in_image(at::div(place, windows.kernel[1], "floor"), -2);
  const at::Tensor column = in_image(at::remainder(place, windows.kernel[1]), -1);
  return at::add(at::mul(row, width), column);
}

at::Tensor max_pool2d_gradient(const at::Tensor& gradient, const at::Tensor& places, IntArrayRef sizes,
                               IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                               at::MemoryFormat format) {
  const int64_t pixels = sizes[sizes.size() - 2] * sizes.back();
  const at::Tensor indices = max_pool2d_indices(places, sizes.back(), kernel, stride, padding, {1, 1});
  std::vector<int64_t> flat(sizes.begin(), sizes.end() - 2);
  flat.push_back(pixels);
  at::Tensor sums = at::zeros(flat, gradient.options());
  sums.scatter_add_(-1, indices.flatten(-2), gradient.flatten(-2));
  return sums.view(sizes).contiguous(format);
}

// The numbers are drawn on the host, one after the other.
at::Tensor philox_mask(const at::Tensor& states, int64_t place, double p, int64_t width, int64_t threads,
                       at::ScalarType dtype, IntArrayRef sizes, IntArrayRef strides) {
  const at::Tensor on_host = states.to(kHost).contiguous();
  const auto* const words = on_host.const_data_ptr<int64_t>();
  const int64_t count = c10::multiply_integers(sizes);
  const bool is_wide = dtype == at::kDouble;
  at::Tensor kept = at::empty({count}, at::TensorOptions(at::kBool));
  auto* const is_kept = kept.mutable_data_ptr<bool>();
  for (int64_t element = 0; element < count; ++element) {
    const loop::DropoutPlace where = loop::dropout_place(element, count, width, threads);
    const float number = loop::philox_uniform(words[0], words[1 + place] + where.counter.constant(),
                                              where.position.constant());
    is_kept[element] = is_wide ? number < 1.0 - p : number < static_cast<float>(1.0 - p);
  }
  return kept.as_strided(sizes, strides).to(states.device());
}

at::Tensor scale_kept(const at::Tensor& input, const at::Tensor& mask, double p) {
  const double scale = input.scalar_type() == at::kDouble
                           ? 1.0 / (1.0 - p)
                           : static_cast<double>(static_cast<float>(1.0 / static_cast<float>(1.0 - p)));
  return at::mul(at::mul(input, mask), scale);
}

}  // namespace

void add_interpreted_operators(torch::Library& library, const SchemaOf& schema_of) {
  const auto add = [&](const char* name, auto function) {
    library.def(schema_of(name).c_str());
    library.impl(name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  };
  add("as_stored", TORCH_FN(as_stored));
  add("softmax_rows", TORCH_FN(softmax_rows));
  add("vector_product", TORCH_FN(vector_product));
  add("depthwise_convolution", TORCH_FN(depthwise_convolution));
  add("max_pool2d_places", TORCH_FN(max_pool2d_places));
  add("max_pool2d_indices", TORCH_FN(max_pool2d_indices));
  add("max_pool2d_gradient", TORCH_FN(max_pool2d_gradient));
  add("philox_mask", TORCH_FN(philox_mask));
  add("scale_kept", TORCH_FN(scale_kept));
}

}  // namespace oxy::runtime
