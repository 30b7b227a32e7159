#include "guards/guard_set.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::guards {

size_t GuardSet::ReadHash::operator()(const Read& read) const {
  uint64_t hash = hash_combine(static_cast<uint64_t>(read.kind), static_cast<uint64_t>(read.base.number()));
  hash = hash_combine(hash, static_cast<uint64_t>(read.index));
  hash = hash_combine(hash, reinterpret_cast<uintptr_t>(read.key));
  return hash_combine(hash, static_cast<uint64_t>(read.other.number()));
}

SourceId GuardSet::find_or_add(Source source) {
  const Read read{source.kind, source.base, source.index, source.key.get(), source.other};
  const auto [it, inserted] = by_read_.try_emplace(read, nodes_.next_id());
  if (!inserted) return it->second;
  Node node;
  node.stable =
      source.kind == SourceKind::Pinned ||
      (source.base != kNoSource && nodes_[source.base].stable && source.kind != SourceKind::ContextVariable &&
       source.kind != SourceKind::WeakReferent && !is_made(source.kind));
  node.source = std::move(source);
  nodes_.add(std::move(node));
  return it->second;
}

SourceId GuardSet::root(int32_t index, const std::string& label) {
  const Read read{SourceKind::Root, kNoSource, index, nullptr, kNoSource};
  if (auto it = by_read_.find(read); it != by_read_.end()) return it->second;
  const SourceId id = find_or_add(Source{SourceKind::Root, kNoSource, index, {}});
  roots_.push_back(id);
  nodes_[id].source.key =
      cpy::Ref::steal(PyUnicode_FromStringAndSize(label.data(), static_cast<Py_ssize_t>(label.size())));
  return id;
}

SourceId GuardSet::pinned(PyObject* object) {
  return find_or_add(Source{SourceKind::Pinned, kNoSource, -1, cpy::Ref::borrow(object)});
}

SourceId GuardSet::instance_dict(SourceId base) {
  return derived(SourceKind::InstanceDict, base);
}
SourceId GuardSet::dict_item(SourceId base, PyObject* key) {
  return derived(SourceKind::DictItem, base, key);
}
SourceId GuardSet::list_item(SourceId base, int32_t index) {
  return derived(SourceKind::ListItem, base, nullptr, index);
}
SourceId GuardSet::tuple_item(SourceId base, int32_t index) {
  return derived(SourceKind::TupleItem, base, nullptr, index);
}

SourceId GuardSet::derived(SourceKind kind, SourceId base, PyObject* key, int32_t index) {
  return find_or_add(Source{kind, base, index, cpy::Ref::borrow(key)});
}

SourceId GuardSet::calculated(PyObject* function, SourceId base, SourceId other) {
  return find_or_add(Source{SourceKind::Calculated, base, -1, cpy::Ref::borrow(function), other});
}

void GuardSet::require(SourceId source, CheckKind kind, PyObject* object, int64_t number,
                       std::string asked_at) {
  // Nodes are read in order: the later of two compares itself with the earlier.
  if (kind == CheckKind::Same && SourceId(number) > source) {
    const SourceId later(number);
    number = source.number();
    source = later;
  }
  Node& node = nodes_[source];
  for (CheckId i : node.checks) {
    const Check& c = checks_[i];
    if (c.kind == kind && c.number == number && (c.object == object || same_constant(c.object.get(), object)))
      return;
  }
  node.checks.push_back(
      checks_.add(Check{source, kind, cpy::Ref::borrow(object), number, std::move(asked_at)}));
}

void GuardSet::require_tensor(SourceId source, const at::Tensor& tensor, PyTypeObject* type) {
  for (CheckId i : nodes_[source].checks)
    if (checks_[i].kind == CheckKind::Tensor) return;
  require(source, CheckKind::Type, reinterpret_cast<PyObject*>(type));
  const TensorGuardId id = tensors_.add(TensorGuard::of(tensor, type));
  require(source, CheckKind::Tensor, nullptr, id.number());
}

TensorGuard& GuardSet::tensor_guard(SourceId source) {
  for (CheckId i : nodes_[source].checks)
    if (const Check& check = checks_[i]; check.kind == CheckKind::Tensor)
      return tensors_[TensorGuardId(check.number)];
  throw InternalError("a source without a tensor guard");
}

void GuardSet::require_storage_offset(SourceId source, const at::Tensor& tensor) {
  tensor_guard(source).storage_offset = tensor.storage_offset();
}

GuardSet::TypeLookup& GuardSet::lookup_of(PyTypeObject* type) {
  for (TypeLookup& lookup : type_lookups_)
    if (lookup.type == reinterpret_cast<PyObject*>(type)) return lookup;
  return type_lookups_.emplace_back(
      TypeLookup{cpy::Ref::borrow(reinterpret_cast<PyObject*>(type)), 0, {}, {}});
}

void GuardSet::require_type_lookup(PyTypeObject* type, PyObject* name, PyObject* found) {
  TypeLookup& lookup = lookup_of(type);
  for (const auto& [n, f] : lookup.names)
    if (n == name) return;
  lookup.names.emplace_back(cpy::Ref::borrow(name), cpy::Ref::borrow(found));
}

void GuardSet::require_resolution_order(PyTypeObject* type) {
  TypeLookup& lookup = lookup_of(type);
  if (!lookup.order) lookup.order = cpy::Ref::borrow(type->tp_mro);
}

void GuardSet::require_distinct(std::vector<SourceId> sources) {
  if (sources.size() > 1) distinct_.push_back({std::move(sources), {}, {}});
}

void GuardSet::mark_stable(SourceId root) {
  nodes_[root].stable = true;
}

void GuardSet::mark_varying(SourceId source) {
  nodes_[source].stable = false;
}

bool GuardSet::is_module_state(SourceId source) const {
  const Node& node = nodes_[source];
  if (!node.stable || node.source.kind != SourceKind::DictItem) return false;
  const Source& group = nodes_[node.source.base].source;
  if (group.kind != SourceKind::DictItem || !PyUnicode_Check(group.key.get())) return false;
  return PyUnicode_CompareWithASCIIString(group.key.get(), "_parameters") == 0 ||
         PyUnicode_CompareWithASCIIString(group.key.get(), "_buffers") == 0;
}

int GuardSet::traverse(visitproc visit, void* arg) const {
  for (const Node& node : nodes_) {
    Py_VISIT(node.source.key.get());
    Py_VISIT(node.held.get());
  }
  for (const Check& check : checks_) Py_VISIT(check.object.get());
  for (const TypeLookup& lookup : type_lookups_) {
    Py_VISIT(lookup.type.get());
    Py_VISIT(lookup.order.get());
    for (const auto& [name, found] : lookup.names) {
      Py_VISIT(name.get());
      Py_VISIT(found.get());
    }
  }
  return 0;
}

}  // namespace oxy::guards
