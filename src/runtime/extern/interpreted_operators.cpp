#include "runtime/extern/interpreted_operators.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <tuple>

namespace oxy::runtime {

namespace {

at::Tensor as_stored(const at::Tensor& self) {
  return self.clone();
}

std::tuple<at::Tensor, at::Tensor> softmax_rows(const at::Tensor& self, int64_t dim) {
  const at::Tensor wide = at::isReducedFloatingType(self.scalar_type()) ? self.to(at::kFloat) : self;
  const at::Tensor maxima = at::amax(wide, dim, true);
  return {maxima, at::sum(at::exp(at::sub(wide, maxima)), dim, true)};
}

}  // namespace

void add_interpreted_operators(torch::Library& library) {
  library.def("as_stored(Tensor self) -> Tensor");
  library.impl("as_stored",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(as_stored)));
  library.def("softmax_rows(Tensor self, int dim) -> (Tensor, Tensor)");
  library.impl("softmax_rows",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(softmax_rows)));
}

}  // namespace oxy::runtime
