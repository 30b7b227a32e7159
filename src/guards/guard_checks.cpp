// Guards are checked: all of them, or on the fast path what may have changed.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/config.h"
#include "base/error.h"
#include "cpy/dict.h"
#include "cpy/dict_watch.h"
#include "cpy/finalizer.h"
#include "cpy/set.h"
#include "cpy/type.h"
#include "guards/constants.h"
#include "guards/guard_set.h"
#include "runtime/values/tensor_object.h"

namespace oxy::guards {

namespace {

bool has_order(PyObject* set, PyObject* items) {
  if (PySet_GET_SIZE(set) != PyTuple_GET_SIZE(items)) return false;
  Py_ssize_t i = 0;
  for (PyObject* item : cpy::SetItems(set))
    if (!same_constant(item, PyTuple_GET_ITEM(items, i++))) return false;
  return true;
}

bool has_table(PyObject* set, Py_ssize_t mask) {
  auto* table = reinterpret_cast<PySetObject*>(set);
  return table->mask == mask && table->fill == table->used;
}

int64_t limit_of(PyObject* deque) {
  cpy::Ref limit = cpy::Ref::steal(PyObject_GetAttrString(deque, "maxlen"));
  return !limit || limit == Py_None ? -1 : PyLong_AsSsize_t(limit.get());
}

bool is_dict_check(CheckKind kind) {
  return kind == CheckKind::DictKeys || kind == CheckKind::Absent;
}

bool same_constant_or_object(PyObject* a, PyObject* b) {
  return a == b || same_constant(a, b);
}

bool same_elements(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  if (!a.is_contiguous() || !b.is_contiguous()) return a.equal(b);
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), b.nbytes()) == 0;
}

bool has_keys(PyObject* dict, PyObject* keys) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  Py_ssize_t position = 0, i = 0;
  PyObject* key = nullptr;
  if (PyODict_Check(dict)) {
    cpy::Ref found = cpy::dict_keys(dict);
    for (; i < PyTuple_GET_SIZE(keys); ++i)
      if (!found || !same_constant_or_object(PyTuple_GET_ITEM(found.get(), i), PyTuple_GET_ITEM(keys, i)))
        return false;
    return true;
  }
  while (PyDict_Next(dict, &position, &key, nullptr)) {
    if (!same_constant_or_object(key, PyTuple_GET_ITEM(keys, i++))) return false;
  }
  return true;
}

}  // namespace

