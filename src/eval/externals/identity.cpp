
#include "eval/externals/identity.h"

#include "eval/externals/admission.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::kNoSource;

bool is_known_by_identity(Interpreter& interpreter, PyObject* object) {
  return is_identity_object(object) && !guards::is_value(object) &&
         !interpreter.externals.is_known_by_code(object);
}

void require_identity(Interpreter& interpreter, PyObject* known_by_code) {
  interpreter.externals.known_by_code.erase(known_by_code);
  interpreter.guards().require(interpreter.externals.source_of(known_by_code), CheckKind::Identity,
                               known_by_code);
}

namespace {

// Guards that every place where the constant was read holds this very object, not just an equal one.
void rely_on_identity(Interpreter& interpreter, PyObject* constant) {
  for (const auto& [source, value] : interpreter.externals.admitted)
    if (value == constant) interpreter.guards().require(source, CheckKind::Identity, constant);
}

}  // namespace

PyObject* identified(Interpreter& interpreter, PyObject* object) {
  const SourceId source = interpreter.externals.source_of(object);
  if (source == kNoSource || guards::is_constant(object) || guards::is_value(object)) return nullptr;
  if (const auto real = interpreter.externals.external_of.find(object);
      real != interpreter.externals.external_of.end()) {
    const bool is_parameter =
        reinterpret_cast<PyObject*>(Py_TYPE(real->second)) == well_known("torch.nn", "Parameter");
    if (!is_parameter && !interpreter.guards().is_stable(source)) return nullptr;
    interpreter.guards().require(source, CheckKind::Identity, real->second);
    return real->second;
  }
  if (interpreter.externals.is_known_by_code(object)) {
    require_identity(interpreter, object);
  } else if (!is_identity_object(object)) {
    auto* const module_class = reinterpret_cast<PyTypeObject*>(well_known("torch.nn", "Module"));
    if (!interpreter.guards().is_stable(source) && !PyObject_TypeCheck(object, module_class)) return nullptr;
    interpreter.guards().require(source, CheckKind::Identity, object);
  }
  return object;
}

void compare_identity(Interpreter& interpreter, PyObject* left, PyObject* right) {
  if (guards::is_constant(left) && guards::same_constant(left, right) && !guards::is_unique(left)) {
    rely_on_identity(interpreter, left);
    if (left != right) rely_on_identity(interpreter, right);
    return;
  }
  // If they are the same object, admit() has guarded that already, unless it is also a constant of the code.
  // For tensors guard_identities() does it.
  if (left == right && interpreter.externals.is_code_constant(left) &&
      interpreter.externals.is_external(left))
    interpreter.guards().require(interpreter.externals.source_of(left), CheckKind::Identity, left);
  if (left == right || trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) return;
  const SourceId a = interpreter.externals.source_of(left), b = interpreter.externals.source_of(right);
  if (a == kNoSource || b == kNoSource) return;
  if (is_known_by_identity(interpreter, left) && is_known_by_identity(interpreter, right)) return;
  if (Py_TYPE(left) == Py_TYPE(right)) interpreter.guards().require_distinct({a, b});
}

// Any container may have compared objects that are equal to themselves alone. A written object must not be
// the same as another one that the capture has read.
void guard_identities(Interpreter& interpreter) {
  std::vector<SourceId> tensors;
  std::unordered_map<PyTypeObject*, std::vector<SourceId>> by_type;
  std::unordered_set<PyTypeObject*> written;
  for (const Shadow& shadow : interpreter.shadows.all)
    if (shadow.written) written.insert(Py_TYPE(shadow.object.get()));
  for (const auto& [object, source] : interpreter.externals.sources) {
    if (trace::is_trace_tensor(object))
      tensors.push_back(source);
    else if (!is_identity_object(object) && (compares_identity(object) || written.contains(Py_TYPE(object))))
      by_type[Py_TYPE(object)].push_back(source);
  }
  interpreter.guards().require_distinct(std::move(tensors));
  for (auto& [type, sources] : by_type) interpreter.guards().require_distinct(std::move(sources));
}

}  // namespace oxy::eval
