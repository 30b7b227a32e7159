#include "ops/indexing/parts.h"

#include "loop/view.h"

namespace oxy::ops::lowerings {

Value element_as(BodyBuilder& b, const Tensor& x, const Index& index, DType dtype) {
  return b.cast(LoweringContext::element(b, x, loop::broadcast_index(x.sizes, index)),
                loop::compute_dtype(dtype));
}

std::optional<Value> within(BodyBuilder& b, const Expr& e, const Expr& lower, const Expr& upper) {
  std::optional<Value> mask;
  if (!sym::known_less_equal(lower, e)) mask = b.index(e) >= b.index(lower);
  if (!sym::known_less(e, upper)) {
    Value below = b.index(e) < b.index(upper);
    mask = mask ? *mask & below : below;
  }
  return mask;
}

}  // namespace oxy::ops::lowerings
