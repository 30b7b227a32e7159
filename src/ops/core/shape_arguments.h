// Reading an operator call's arguments in shape rules and decompositions.
//
// Positions are those of the schema. A reader throws Unsupported when the argument is not of the kind asked
// for or (where an int64_t is returned) neither known while compiling nor to be asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/core/registry.h"

namespace oxy::ops {

using Metas = std::vector<TensorMeta>;

// Throws Unsupported naming the operator: the rule does not cover this call, or eager refuses it.
[[noreturn]] void not_covered(const ShapeContext& context, std::string_view what);
// Throws RefusedByEager: eager raises, or warns, for a reason that PyTorch's meta kernel does not look for.
[[noreturn]] void refused_by_eager(const ShapeContext& context, std::string_view what);

// The number that an expression is for all calls: a size that is none becomes one, with a guard.
int64_t known(const ShapeContext& context, const Expr& e);
const Expr& expression(const ShapeContext& context, size_t i);
int64_t integer(const ShapeContext& context, size_t i);
bool flag(const ShapeContext& context, size_t i);
std::optional<double> real(const ShapeContext& context,
                           size_t i);  // nothing if None or not a plain real number
const std::vector<Expr>& list(const ShapeContext& context, size_t i);  // empty if None
std::vector<int64_t> integers(const ShapeContext& context, size_t i);  // empty if None
const std::vector<graph::ValueId>& tensors(const ShapeContext& context, size_t i);
const TensorMeta* optional_tensor(const ShapeContext& context, size_t i);  // nullptr if None
std::optional<DType> optional_dtype(const ShapeContext& context, size_t i);
Device device_or(const ShapeContext& context, size_t i, Device otherwise);
std::optional<MemoryFormat> optional_format(const ShapeContext& context, size_t i);
bool is_number(const graph::Argument& argument);

// Whether a dimension of this size is repeated to be one of the other size: it is 1, and the other one is
// not, or is a number that only data tell. Of sizes that are equal at hand nothing is asked.
bool is_repeated(const ShapeContext& context, const Expr& size, const Expr& other);
// Whether two numbers that have to be equal are. Where nobody may be asked, a call has been found to be legal
// before: then only numbers that cannot be equal are refused.
bool agree(const ShapeContext& context, const Expr& a, const Expr& b);
// Whether the sizes are as many, and agree.
bool are_equal(const ShapeContext& context, const std::vector<Expr>& a, const std::vector<Expr>& b);
// Whether what has the sizes `from` can be expanded to the sizes `to`.
bool broadcasts_to(const ShapeContext& context, const std::vector<Expr>& from, const std::vector<Expr>& to);

// Whether what is given as a size is not negative. Of what data decide that is required; where nobody may be
// asked, only numbers that are certainly negative are refused.
bool is_size(const ShapeContext& context, const Expr& e);

// Of a dimension that is indexed. A kernel reads something for each index, also for one that is out of range:
// that there are elements becomes a guard, if the size is a symbol with a value at hand.
void expect_elements(const ShapeContext& context, const Expr& size);

// `dim` counted from the front, 0 <= result < max(rank, 1).
int64_t wrap_dim(const ShapeContext& context, int64_t dim, int64_t rank);
int64_t dim_argument(const ShapeContext& context, size_t i, int64_t rank);
// The dims as a mask; all of them for None or an empty list (as reductions read it) if `empty_means_all`.
std::vector<bool> dim_mask(const ShapeContext& context, size_t i, int64_t rank, bool empty_means_all = true);

// The last argument, as a ResultRule of operators with an `output_mask`.
std::vector<bool> output_mask(const ShapeContext& context);

}  // namespace oxy::ops
