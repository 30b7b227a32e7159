// The table of operators and what its entries state of themselves.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "aten/operators.h"
#include "ops/core/registry.h"

using namespace oxy;
using ops::Traits;

TEST_CASE("the registry is one table") {
  CHECK(ops::all().size() > 500);
  CHECK(ops::find("aten::never") == nullptr);
  ops::intern_schemas();
  std::set<std::string_view> names;
  for (const ops::OperatorEntry* entry : ops::all()) {
    CAPTURE(entry->name);
    CHECK(names.insert(entry->name).second);
    const OperatorSchema* schema = ops::schema_of(*entry);
    CHECK(schema->name == entry->name);
    CHECK(ops::find(entry->name) == entry);
    CHECK(&ops::entry_of(*schema) == entry);
    CHECK((entry->shape || entry->traits != Traits{}));
    if (entry->functional.empty()) continue;
    CHECK(schema->is_mutating());
    CHECK(ops::find(entry->functional) != nullptr);
  }
}

TEST_CASE("an operator without an entry has no rules and the usual traits") {
  const OperatorSchema* schema = intern_schema("aten::_never_heard_of(Tensor self) -> Tensor");
  const ops::OperatorEntry& entry = ops::entry_of(*schema);
  CHECK(entry.name.empty());
  CHECK_FALSE(entry.shape);
  CHECK_FALSE(entry.lower);
  CHECK(entry.traits == Traits{});
  CHECK(&ops::entry_of(*schema) == &entry);
}

TEST_CASE("a copy of a schema finds its entry for itself") {
  const OperatorSchema* relu = intern_schema("aten::relu(Tensor self) -> Tensor");
  const ops::OperatorEntry* entry = &ops::entry_of(*relu);
  OperatorSchema copy = *relu;
  CHECK(copy.entry.get() == nullptr);
  copy.name = "aten::abs";
  CHECK(&ops::entry_of(copy) == ops::find("aten::abs"));
  copy = *relu;
  CHECK(&ops::entry_of(copy) == entry);
}

// What a trait says of the operator's arguments or results is true of its schema.
TEST_CASE("traits fit their operators") {
  for (const ops::OperatorEntry* entry : ops::all()) {
    CAPTURE(entry->name);
    const OperatorSchema& schema = *ops::schema_of(*entry);
    const Traits& traits = entry->traits;
    const auto kind = [&](size_t i) { return schema.arguments.at(i).kind; };
    if (traits.inverse.kind != ops::ViewInverse::Kind::None) {
      CHECK(schema.is_view());
      CHECK((traits.inverse.write == nullptr) == (traits.inverse.kind == ops::ViewInverse::Kind::Identity));
    }
    if (traits.shares_memory) CHECK_FALSE(schema.is_view());
    if (traits.movement == ops::Movement::Join) CHECK(kind(0) == ArgumentKind::TensorList);
    if (traits.movement == ops::Movement::Replace) CHECK(kind(1) == ArgumentKind::Tensor);
    if (traits.movement != ops::Movement::None && traits.movement != ops::Movement::Join)
      CHECK(kind(0) == ArgumentKind::Tensor);
    if (traits.acts_if >= 0) CHECK(kind(static_cast<size_t>(traits.acts_if)) == ArgumentKind::Bool);
    if (traits.addresses_storage()) {
      const auto place = static_cast<size_t>(traits.storage_offset);
      CHECK(kind(0) == ArgumentKind::Tensor);
      CHECK(kind(place - 2) == ArgumentKind::IntList);
      CHECK(kind(place - 1) == ArgumentKind::IntList);
      CHECK((kind(place) == ArgumentKind::Int && schema.arguments.at(place).optional));
    }
    if (traits.neutral != ops::Neutral::None) CHECK(schema.arguments.size() >= 2);
    if (traits.known_size == ops::KnownSize::WithoutMasks) CHECK(kind(1) == ArgumentKind::OptionalTensorList);
    if (traits.known_size == ops::KnownSize::WhenGiven) CHECK(schema.arguments.at(1).optional);
    if (traits.writes_unseen || traits.recording == ops::Recording::SwapsStorage) CHECK(schema.is_mutating());
    // Nobody asks for it otherwise. What decomposes for some devices and layouts alone has a kernel, too.
    if (traits.layouts != ops::Layouts::Recorded)
      CHECK((entry->shape && !entry->lower && !schema.is_view() &&
             (!entry->decompose || traits.layouts == ops::Layouts::Alike)));
    const bool is_replaced = traits.recording == ops::Recording::OtherOperator ||
                             traits.recording == ops::Recording::ZeroTensor ||
                             traits.recording == ops::Recording::LazyBit;
    CHECK(is_replaced == !traits.recorded_as.empty());
    for (const std::string_view other : {traits.recorded_as, traits.declared_as}) {
      if (other.empty() || ops::find(other) == nullptr) continue;
      const OperatorSchema& replacement = *ops::schema_of(*ops::find(other));
      REQUIRE(replacement.arguments.size() == schema.arguments.size());
      for (size_t i = 0; i < schema.arguments.size(); ++i)
        CHECK(replacement.arguments[i].kind == schema.arguments[i].kind);
    }
  }
}

TEST_CASE("what is cheap to compute again follows from the family") {
  const auto is_cheap = [](std::string_view name) { return ops::find(name)->traits.is_cheap; };
  for (const char* name : {"aten::relu", "aten::eq.Scalar", "aten::permute", "aten::full", "aten::_to_copy"})
    CHECK_MESSAGE(is_cheap(name), name);
  for (const char* name : {"aten::mm", "aten::sum", "aten::bernoulli.p", "aten::erfinv", "aten::add_.Tensor",
                           "aten::index.Tensor"})
    CHECK_MESSAGE(!is_cheap(name), name);
}

TEST_CASE("the vocabulary says of operators what the table says") {
  for (const OperatorSchema* op : {op::alias(),
                                   op::detach(),
                                   op::view(),
                                   op::view_dtype(),
                                   op::view_as_real(),
                                   op::view_as_complex(),
                                   op::expand(),
                                   op::permute(),
                                   op::transpose(),
                                   op::slice(),
                                   op::select(),
                                   op::as_strided(),
                                   op::slice_scatter(),
                                   op::select_scatter(),
                                   op::diagonal_scatter(),
                                   op::as_strided_scatter(),
                                   op::clone(),
                                   op::copy(),
                                   op::to_copy(),
                                   op::full(),
                                   op::cat(),
                                   op::index_put(),
                                   op::constant_pad(),
                                   op::embedding_gradient(),
                                   op::add(),
                                   op::sub(),
                                   op::mul(),
                                   op::rsqrt(),
                                   op::neg(),
                                   op::gelu(),
                                   op::native_dropout(),
                                   op::mm(),
                                   op::addmm(),
                                   op::convolution(),
                                   op::convolution_backward(),
                                   op::batch_norm(),
                                   op::batch_norm_evaluation(),
                                   op::copy_into(),
                                   op::fill_with_number(),
                                   op::fill_with_tensor(),
                                   op::zero_out(),
                                   op::bernoulli_into()}) {
    CAPTURE(op->name);
    const ops::OperatorEntry* entry = ops::find(op->name);
    REQUIRE(entry != nullptr);
    CHECK(intern_schema(entry->schema) == op);  // throws if the signatures differ
    CHECK(find_schema(op->name) == op);
    const bool has_generator = std::ranges::any_of(
        op->arguments, [](const ArgumentInfo& a) { return a.kind == ArgumentKind::Generator; });
    CHECK(op->is_random == (entry->is_random || has_generator));
  }
}
