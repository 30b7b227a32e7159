// What has changed where guards fail.
#include <algorithm>

#include "guards/guard_set.h"
#include "runtime/values/tensor_object.h"

namespace oxy::guards {

std::optional<GuardSet::Failure> GuardSet::first_failure(std::span<PyObject* const> roots) {
  for (const SourceId id : nodes_.ids()) {
    if (check_node(id, roots)) continue;
    for (CheckId c : nodes_[id].checks)
      if (const Check& check = checks_[c]; !holds(check, nodes_[id].value)) return Failure{id, &check};
    return Failure{id, nullptr};
  }
  return std::nullopt;
}

// False: it differs in more than sizes and strides.
bool GuardSet::note_sizes(SourceId source, const TensorGuard& guard, const at::Tensor& tensor,
                          std::vector<ChangedSize>& changed) const {
  if (!guard.differs_in_layout_alone(tensor)) return false;
  const std::string place = describe(source);
  for (const IntegerPart part : {IntegerPart::Size, IntegerPart::Stride}) {
    const bool is_size = part == IntegerPart::Size;
    const std::vector<int64_t>& was = is_size ? guard.sizes : guard.strides;
    const c10::IntArrayRef is = is_size ? tensor.sizes() : tensor.strides();
    for (size_t d = 0; d < was.size(); ++d)
      if (was[d] != is[d] && (was[d] != kAnyInteger || !is_size))
        changed.push_back({place, part, static_cast<int32_t>(d)});
  }
  return true;
}

Changes GuardSet::changes(std::span<PyObject* const> roots) {
  fast_valid_ = false;
  const auto is_number = [](PyObject* object) {
    return PyLong_CheckExact(object) || PyFloat_CheckExact(object);
  };
  const auto is_number_or_text = [&](PyObject* object) {
    return object && (is_number(object) || PyComplex_CheckExact(object) || PyUnicode_CheckExact(object));
  };
  Changes changed;
  if (!std::ranges::all_of(type_lookups_, [&](TypeLookup& lookup) { return check_type_lookup(lookup); }))
    return changed;
  bool only_numbers = true;
  for (const SourceId id : nodes_.ids()) {
    if (check_node(id, roots)) continue;
    PyObject *before = nullptr, *now = nodes_[id].value;
    bool has_other_sizes = false;
    for (CheckId c : nodes_[id].checks)
      if (const Check& check = checks_[c]; !holds(check, now)) {
        changed.elements = check.kind == CheckKind::Elements;
        has_other_sizes =
            check.kind == CheckKind::Tensor && now && runtime::is_tensor(now) &&
            note_sizes(id, tensors_[TensorGuardId(check.number)], runtime::tensor_of(now), changed.sizes);
        if (check.kind != CheckKind::Equal && !has_other_sizes) return changed;
        before = check.object.get();
      }
    if (has_other_sizes) continue;
    if (!is_number_or_text(before) || !is_number_or_text(now)) return changed;
    changed.constants.push_back({describe(id), is_number(before) && Py_TYPE(before) == Py_TYPE(now),
                                 nodes_[id].source.kind == SourceKind::Calculated});
    only_numbers &= changed.constants.back().is_number;
  }
  changed.only_numbers = only_numbers;
  return changed;
}

}  // namespace oxy::guards
