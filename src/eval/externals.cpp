// Objects that existed before the call: admitted once, guarded by what is read of them.

#include <fmt/format.h>

#include <array>

#include "eval/evaluator.h"
#include "eval/objects.h"
#include "guards/constants.h"
#include "runtime/tensor_object.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::kNoSource;
using guards::SourceKind;

namespace {

// Lambdas, other functions that are defined inside functions, and bound methods of C code, where variables
// and containers hold them. What modules, classes and objects have as attributes mostly stays.
bool may_be_made_anew(PyObject* object, SourceKind where) {
  if (where != SourceKind::Root && where != SourceKind::CellContents && where != SourceKind::TupleItem &&
      where != SourceKind::ListItem)
    return false;
  if (PyFunction_Check(object))
    return (reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(object))->co_flags & CO_NESTED) != 0;
  return is_bound_c_method(object);
}

}  // namespace

SourceId Evaluator::source_of(PyObject* object) const {
  auto it = sources_.find(object);
  return it == sources_.end() ? kNoSource : it->second;
}

Ref Evaluator::pin(PyObject* raw) {
  if (guards::is_constant(raw) || is_fresh_function(raw)) return Ref::borrow(raw);
  if (is_known_by_code(raw)) require_identity(raw);
  return admit(raw, guards().pinned(raw));
}

bool Evaluator::is_known_by_identity(PyObject* object) const {
  return is_identity_object(object) && !guards::is_value(object) && !is_known_by_code(object);
}

void Evaluator::require_identity(PyObject* known_by_code) {
  known_by_code_.erase(known_by_code);
  guards().require(source_of(known_by_code), CheckKind::Identity, known_by_code);
}

Ref Evaluator::admit(PyObject* raw, SourceId source) {
  if (auto it = admitted_.find(source); it != admitted_.end()) return it->second;
  auto keep = [&](PyObject* value) {
    Ref ref = Ref::borrow(value);
    admitted_.emplace(source, ref);
    return ref;
  };
  if (!raw) stop("reads a variable that is not bound");
  if (guards::is_constant(raw) && varying_ && varying_->contains(guards().describe(source)))
    stop("uses a number or text that was another one at each call");
  if (options_.varying_numbers && (PyFloat_CheckExact(raw) || PyLong_CheckExact(raw)) &&
      options_.varying_numbers->contains(guards().describe(source))) {
    Ref number = admit_varying(raw, source);
    admitted_.emplace(source, number);
    return number;
  }
  if (guards::is_constant(raw)) {
    guards().require(source, CheckKind::Equal, raw);
    return keep(raw);
  }
  if (runtime::is_tensor(raw)) {
    if (trace::is_trace_tensor(raw)) return keep(raw);  // one of ours that a real container holds
    if (!is_torch_tensor_type(Py_TYPE(raw)))
      stop(fmt::format("a tensor of type {}", Py_TYPE(raw)->tp_name), "tensor subclasses run in eager");
    if (auto it = trace_of_.find(raw); it != trace_of_.end()) {
      const SourceId first = sources_.at(it->second.get());
      if (first != source) guards().require(source, CheckKind::Same, nullptr, first);
      return keep(it->second.get());
    }
    const at::Tensor& tensor = runtime::tensor_of(raw);
    if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_nested())
      stop("a tensor that is not dense");
    if (!tensor.device().is_cpu()) stop(fmt::format("a tensor on device {}", tensor.device().str()));
    if (guards::history_of(tensor) == guards::History::Unclear)
      stop("a view made without grad of a tensor that requires grad");
    guards().require_tensor(source, tensor, Py_TYPE(raw));
    Ref trace = Ref::steal(recorder_.add_input(raw, options_.knows_elements));
    if (!trace) stop("a tensor that cannot be traced");
    capture_->inputs.push_back(source);
    trace_of_.emplace(raw, trace);
    external_of_.emplace(trace.get(), raw);
    sources_.emplace(trace.get(), source);
    keep_alive_.push_back(Ref::borrow(raw));
    keep_alive_.push_back(trace);
    return keep(trace.get());
  }
  if (auto it = sources_.find(raw); it != sources_.end()) {
    if (it->second != source) {
      if (is_known_by_identity(raw))
        guards().require(source, CheckKind::Identity, raw);
      else
        guards().require(source, CheckKind::Same, nullptr, it->second);
    }
    return keep(raw);
  }
  keep_alive_.push_back(Ref::borrow(raw));
  if (PySlice_Check(raw)) {
    sources_.emplace(raw, source);
    return keep(admit_slice(raw, source).get());
  }
  if (guards::is_value(raw)) {
    guards().require(source, CheckKind::Equal, raw);
    sources_.emplace(raw, source);
    return keep(raw);
  }
  if (may_be_made_anew(raw, guards().kind_of(source)) && !guards().is_stable(source)) {
    if (PyFunction_Check(raw)) {
      guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(&PyFunction_Type));
      guards().require(guards().derived(SourceKind::FunctionCode, source), CheckKind::Identity,
                       PyFunction_GET_CODE(raw));
    } else {
      guards().require(source, CheckKind::Definition, nullptr,
                       reinterpret_cast<int64_t>(reinterpret_cast<PyCFunctionObject*>(raw)->m_ml));
    }
    sources_.emplace(raw, source);
    known_by_code_.insert(raw);
    return keep(raw);
  }
  if (is_identity_object(raw)) {
    const SourceId pinned = guards().pinned(raw);
    if (pinned != source) guards().require(source, CheckKind::Identity, raw);
    sources_.emplace(raw, pinned);
    return keep(raw);
  }
  guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(Py_TYPE(raw)));
  sources_.emplace(raw, source);
  return keep(raw);
}

