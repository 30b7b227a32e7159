// Writes to what existed before the call: kept aside while evaluating, replayed when the segment has run.
#include <algorithm>

#include "eval/evaluator.h"
#include "guards/constants.h"

namespace oxy::eval {

void Evaluator::require_open_effects() const {
  if (effects_are_final_) stop("a backward pass that changes objects");
}

void Evaluator::record_attribute_effect(PyObject* object, PyObject* name, PyObject* value) {
  require_open_effects();
  auto [it, inserted] = effect_index_.try_emplace(object, attribute_effects_.size());
  if (inserted) attribute_effects_.emplace_back(Ref::borrow(object), Overlay{});
  Overlay& overlay = attribute_effects_[it->second].second;
  auto last = std::find_if(overlay.rbegin(), overlay.rend(),
                           [&](const auto& entry) { return guards::same_constant(entry.first.get(), name); });
  // What is written again after it was deleted stands behind everything else.
  if (last == overlay.rend() || (!last->second && value))
    overlay.emplace_back(Ref::borrow(name), Ref::borrow(value));
  else
    last->second = Ref::borrow(value);
}

std::optional<Ref> Evaluator::attribute_effect(PyObject* object, PyObject* name) const {
  auto it = effect_index_.find(object);
  if (it == effect_index_.end()) return std::nullopt;
  const Overlay& overlay = attribute_effects_[it->second].second;
  auto last = std::find_if(overlay.rbegin(), overlay.rend(),
                           [&](const auto& entry) { return guards::same_constant(entry.first.get(), name); });
  return last == overlay.rend() ? std::nullopt : std::optional<Ref>(last->second);
}

bool Evaluator::has_effects(PyObject* object) const {
  return effect_index_.contains(object);
}

Ref Evaluator::record_call_effect(PyObject* callable, Arguments arguments) {
  require_open_effects();
  call_effects_.emplace_back(Ref::borrow(callable), std::move(arguments));
  return Ref::borrow(Py_None);
}

void Evaluator::record_global_effect(PyObject* globals, PyObject* name, PyObject* value) {
  sources_.emplace(globals, guards().pinned(globals));
  record_attribute_effect(globals, name, value);
}

}  // namespace oxy::eval
