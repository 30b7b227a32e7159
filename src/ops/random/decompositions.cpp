#include "ops/random/decompositions.h"

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

std::vector<ValueRef> dropout(Composer& c) {
  // (input, p, train)
  if (c.is_none(2) || c.flag(2)) throw Unsupported("it draws");
  return {c.call("aten::clone", {c.arg(0), MemoryFormat::Preserve}),
          c.call("aten::ones_like", {c.arg(0), DType::Bool})};
}

}  // namespace oxy::ops::decompositions
