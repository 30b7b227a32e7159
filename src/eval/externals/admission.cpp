// Admission of external objects: guards by kind of object.

#include "eval/externals/admission.h"

#include <fmt/format.h>
#include <torch/csrc/Size.h>

#include <array>

#include "eval/externals/identity.h"
#include "eval/externals/plain.h"
#include "eval/externals/tensor_layout.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/symbolic_size.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/sizes/named_numbers.h"
#include "eval/sizes/specified_sizes.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"
#include "runtime/device/device.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

namespace {

Ref admit_slice(Interpreter& interpreter, PyObject* slice, SourceId source);
Ref admit_size(Interpreter& interpreter, PyObject* size, SourceId source);

}  // namespace

using guards::CheckKind;
using guards::kNoSource;
using guards::SourceKind;

namespace {

// Whether a program may make the object anew at each call: a lambda or other function that is defined inside
// a function, or a bound method of C code, held by a variable or a container. Attributes of modules, classes
// and objects mostly stay the same.
bool may_be_made_anew(PyObject* object, SourceKind where) {
  if (where != SourceKind::Root && where != SourceKind::CellContents && where != SourceKind::TupleItem &&
      where != SourceKind::ListItem)
    return false;
  if (PyFunction_Check(object))
    return (reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(object))->co_flags & CO_NESTED) != 0;
  return is_bound_c_method(object);
}

// What dynamic_shapes= says of an int; null: nothing.
const Dimension* said_of(const Interpreter& interpreter, PyObject* object, SourceId source) {
  const SpecifiedSizes* const specified = interpreter.options.specified_sizes;
  return specified != nullptr && interpreter.numbers.symbols && PyLong_CheckExact(object)
             ? specified->of_int(interpreter.guards().describe(source))
             : nullptr;
}

// Whether a number is another one at each call.
bool varies(const Interpreter& interpreter, PyObject* object, SourceId source) {
  if (!PyFloat_CheckExact(object) && !PyLong_CheckExact(object)) return false;
  if (const Dimension* const said = said_of(interpreter, object, source))
    return said->mark.kind != sym::MarkKind::Static;
  if (interpreter.options.all_numbers_vary && PyLong_CheckExact(object) &&
      interpreter.guards().kind_of(source) == SourceKind::Root)
    return true;
  // A graph module takes ints, and tensors.
  if (interpreter.options.torch_program && (!PyLong_CheckExact(object) || !interpreter.numbers.symbols))
    return false;
  return interpreter.options.varying_numbers &&
         interpreter.options.varying_numbers->contains(interpreter.guards().describe(source));
}

}  // namespace

Ref pin(Interpreter& interpreter, PyObject* raw) {
  if (guards::is_constant(raw) || interpreter.calls.is_fresh_function(raw)) return Ref::borrow(raw);
  if (interpreter.externals.is_known_by_code(raw)) require_identity(interpreter, raw);
  return admit(interpreter, raw, interpreter.guards().pinned(raw));
}