// What it is made of counts, not which slice it is: the fresh one stands for it.
Ref Evaluator::admit_slice(PyObject* slice, SourceId source) {
  guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(&PySlice_Type));
  std::array<Ref, 3> parts;
  constexpr std::array<const char*, 3> kNames = {"start", "stop", "step"};
  for (size_t i = 0; i < parts.size(); ++i) {
    PyObject* const member = _PyType_Lookup(&PySlice_Type, interned(kNames[i]).get());
    const SourceId part = guards().derived(SourceKind::Member, source, member);
    PyObject* const value =
        guards::read({SourceKind::Member, source, -1, Ref::borrow(member), kNoSource}, slice);
    parts[i] = known(admit(value, part).get(), "a slice");
  }
  Ref fresh = Ref::steal(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
  copies_.emplace(fresh.get(), Ref::borrow(slice));
  keep_alive_.push_back(fresh);
  return fresh;
}

void Evaluator::note_code_constant(PyObject* constant) {
  if (!PyTuple_CheckExact(constant) && !PyFrozenSet_CheckExact(constant)) return;
  if (!code_constants_.insert(constant).second || !PyTuple_CheckExact(constant)) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constant); ++i)
    note_code_constant(PyTuple_GET_ITEM(constant, i));
}

void Evaluator::rely_on_identity(PyObject* constant) {
  for (const auto& [source, value] : admitted_)
    if (value == constant) guards().require(source, CheckKind::Identity, constant);
}

PyObject* Evaluator::identified(PyObject* object) {
  const SourceId source = source_of(object);
  if (source == kNoSource || guards::is_constant(object) || guards::is_value(object)) return nullptr;
  if (const auto real = external_of_.find(object); real != external_of_.end()) {
    const bool is_parameter =
        reinterpret_cast<PyObject*>(Py_TYPE(real->second)) == well_known("torch.nn", "Parameter");
    if (!is_parameter && !guards().is_stable(source)) return nullptr;
    guards().require(source, CheckKind::Identity, real->second);
    return real->second;
  }
  if (is_known_by_code(object)) {
    require_identity(object);
  } else if (!is_identity_object(object)) {
    auto* const module_class = reinterpret_cast<PyTypeObject*>(well_known("torch.nn", "Module"));
    if (!guards().is_stable(source) && !PyObject_TypeCheck(object, module_class)) return nullptr;
    guards().require(source, CheckKind::Identity, object);
  }
  return object;
}

void Evaluator::compare_identity(PyObject* left, PyObject* right) {
  if (guards::is_constant(left) && guards::same_constant(left, right) && !guards::is_unique(left)) {
    rely_on_identity(left);
    if (left != right) rely_on_identity(right);
    return;
  }
  // The same object: admit() has required that already, unless one is a constant of the code. Tensors:
  // guard_identities() does.
  if (left == right && is_code_constant(left) && is_external(left))
    guards().require(source_of(left), CheckKind::Identity, left);
  if (left == right || trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) return;
  const SourceId a = source_of(left), b = source_of(right);
  if (a == kNoSource || b == kNoSource) return;
  if (is_known_by_identity(left) && is_known_by_identity(right)) return;
  if (Py_TYPE(left) == Py_TYPE(right)) guards().require_distinct({a, b});
}

// Tensors that were different ones when captured must be; so must objects that are equal to themselves alone,
// which any container may have asked, and objects that were written and others that could be the same.
void Evaluator::guard_identities() {
  std::vector<SourceId> tensors;
  std::unordered_map<PyTypeObject*, std::vector<SourceId>> by_type;
  std::unordered_set<PyTypeObject*> written;
  for (const Shadow& shadow : shadows_)
    if (shadow.written) written.insert(Py_TYPE(shadow.object.get()));
  for (const auto& [object, source] : sources_) {
    if (trace::is_trace_tensor(object))
      tensors.push_back(source);
    else if (!is_identity_object(object) && (compares_identity(object) || written.contains(Py_TYPE(object))))
      by_type[Py_TYPE(object)].push_back(source);
  }
  guards().require_distinct(std::move(tensors));
  for (auto& [type, sources] : by_type) guards().require_distinct(std::move(sources));
}

void Evaluator::admit_presence(SourceId source) {
  guards().require(source, CheckKind::Present, nullptr);
}

void Evaluator::guard_type_lookup(PyTypeObject* type, PyObject* name, PyObject* found) {
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) guards().require_type_lookup(type, name, found);
}

void Evaluator::guard_resolution_order(PyTypeObject* type) {
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) guards().require_resolution_order(type);
}

}  // namespace oxy::eval
