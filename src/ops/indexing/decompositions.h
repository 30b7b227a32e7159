// Decompositions of operators that move elements.
#pragma once

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> pixel_shuffle(Composer& c);
std::vector<graph::ValueRef> pixel_unshuffle(Composer& c);
std::vector<graph::ValueRef> slice_backward(Composer& c);
std::vector<graph::ValueRef> select_backward(Composer& c);
std::vector<graph::ValueRef> embedding_dense_backward(Composer& c);
std::vector<graph::ValueRef> is_in_number(Composer& c);  // isin.Tensor_Scalar
std::vector<graph::ValueRef> index_put(Composer& c);     // _index_put_impl

}  // namespace oxy::ops::decompositions