Ref admit(Interpreter& interpreter, PyObject* raw, SourceId source) {
  if (auto it = interpreter.externals.admitted.find(source); it != interpreter.externals.admitted.end())
    return it->second;
  auto keep = [&](PyObject* value) {
    Ref ref = Ref::borrow(value);
    interpreter.externals.admitted.emplace(source, ref);
    return ref;
  };
  if (!raw) interpreter.stop("reads a variable that is not bound");
  if (guards::is_constant(raw) && interpreter.externals.unguarded &&
      interpreter.externals.unguarded->contains(interpreter.guards().describe(source)))
    interpreter.stop("uses a number or text that was another one at each call");
  if (varies(interpreter, raw, source)) {
    Ref number = admit_varying(interpreter, raw, source);
    if (const Dimension* const said = said_of(interpreter, raw, source)) {
      const std::optional<int64_t> value = exact_int(raw);
      if (!value) interpreter.stop("an int of more than 64 bits that is to be a symbol");
      const sym::Expr symbol = new_symbol(interpreter, {source, guards::IntegerPart::Value},
                                          sym::SymbolKind::Integer, *value, said->mark);
      if (!said->name.empty()) relate(interpreter, *said, symbol, *value);
      interpreter.numbers.varying.at(number.get()).expression = symbol;
    }
    interpreter.externals.admitted.emplace(source, number);
    return number;
  }
  if (guards::is_constant(raw)) {
    interpreter.guards().require(source, CheckKind::Equal, raw);
    return keep(raw);
  }
  if (runtime::is_tensor(raw)) {
    if (trace::is_trace_tensor(raw)) return keep(raw);  // one of ours that a real container holds
    if (!is_torch_tensor_type(Py_TYPE(raw)))
      interpreter.stop(fmt::format("a tensor of type {}", Py_TYPE(raw)->tp_name),
                       "tensor subclasses run in eager");
    if (auto it = interpreter.externals.trace_of.find(raw); it != interpreter.externals.trace_of.end()) {
      const SourceId first = interpreter.externals.sources.at(it->second.get());
      if (first != source) interpreter.guards().require(source, CheckKind::Same, nullptr, first.number());
      return keep(it->second.get());
    }
    const at::Tensor& tensor = runtime::tensor_of(raw);
    if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_nested())
      interpreter.stop("a tensor that is not dense");
    if (runtime::find_device(tensor.device().type()) == nullptr)
      interpreter.stop(fmt::format("a tensor on device {}", tensor.device().str()),
                       runtime::why_no_device(tensor.device().type()));
    if (guards::history_of(tensor) == guards::History::Unclear)
      interpreter.stop("a view made without grad of a tensor that requires grad");
    interpreter.guards().require_tensor(source, tensor, Py_TYPE(raw));
    const std::optional<TensorMeta> layout = admit_layout(interpreter, raw, source);
    const trace::Elements elements = interpreter.options.knows_elements     ? trace::Elements::Known
                                     : interpreter.options.varying_elements ? trace::Elements::Vary
                                                                            : trace::Elements::Unknown;
    Ref trace = Ref::steal(interpreter.recorder.add_input(raw, elements, layout ? &*layout : nullptr));
    if (!trace) interpreter.stop("a tensor that cannot be traced");
    interpreter.capture->inputs.push_back(source);
    interpreter.externals.trace_of.emplace(raw, trace);
    interpreter.externals.external_of.emplace(trace.get(), raw);
    interpreter.externals.sources.emplace(trace.get(), source);
    interpreter.externals.keep_alive.push_back(Ref::borrow(raw));
    interpreter.externals.keep_alive.push_back(trace);
    return keep(trace.get());
  }
  if (auto it = interpreter.externals.sources.find(raw); it != interpreter.externals.sources.end()) {
    if (it->second != source) {
      if (is_known_by_identity(interpreter, raw))
        interpreter.guards().require(source, CheckKind::Identity, raw);
      else
        interpreter.guards().require(source, CheckKind::Same, nullptr, it->second.number());
    }
    return keep(raw);
  }
  interpreter.externals.keep_alive.push_back(Ref::borrow(raw));
  if (PySlice_Check(raw)) {
    interpreter.externals.sources.emplace(raw, source);
    return keep(admit_slice(interpreter, raw, source).get());
  }
  if (THPSize_Check(raw)) {
    interpreter.externals.sources.emplace(raw, source);
    return keep(admit_size(interpreter, raw, source).get());
  }
  if (guards::is_value(raw)) {
    interpreter.guards().require(source, CheckKind::Equal, raw);
    interpreter.externals.sources.emplace(raw, source);
    return keep(raw);
  }
  if (may_be_made_anew(raw, interpreter.guards().kind_of(source)) &&
      !interpreter.guards().is_stable(source)) {
    if (PyFunction_Check(raw)) {
      interpreter.guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(&PyFunction_Type));
      interpreter.guards().require(interpreter.guards().derived(SourceKind::FunctionCode, source),
                                   CheckKind::Identity, PyFunction_GET_CODE(raw));
    } else {
      interpreter.guards().require(
          source, CheckKind::Definition, nullptr,
          reinterpret_cast<int64_t>(reinterpret_cast<PyCFunctionObject*>(raw)->m_ml));
    }
    interpreter.externals.sources.emplace(raw, source);
    interpreter.externals.known_by_code.insert(raw);
    return keep(raw);
  }
  if (is_identity_object(raw)) {
    const SourceId pinned = interpreter.guards().pinned(raw);
    if (pinned != source) interpreter.guards().require(source, CheckKind::Identity, raw);
    interpreter.externals.sources.emplace(raw, pinned);
    return keep(raw);
  }
  interpreter.guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(Py_TYPE(raw)));
  interpreter.externals.sources.emplace(raw, source);
  return keep(raw);
}

namespace {

// A slice is guarded by its three parts. A fresh slice of them takes its place.
Ref admit_slice(Interpreter& interpreter, PyObject* slice, SourceId source) {
  interpreter.guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(&PySlice_Type));
  std::array<Ref, 3> parts;
  constexpr std::array<const char*, 3> kNames = {"start", "stop", "step"};
  for (size_t i = 0; i < parts.size(); ++i) {
    PyObject* const member = _PyType_Lookup(&PySlice_Type, interned(kNames[i]).get());
    const SourceId part = interpreter.guards().derived(SourceKind::Member, source, member);
    PyObject* const value =
        guards::read({SourceKind::Member, source, -1, Ref::borrow(member), kNoSource}, slice);
    parts[i] = admit(interpreter, value, part);
    if (!is_varying_number(parts[i].get())) parts[i] = known(interpreter, parts[i].get(), "a slice");
  }
  Ref fresh = Ref::steal(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
  interpreter.shadows.copies.emplace(fresh.get(), Ref::borrow(slice));
  interpreter.externals.keep_alive.push_back(fresh);
  return fresh;
}

// A torch.Size is guarded by its items. If some of them vary, another one that has them takes its place.
Ref admit_size(Interpreter& interpreter, PyObject* size, SourceId source) {
  const Py_ssize_t count = PyTuple_GET_SIZE(size);
  interpreter.guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(&THPSizeType));
  interpreter.guards().require(source, CheckKind::Length, nullptr, count);
  const Ref items = Ref::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const SourceId item = interpreter.guards().tuple_item(source, static_cast<int32_t>(i));
    PyTuple_SET_ITEM(items.get(), i, admit(interpreter, PyTuple_GET_ITEM(size, i), item).release());
  }
  Ref fresh = make_size(items.get());
  if (!has_varying_part(fresh.get())) return Ref::borrow(size);
  interpreter.shadows.copies.emplace(fresh.get(), Ref::borrow(size));
  interpreter.externals.keep_alive.push_back(fresh);
  return fresh;
}

}  // namespace

void admit_presence(Interpreter& interpreter, SourceId source) {
  interpreter.guards().require(source, CheckKind::Present, nullptr);
}

}  // namespace oxy::eval
