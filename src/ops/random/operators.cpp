// The table of operators that draw random numbers.
#include "ops/core/families.h"
#include "ops/creation/shapes.h"
#include "ops/pointwise/shapes.h"
#include "ops/random/decompositions.h"
#include "ops/random/lowerings.h"
#include "ops/random/shapes.h"

namespace oxy::ops {

Family random_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::rand",
       .schema = "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled,
       .is_random = true},
      {.name = "aten::randn",
       .schema = "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled,
       .is_random = true},
      {.name = "aten::rand.generator",
       .schema = "aten::rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, "
                 "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled},
      {.name = "aten::randn.generator",
       .schema = "aten::randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, "
                 "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::filled},
      {.name = "aten::rand_like",
       .schema = "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .is_random = true,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::randn_like",
       .schema = "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .is_random = true,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::randint_like",
       .schema =
           "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
           "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       .shape = shapes::like,
       .is_random = true,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::randint_like.low_dtype",
       .schema = "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? "
                 "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                 "memory_format=None) -> Tensor",
       .shape = shapes::like,
       .is_random = true,
       .traits = {.reads_metadata_only = true}},
      {.name = "aten::randint",
       .schema = "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::random_integers,
       .is_random = true},
      {.name = "aten::randint.low",
       .schema = "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .shape = shapes::random_integers,
       .is_random = true},
      {.name = "aten::randperm",
       .schema = "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
                 "bool? pin_memory=None) -> Tensor",
       .shape = shapes::random_permutation,
       .is_random = true},
      {.name = "aten::bernoulli",
       .schema = "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
       .shape = shapes::bernoulli,
       .traits = {.draws_by_layout = true}},
      {.name = "aten::bernoulli.p",
       .schema = "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
       .shape = shapes::bernoulli,
       .traits = {.draws_by_layout = true}},
      {.name = "aten::native_dropout",
       .schema = "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
       .shape = shapes::dropout,
       .decompose = composed(decompositions::dropout),
       .is_random = true,
       .traits = {.acts_if = 2}},
      {.name = "aten::native_dropout_backward",
       .schema = "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
       .shape = shapes::dropout_backward,
       .lower = lowerings::dropout_backward,
       .traits = {.is_cheap = true}},
      {.name = "oxyfuel::philox_states",
       .schema = "oxyfuel::philox_states(SymInt[] counts, int threads, Device device) -> Tensor",
       .shape = shapes::philox_states,
       .is_random = true},
      {.name = "oxyfuel::philox_mask",
       .schema = "oxyfuel::philox_mask(Tensor states, int place, float p, int width, int threads, ScalarType "
                 "dtype, SymInt[] sizes, SymInt[] strides) -> Tensor",
       .shape = shapes::philox_mask,
       .lower = lowerings::philox_mask},
      {.name = "oxyfuel::scale_kept",
       .schema = "oxyfuel::scale_kept(Tensor input, Tensor mask, float p) -> Tensor",
       .shape = shapes::scale_kept,
       .lower = lowerings::scale_kept,
       .traits = {.is_cheap = true}},
      {.name = "aten::multinomial",
       .schema = "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
                 "generator=None) -> Tensor",
       .shape = shapes::multinomial},
      {.name = "aten::poisson",
       .schema = "aten::poisson(Tensor self, Generator? generator=None) -> Tensor",
       .shape = shapes::bernoulli},
      {.name = "aten::_standard_gamma",
       .schema = "aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
       .shape = shapes::bernoulli},
      {.name = "aten::normal.float_Tensor",
       .schema = "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
       .shape = shapes::normal,
       .traits = {.draws_by_layout = true}},
      {.name = "aten::normal.Tensor_float",
       .schema =
           "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
       .shape = shapes::bernoulli,
       .traits = {.draws_by_layout = true}},
      {.name = "aten::normal.Tensor_Tensor",
       .schema =
           "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
       .shape = shapes::normal,
       .traits = {.draws_by_layout = true}},
      {.name = "aten::normal.float_float",
       .schema =
           "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
           "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
           "Tensor",
       .traits = {.draws_by_layout = true}},
      {.name = "aten::normal_functional",
       .schema = "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? "
                 "generator=None) -> Tensor",
       .shape = shapes::fresh_preserving,
       .traits = {.draws_by_layout = true}},
      {.name = "aten::uniform",
       .schema =
           "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::exponential",
       .schema = "aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::geometric",
       .schema = "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::log_normal",
       .schema = "aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) "
                 "-> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::cauchy",
       .schema = "aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) "
                 "-> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::random",
       .schema = "aten::random(Tensor self, *, Generator? generator=None) -> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::random.from",
       .schema = "aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::random.to",
       .schema = "aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
       .shape = shapes::fresh_preserving},
      {.name = "aten::bernoulli.Tensor",
       .schema = "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
       .shape = shapes::fresh_preserving,
       .traits = {.draws_by_layout = true}},
  };
  return table;
}

}  // namespace oxy::ops