bool GuardSet::all_distinct(const DistinctGroup& group) const {
  std::vector<PyObject*> values;
  values.reserve(group.sources.size());
  for (SourceId id : group.sources) values.push_back(value(id));
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

bool GuardSet::varying_distinct(const DistinctGroup& group) const {
  constexpr size_t kFew = 16;
  if (group.varying.size() > kFew) return all_distinct(group);
  for (size_t i = 0; i < group.varying.size(); ++i) {
    PyObject* object = value(group.varying[i]);
    if (std::binary_search(group.stable.begin(), group.stable.end(), object)) return false;
    for (size_t j = 0; j < i; ++j)
      if (value(group.varying[j]) == object) return false;
  }
  return true;
}

bool end_is_seen(PyObject* object) {
  if (cpy::has_finalizer(object) || cpy::holds_finalizer(object)) return true;
  // Modules keep weak references to parameters that they hold besides.
  return Py_TYPE(object) != runtime::parameter_class() && cpy::has_weak_references(object);
}

bool GuardSet::holds(const Check& check, PyObject* value) const {
  PyObject* object = check.object.get();
  if (check.kind == CheckKind::Unbound) return value == nullptr;
  if (check.kind == CheckKind::Unfinalized) return value == nullptr || !end_is_seen(value);
  if (!value) return false;
  switch (check.kind) {
    case CheckKind::Identity:
      return value == object;
    case CheckKind::Type:
      return reinterpret_cast<PyObject*>(Py_TYPE(value)) == object;
    case CheckKind::Equal:
      return value == object || (same_constant(value, object) && !is_nan(object));
    case CheckKind::Length:
      return length_of(value) == check.number;
    case CheckKind::DictKeys:
      return has_keys(value, object);
    case CheckKind::Absent:
      return PyDict_Check(value) && PyDict_GetItem(value, object) == nullptr;
    case CheckKind::SetEqual:
      return PyAnySet_Check(value) && PyObject_RichCompareBool(value, object, Py_EQ) == 1;
    case CheckKind::SetOrder:
      return PyAnySet_Check(value) && has_order(value, object) &&
             (check.number == 0 || has_table(value, check.number));
    case CheckKind::DequeLimit:
      return is_deque(value) && limit_of(value) == check.number;
    case CheckKind::Definition:
      return PyCFunction_Check(value) &&
             reinterpret_cast<int64_t>(reinterpret_cast<PyCFunctionObject*>(value)->m_ml) == check.number;
    case CheckKind::Tensor:
      return runtime::is_tensor(value) &&
             tensors_[TensorGuardId(check.number)].matches(runtime::tensor_of(value));
    case CheckKind::Same:
      return value == nodes_[SourceId(check.number)].value;
    case CheckKind::Present:
      return true;
    case CheckKind::NoGradientHooks:
      return runtime::is_tensor(value) && !has_gradient_hooks(runtime::tensor_of(value));
    case CheckKind::FitsType:
      return PyFloat_CheckExact(value) && fits_type(value, static_cast<c10::ScalarType>(check.number));
    case CheckKind::Finite:
      return PyFloat_CheckExact(value) && std::isfinite(PyFloat_AS_DOUBLE(value));
    case CheckKind::FitsInt64: {
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(value, &overflow);
      return overflow == 0;
    }
    case CheckKind::Elements:
      return runtime::is_tensor(value) &&
             same_elements(runtime::tensor_of(value), runtime::tensor_of(object));
    case CheckKind::Unbound:
    case CheckKind::Unfinalized:
      return false;
  }
  return false;
}

bool GuardSet::check_node(SourceId id, std::span<PyObject* const> roots) {
  Node& node = nodes_[id];
  const Source& source = node.source;
  if (source.kind == SourceKind::Root) {
    if (static_cast<size_t>(source.index) >= roots.size()) return false;
    node.value = roots[static_cast<size_t>(source.index)];
  } else {
    PyObject* base = source.base == kNoSource ? nullptr : nodes_[source.base].value;
    if (source.base != kNoSource && !base) return false;
    if (is_made(source.kind)) {
      PyObject* other = source.other == kNoSource ? nullptr : nodes_[source.other].value;
      node.held = make_number(source, base, other);
      node.value = node.held.get();
    } else {
      node.value = read(source, base);
    }
  }
  for (CheckId i : node.checks)
    if (!holds(checks_[i], node.value)) return false;
  return true;
}

bool GuardSet::check_type_lookup(TypeLookup& lookup) {
  auto* type = reinterpret_cast<PyTypeObject*>(lookup.type.get());
  if (lookup.version != 0 && cpy::type_version(type) == lookup.version) return true;
  for (const auto& [name, found] : lookup.names)
    if (_PyType_Lookup(type, name.get()) != found.get()) return false;
  if (lookup.order && type->tp_mro != lookup.order.get()) return false;
  lookup.version = cpy::type_version(type);
  return true;
}

bool GuardSet::check_all(std::span<PyObject* const> roots) {
  for (TypeLookup& lookup : type_lookups_)
    if (!check_type_lookup(lookup)) return false;
  for (const SourceId id : nodes_.ids())
    if (!check_node(id, roots)) return false;
  return std::all_of(distinct_.begin(), distinct_.end(),
                     [&](const DistinctGroup& group) { return all_distinct(group); }) &&
         check_symbols();
}

bool GuardSet::check_symbols() {
  return symbols_.empty() || symbols_.check([&](SourceId source) { return nodes_[source].value; });
}

void GuardSet::add_type(SourceId id, std::vector<FastCheck>& found) const {
  PyObject* const value = nodes_[id].value;
  found.push_back({FastKind::TypeIs, id, value, reinterpret_cast<uint64_t>(Py_TYPE(value)), &value->ob_type});
}

void GuardSet::add_read(SourceId id, std::vector<FastCheck>& found) const {
  const Node& node = nodes_[id];
  const Node& base = nodes_[node.source.base];
  const auto* const place = place_of(node.source, base.value);
  // What gives None may be a null pointer.
  if (place == nullptr || (*place != node.value && (*place != nullptr || node.value != Py_None))) {
    found.push_back({FastKind::ReadPointer, id, node.value, 0});
    return;
  }
  // The place is one of the base's only if that is what it was.
  if (!base.is_same && base.source.kind != SourceKind::DictItem) add_type(node.source.base, found);
  found.push_back({FastKind::Pointer, id, node.value, reinterpret_cast<uint64_t>(*place), place});
}

std::vector<GuardSet::FastCheck> GuardSet::find_fast_checks() {
  std::vector<FastCheck> found;
  varying_.clear();
  for (DistinctGroup& group : distinct_) {
    group.stable.clear();
    group.varying.clear();
    for (SourceId id : group.sources) {
      if (nodes_[id].stable)
        group.stable.push_back(value(id));
      else
        group.varying.push_back(id);
    }
    std::sort(group.stable.begin(), group.stable.end());
  }
  dict_children_.assign(nodes_.size(), {});
  for (const SourceId id : nodes_.ids()) {
    const Source& source = nodes_[id].source;
    if (source.kind == SourceKind::DictItem && nodes_[id].stable) dict_children_[source.base].push_back(id);
  }
  for (const SourceId id : nodes_.ids()) {
    Node& node = nodes_[id];
    if (!node.stable) {
      varying_.push_back(id);
      continue;
    }
    // What is not held may have died since, and something else may lie at its address.
    node.held = node.value && is_immutable(node.value) ? cpy::Ref::borrow(node.value) : cpy::Ref();
    const SourceKind kind = node.source.kind;
    const bool is_covered = kind == SourceKind::DictItem;  // by the version of its dict
    const bool is_part_of_same = (kind == SourceKind::TupleItem || kind == SourceKind::MethodFunction ||
                                  kind == SourceKind::MethodSelf) &&
                                 nodes_[node.source.base].is_same;
    node.is_same = kind == SourceKind::Root || kind == SourceKind::Pinned || is_part_of_same;
    if (!node.is_same && !is_covered) add_read(id, found);
    node.is_same = node.is_same || node.held;
    if (!node.value) continue;
    bool versioned = !dict_children_[id].empty();
    for (CheckId c : node.checks) {
      const Check& check = checks_[c];
      switch (check.kind) {
        case CheckKind::Type:
          // The type of most builtin objects cannot be assigned to; that of instances and modules can.
          if (PyType_HasFeature(Py_TYPE(node.value), Py_TPFLAGS_HEAPTYPE) || PyModule_Check(node.value) ||
              (!node.is_same && !is_covered))
            add_type(id, found);
          break;
        case CheckKind::Tensor:
          found.push_back({FastKind::Tensor, id, node.value, static_cast<uint64_t>(check.number)});
          break;
        case CheckKind::Length:
          if (PyDict_Check(node.value))
            versioned = true;
          else if (!node.is_same || !PyTuple_Check(node.value))
            found.push_back({FastKind::Length, id, node.value, static_cast<uint64_t>(check.number)});
          break;
        case CheckKind::NoGradientHooks:
          found.push_back({FastKind::NoGradientHooks, id, node.value, 0});
          break;
        case CheckKind::SetEqual:
        case CheckKind::SetOrder:
        case CheckKind::DequeLimit:
        case CheckKind::Elements:
          varying_.push_back(id);
          break;
        case CheckKind::Same:
          if (!nodes_[SourceId(check.number)].stable) varying_.push_back(id);
          break;
        default:
          if (is_dict_check(check.kind)) versioned = true;
          // The order of an ordered dict is not part of its version.
          if (check.kind == CheckKind::DictKeys && PyODict_Check(node.value)) varying_.push_back(id);
      }
    }
    if (versioned && PyDict_Check(node.value))
      found.push_back({FastKind::DictVersion, id, node.value, cpy::dict_version(node.value)});
  }
  return found;
}

void GuardSet::build_fast() {
  IdVector<SourceId, int32_t> depths;
  for (const Node& node : nodes_)
    depths.add(node.source.base == kNoSource ? 0 : depths[node.source.base] + 1);
  const auto place_of = [&](const FastCheck& check) { return std::pair(depths[check.node], check.kind); };
  std::vector<FastCheck> found = find_fast_checks();
  std::ranges::stable_sort(found, {}, place_of);
  fast_.clear();
  fast_dicts_.clear();
  fast_pointers_.clear();
  fast_runs_.clear();
  are_dicts_watched_ = true;
  for (size_t i = 0; i < found.size(); ++i) {
    const FastCheck& check = found[i];
    const bool is_dict = check.kind == FastKind::DictVersion;
    const size_t place = is_dict ? fast_dicts_.size() : check.place ? fast_pointers_.size() : fast_.size();
    if (i == 0 || place_of(found[i - 1]) != place_of(check)) fast_runs_.push_back({check.kind, place, place});
    fast_runs_.back().end = place + 1;
    if (is_dict) {
      fast_dicts_.push_back({check.object, check.expected, check.node.number()});
      watch(fast_dicts_.back());
    } else if (check.place) {
      fast_pointers_.push_back({check.place, check.expected});
    } else {
      fast_.push_back(check);
    }
  }
  fast_valid_ = true;
  known_changes_ = cpy::watched_changes();
}

void GuardSet::watch(const cpy::KnownDict& known) {
  are_dicts_watched_ = are_dicts_watched_ && known.version != 0 && cpy::watch_dict(known.dict);
}

// A dict changed, but perhaps none of what was read of it.
bool GuardSet::recheck_dict(cpy::KnownDict& known) {
  const SourceId id(known.owner);
  for (SourceId child : dict_children_[id]) {
    const Node& n = nodes_[child];
    if (PyDict_GetItem(known.dict, n.source.key.get()) != n.value) return false;
    for (CheckId c : n.checks) {
      const Check& own = checks_[c];
      if (own.kind == CheckKind::Type && !n.is_same && !holds(own, n.value)) return false;
    }
  }
  for (CheckId c : nodes_[id].checks) {
    const Check& own = checks_[c];
    if ((is_dict_check(own.kind) || own.kind == CheckKind::Length) && !holds(own, known.dict)) return false;
  }
  known.version = cpy::dict_version(known.dict);
  watch(known);  // another dict may lie at the address now
  return true;
}

bool GuardSet::check_dicts(std::span<cpy::KnownDict> dicts) {
  for (;;) {
    dicts = dicts.subspan(cpy::first_changed(dicts));
    if (dicts.empty()) return true;
    if (!recheck_dict(dicts.front())) return false;
    dicts = dicts.subspan(1);
  }
}

bool GuardSet::are_known(std::span<const KnownPointer> pointers) {
  uint64_t different = 0;
  for (const KnownPointer& known : pointers) {
    uint64_t now = 0;
    std::memcpy(&now, known.place, sizeof now);
    different |= now ^ known.expected;
  }
  return different == 0;
}

// A tensor's object and its TensorImpl may lie anywhere in memory. Both are prefetched some checks ahead.
bool GuardSet::check_tensors(std::span<const FastCheck> checks) const {
  constexpr size_t kObjectsAhead = 12, kTensorsAhead = 6;
  for (size_t i = 0; i < checks.size(); ++i) {
    if (i + kObjectsAhead < checks.size()) __builtin_prefetch(checks[i + kObjectsAhead].object);
    if (i + kTensorsAhead < checks.size())
      TensorGuard::prefetch(runtime::tensor_of(checks[i + kTensorsAhead].object));
    const FastCheck& check = checks[i];
    if (!tensors_[TensorGuardId(check.expected)].matches(runtime::tensor_of(check.object))) return false;
  }
  return true;
}

bool GuardSet::check_fast() {
  const uint64_t changes = cpy::watched_changes();
  const bool are_dicts_unchanged = are_dicts_watched_ && changes == known_changes_;
  for (const FastRun& run : fast_runs_) {
    const auto all = [&](const auto& holds) {
      return std::all_of(fast_.begin() + static_cast<ptrdiff_t>(run.begin),
                         fast_.begin() + static_cast<ptrdiff_t>(run.end), holds);
    };
    bool ok = false;
    switch (run.kind) {
      case FastKind::Pointer:
      case FastKind::TypeIs:
        ok = are_known(std::span(fast_pointers_).subspan(run.begin, run.end - run.begin));
        break;
      case FastKind::ReadPointer:
        ok = all([&](const FastCheck& check) {
          const Source& source = nodes_[check.node].source;
          return read(source, nodes_[source.base].value) == check.object;
        });
        break;
      case FastKind::Tensor:
        ok = check_tensors(std::span(fast_).subspan(run.begin, run.end - run.begin));
        break;
      case FastKind::Length:
        ok = all([](const FastCheck& check) {
          return static_cast<uint64_t>(length_of(check.object)) == check.expected;
        });
        break;
      case FastKind::NoGradientHooks:
        ok =
            all([](const FastCheck& check) { return !has_gradient_hooks(runtime::tensor_of(check.object)); });
        break;
      case FastKind::DictVersion:
        ok = are_dicts_unchanged ||
             check_dicts(std::span(fast_dicts_).subspan(run.begin, run.end - run.begin));
        break;
    }
    if (!ok) return false;
  }
  known_changes_ = changes;
  return true;
}

void GuardSet::freeze(std::span<PyObject* const> roots) {
  by_read_.clear();
  if (check_all(roots)) build_fast();
}

bool GuardSet::check(std::span<PyObject* const> roots) {
  if (fast_valid_) {
    bool ok = true;
    for (TypeLookup& lookup : type_lookups_) ok = ok && check_type_lookup(lookup);
    if (ok) {
      for (SourceId id : roots_) {
        Node& node = nodes_[id];
        node.value = roots[static_cast<size_t>(node.source.index)];
      }
      if (check_fast()) {
        for (SourceId id : varying_)
          if (!check_node(id, roots)) return false;
        const bool holds = std::all_of(distinct_.begin(), distinct_.end(),
                                       [&](const DistinctGroup& group) { return varying_distinct(group); }) &&
                           check_symbols();
        if (holds && strict() && !GuardSet(*this).check_all(roots))
          throw InternalError("guards that fail are taken to hold, since nothing changed: " +
                              explain_failure(roots));
        return holds;
      }
    }
    fast_valid_ = false;
  }
  if (!check_all(roots)) return false;
  build_fast();
  return true;
}

}  // namespace oxy::guards
