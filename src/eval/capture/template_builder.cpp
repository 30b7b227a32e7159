#include "eval/capture/template_builder.h"

#include <fmt/format.h>

#include <cmath>

#include "cpy/dict.h"
#include "cpy/object_dict.h"
#include "cpy/set.h"
#include "cpy/type.h"
#include "eval/builtins/prelude_iterators.h"
#include "eval/externals/identity.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/float_of_data.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/python/passing_iterator.h"
#include "eval/rebuild/template_order.h"
#include "eval/rebuild/torch_warnings.h"
#include "eval/state/generator.h"
#include "eval/treatment/prelude.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

namespace {

// descriptor.__get__ of the descriptor from which a bound C method was made; null if there is none.
Ref method_binder(PyCFunctionObject* method) {
  PyTypeObject* type = Py_TYPE(method->m_self);
  if (is_generator(method->m_self) || is_coroutine(method->m_self)) {
    auto* owner = reinterpret_cast<PyObject*>(class_of(generator_data(method->m_self)));
    Ref descriptor = Ref::steal(PyObject_GetAttrString(owner, method->m_ml->ml_name));
    if (!descriptor) PyErr_Clear();
    if (!descriptor) return {};
    return Ref::steal(PyObject_GetAttrString(descriptor.get(), "__get__"));
  }
  Ref name = interned(method->m_ml->ml_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    PyObject* owner = PyTuple_GET_ITEM(type->tp_mro, i);
    Ref entries = Ref::steal(PyObject_GetAttrString(owner, "__dict__"));
    Ref found = entries ? Ref::steal(PyObject_GetItem(entries.get(), name.get())) : Ref();
    PyErr_Clear();
    if (!found || Py_TYPE(found.get()) != &PyMethodDescr_Type) continue;
    if (reinterpret_cast<PyMethodDescrObject*>(found.get())->d_method == method->m_ml)
      return Ref::steal(PyObject_GetAttrString(found.get(), "__get__"));
  }
  return {};
}

}  // namespace

bool TemplateBuilder::has_fixed_hash(PyObject* object, const Template& t) const {
  if (t.kind == TemplateKind::Constant) return true;
  if (t.kind == TemplateKind::External) return is_known_to_its_constants(object);
  if (t.kind != TemplateKind::Object) return false;
  return (PyTuple_CheckExact(object) || PyFrozenSet_CheckExact(object)) &&
         have_fixed_hashes(object, capture_.objects[static_cast<size_t>(t.index)].items);
}

bool TemplateBuilder::have_fixed_hashes(PyObject* container, const std::vector<Template>& items) const {
  const Ref objects = PyTuple_Check(container) ? Ref::borrow(container) : cpy::items_of_set(container);
  for (size_t i = 0; i < items.size(); ++i)
    if (!has_fixed_hash(PyTuple_GET_ITEM(objects.get(), static_cast<Py_ssize_t>(i)), items[i])) return false;
  return true;
}

bool TemplateBuilder::is_known_to_its_constants(PyObject* external) const {
  // A NaN is hashed by its address.
  if (PyFloat_CheckExact(external)) return !std::isnan(PyFloat_AS_DOUBLE(external));
  if (PyComplex_CheckExact(external)) return false;
  if (guards::is_constant(external) || guards::is_value(external)) return true;
  if (!PyTuple_CheckExact(external)) return is_known_by_identity(interpreter_, external);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(external); ++i)
    if (!is_known_to_its_constants(PyTuple_GET_ITEM(external, i))) return false;
  return true;
}

Template TemplateBuilder::external(SourceId source) {
  auto [it, inserted] = external_index_.try_emplace(source, static_cast<int32_t>(capture_.externals.size()));
  if (inserted) capture_.externals.push_back(source);
  return {TemplateKind::External, it->second, {}};
}

Template TemplateBuilder::constant(PyObject* object) {
  return {TemplateKind::Constant, -1, Ref::borrow(object)};
}

int32_t TemplateBuilder::reserve(PyObject* object, ObjectKind kind, PyObject* type) {
  const auto index = static_cast<int32_t>(capture_.objects.size());
  objects_.emplace(object, index);
  keep_alive_.push_back(Ref::borrow(object));
  ObjectTemplate t;
  t.kind = kind;
  t.type = Ref::borrow(type);
  capture_.objects.push_back(std::move(t));
  return index;
}

Template TemplateBuilder::float_in_result(PyObject* object) {
  if (auto it = objects_.find(object); it != objects_.end()) return {TemplateKind::Object, it->second, {}};
  const int32_t index = reserve(object, ObjectKind::Called);
  const Ref tensor = Ref::steal(runtime::wrap_tensor(float_of_data(interpreter_, object)));
  const Ref args = Ref::steal(PyTuple_Pack(1, tensor.get()));
  keep_alive_.push_back(args);
  // The method of C code, past whatever a class or a mode makes of it.
  const Ref item = Ref::steal(PyObject_GetAttrString(well_known("torch._C", "TensorBase"), "item"));
  std::vector<Template> items = {constant(item.get()), build(args.get())};
  capture_.objects[static_cast<size_t>(index)].items = std::move(items);
  return {TemplateKind::Object, index, {}};
}

Template TemplateBuilder::build(PyObject* object) {
  if (!object) return {};
  if (guards::is_constant(object)) return constant(object);
  struct Level {
    int& depth;
    ~Level() { --depth; }
  } level{++depth_};
  if (depth_ > kDeepestObjects)
    interpreter_.stop(
        fmt::format("more than {} objects in each other outlive the captured region", kDeepestObjects));
  if (is_float_of_data(interpreter_, object)) return float_in_result(object);
  if (depends_on_data(interpreter_, object)) {
    const Numbers::Varying& number = interpreter_.numbers.varying.at(object);
    if (number.condition)
      capture_.computed.emplace_back(*number.condition);
    else
      capture_.computed.emplace_back(*number.expression);
    return {TemplateKind::Computed, static_cast<int32_t>(capture_.computed.size()) - 1, {}};
  }
  if (is_varying_number(object)) return external(varying_source(interpreter_, object));
  if (trace::is_trace_tensor(object)) {
    if (interpreter_.externals.external_of.contains(object))
      return external(interpreter_.externals.source_of(object));
    if (const at::Tensor& tensor = runtime::tensor_of(object); tensor.is_leaf() && tensor.grad().defined())
      interpreter_.stop("a tensor with a gradient outlives the captured region that made it");
    auto [it, inserted] = output_index_.try_emplace(object, static_cast<int32_t>(outputs_.size()));
    if (inserted) outputs_.push_back(object);
    return {TemplateKind::Output, it->second, {}};
  }
  if (runtime::is_tensor(object)) interpreter_.stop("a tensor made while capturing outlives it");
  if (auto it = interpreter_.shadows.copies.find(object); it != interpreter_.shadows.copies.end())
    return external(interpreter_.externals.source_of(it->second.get()));
  if (interpreter_.calls.is_fresh_function(object)) {
    if (auto it = objects_.find(object); it != objects_.end()) return {TemplateKind::Object, it->second, {}};
    const int32_t index = reserve(object, ObjectKind::Function);
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    std::vector<Template> items = {constant(function->func_code), constant(function->func_globals)};
    for (PyObject* field :
         {function->func_defaults, function->func_kwdefaults, function->func_closure,
          function->func_annotations, function->func_name, function->func_qualname, function->func_dict})
      items.push_back(build(field));
    capture_.objects[static_cast<size_t>(index)].items = std::move(items);
    return {TemplateKind::Object, index, {}};
  }
  if (const SourceId source = interpreter_.externals.source_of(object); source != guards::kNoSource) {
    return is_known_by_identity(interpreter_, object) ? constant(object) : external(source);
  }
  if (PySlice_Check(object)) {
    if (auto it = objects_.find(object); it != objects_.end()) return {TemplateKind::Object, it->second, {}};
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    const int32_t index = reserve(object, ObjectKind::Slice);
    std::vector<Template> items = {build(slice->start), build(slice->stop), build(slice->step)};
    capture_.objects[static_cast<size_t>(index)].items = std::move(items);
    return {TemplateKind::Object, index, {}};
  }
  if (PyCFunction_Check(object)) {
    PyObject* self = PyCFunction_GET_SELF(object);
    if (self && !PyModule_Check(self) && !PyType_Check(self) && !guards::is_constant(self)) {
      // A bound method of a fresh object is made by its descriptor. getattr() might find the entry of a
      // subclass instead.
      if (auto it = objects_.find(object); it != objects_.end())
        return {TemplateKind::Object, it->second, {}};
      const int32_t index = reserve(object, ObjectKind::Called);
      Ref binder = method_binder(reinterpret_cast<PyCFunctionObject*>(object));
      if (!binder) interpreter_.stop("a bound method of C code outlives the captured region");
      Ref args = Ref::steal(PyTuple_Pack(2, self, reinterpret_cast<PyObject*>(Py_TYPE(self))));
      keep_alive_.push_back(args);
      std::vector<Template> items = {constant(binder.get()), build(args.get())};
      capture_.objects[static_cast<size_t>(index)].items = std::move(items);
      return {TemplateKind::Object, index, {}};
    }
    return constant(object);
  }
  if (is_passing_iterator(object)) return reduced(object);
  const bool of_code = interpreter_.externals.is_code_constant(object);
  if (of_code || guards::is_numpy_scalar(object) ||
      ((is_value_object(object) || is_identity_object(object)) && !PyFrozenSet_CheckExact(object)))
    return constant(object);
  if (auto it = objects_.find(object); it != objects_.end()) return {TemplateKind::Object, it->second, {}};
  if (is_generator(object) || is_coroutine(object)) return generator(object);

  auto with_items = [&](ObjectKind kind, PyObject* type, auto&& visit) -> Template {
    const int32_t index = reserve(object, kind, type);
    std::vector<Template> items;
    visit(items);
    capture_.objects[static_cast<size_t>(index)].items = std::move(items);
    return {TemplateKind::Object, index, {}};
  };
  auto sequence = [&](std::vector<Template>& items) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      items.push_back(build(PySequence_Fast_GET_ITEM(object, i)));
  };
  auto pairs = [&](std::vector<Template>& items) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      items.push_back(build(key));
      items.push_back(build(value));
    }
  };
  auto members = [&](std::vector<Template>& items) {
    for (PyObject* item : cpy::SetItems(object)) items.push_back(build(item));
  };
  auto set = [&](ObjectKind kind) {
    const Template made = with_items(kind, nullptr, members);
    ObjectTemplate& t = capture_.objects[static_cast<size_t>(made.index)];
    if (have_fixed_hashes(object, t.items)) t.table = cpy::table_of(object);
    return made;
  };
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (PyTuple_CheckExact(object)) return with_items(ObjectKind::Tuple, nullptr, sequence);
  if (PyList_CheckExact(object)) return with_items(ObjectKind::List, nullptr, sequence);
  if (PyDict_CheckExact(object)) return with_items(ObjectKind::Dict, nullptr, pairs);
  if (Py_TYPE(object) == &PySet_Type) return set(ObjectKind::Set);
  if (Py_TYPE(object) == &PyFrozenSet_Type) return set(ObjectKind::FrozenSet);
  if (PyTuple_Check(object)) {
    PyObject* attributes = cpy::materialized_dict(object);
    if (attributes && PyDict_GET_SIZE(attributes) != 0)
      interpreter_.stop(fmt::format("an object of type {} with attributes outlives the captured region",
                                    Py_TYPE(object)->tp_name));
    return with_items(ObjectKind::TupleSubclass, type, sequence);
  }
  if (type == well_known("collections", "defaultdict")) {
    Ref factory = Ref::steal(PyObject_GetAttrString(object, "default_factory"));
    return with_items(ObjectKind::DefaultDict, type, [&](std::vector<Template>& items) {
      items.push_back(build(factory.get()));
      pairs(items);
    });
  }
  if (PyMethod_Check(object))
    return with_items(ObjectKind::Method, nullptr, [&](std::vector<Template>& items) {
      items.push_back(build(PyMethod_GET_FUNCTION(object)));
      items.push_back(build(PyMethod_GET_SELF(object)));
    });
  if (PyCell_Check(object))
    return with_items(ObjectKind::Cell, nullptr, [&](std::vector<Template>& items) {
      if (PyCell_GET(object)) items.push_back(build(PyCell_GET(object)));
    });
  if (PyDictViewSet_Check(object) || PyDictValues_Check(object)) return view(object);
  if (is_builtin_iterator(object) || is_reducible(object)) return reduced(object);
  return instance(object);
}

bool TemplateBuilder::shares_objects(PyObject* dict) const {
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (dict && PyDict_Next(dict, &position, &key, &value))
    if (!PyTuple_CheckExact(value) && objects_.contains(value)) return true;
  return false;
}

// keys(), values() or items() of a dict. A view shows the present contents of the dict.
Template TemplateBuilder::view(PyObject* object) {
  PyObject* dict = cpy::viewed_dict(object);
  auto copied = interpreter_.shadows.copies.find(dict);
  PyObject* real = copied == interpreter_.shadows.copies.end() ? dict : copied->second.get();
  const char* name = PyDictKeys_Check(object) ? "keys" : PyDictValues_Check(object) ? "values" : "items";
  const int32_t index = reserve(object, ObjectKind::Called);
  auto* type = reinterpret_cast<PyObject*>(native_base(Py_TYPE(real)));
  Ref method = Ref::steal(PyObject_GetAttrString(type, name)), args = Ref::steal(PyTuple_Pack(1, dict));
  keep_alive_.push_back(args);
  std::vector<Template> items = {constant(method.get()), build(args.get())};
  capture_.objects[static_cast<size_t>(index)].items = std::move(items);
  return {TemplateKind::Object, index, {}};
}

// An iterator over a dict or set. Its __reduce__ would give an iterator over a list of the remaining items,
// which does not see changes of the container.
Template TemplateBuilder::container_iterator(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  Ref container;
  type->tp_traverse(
      object,
      [](PyObject* found, void* result) {
        if (PyDict_Check(found) || PyAnySet_Check(found)) *static_cast<Ref*>(result) = Ref::borrow(found);
        return 0;
      },
      &container);
  Ref parts = Ref::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  const Py_ssize_t remaining =
      parts ? PyObject_Size(PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0)) : -1;
  if (remaining < 0) {
    PyErr_Clear();
    interpreter_.stop("an iterator over a container that has changed outlives the captured region");
  }
  const int32_t index = reserve(object, ObjectKind::Iterator, reinterpret_cast<PyObject*>(type));
  std::vector<Template> items;
  if (container) {
    items.push_back(build(container.get()));
    const Py_ssize_t size =
        PyDict_Check(container.get()) ? PyDict_GET_SIZE(container.get()) : PySet_GET_SIZE(container.get());
    items.push_back(constant(Ref::steal(PyLong_FromSsize_t(size - remaining)).get()));
  }
  capture_.objects[static_cast<size_t>(index)].items = std::move(items);
  return {TemplateKind::Object, index, {}};
}

// The callable that makes an iterator again from the `parts` of its __reduce__. iter() and reversed() would
// call the methods of a subclass, but the iterator was made by those of the builtin class.
Ref TemplateBuilder::native_maker(PyObject* parts) {
  PyObject* const maker = PyTuple_GET_ITEM(parts, 0);
  PyObject* const arguments = PyTuple_GET_ITEM(parts, 1);
  const bool is_reversed = maker == reinterpret_cast<PyObject*>(&PyReversed_Type);
  const bool is_iter = maker == well_known("builtins", "iter");
  if ((!is_iter && !is_reversed) || PyTuple_GET_SIZE(arguments) != 1) return Ref::borrow(maker);
  PyObject* const given = PyTuple_GET_ITEM(arguments, 0);
  const auto copied = interpreter_.shadows.copies.find(given);
  PyObject* const real = copied == interpreter_.shadows.copies.end() ? given : copied->second.get();
  const auto is_own = [&](const char* name) { return has_python_special(interpreter_, real, name); };
  const char* const name = is_iter ? "__iter__" : "__reversed__";
  if (!is_own(name) && (is_iter || !is_own("__len__"))) return Ref::borrow(maker);
  auto* const base = reinterpret_cast<PyObject*>(native_base(Py_TYPE(real)));
  Ref native = Ref::steal(PyObject_GetAttrString(base, name));
  PyErr_Clear();
  if (!native)
    interpreter_.stop(fmt::format("an iterator over an object of type {} outlives the captured region",
                                  Py_TYPE(real)->tp_name));
  keep_alive_.push_back(native);
  return native;
}

Template TemplateBuilder::reduced(PyObject* object) {
  if (is_container_iterator(object)) return container_iterator(object);
  if (c_class_name(Py_TYPE(object)) == "odict_iterator")
    interpreter_.stop("an iterator over an ordered dict outlives the captured region");
  Ref parts;
  {
    const CollectedWarnings unheard;  // Python 3.12 and later warn of the __reduce__ of itertools
    parts = Ref::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  }
  if (!parts || !PyTuple_Check(parts.get()) || PyTuple_GET_SIZE(parts.get()) < 2 ||
      PyTuple_GET_SIZE(parts.get()) > 3) {
    PyErr_Clear();
    interpreter_.stop(
        fmt::format("an iterator of type {} outlives the captured region", Py_TYPE(object)->tp_name));
  }
  keep_alive_.push_back(parts);
  // An iterator over a deque does not tell that the deque has changed before it is asked for an item. The
  // name of its module changed with Python 3.12.
  if (c_class_name(Py_TYPE(object)).find("collections._deque_") != std::string_view::npos &&
      has_changed(object))
    interpreter_.stop("an iterator over a deque that has changed outlives the captured region");
  const int32_t index = reserve(object, is_reducible(object) ? ObjectKind::Called : ObjectKind::Reduced);
  std::vector<Template> items = {build(native_maker(parts.get()).get())};
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(parts.get()); ++i)
    items.push_back(build(PyTuple_GET_ITEM(parts.get(), i)));
  if (items.size() == 3 && PyTuple_GET_ITEM(parts.get(), 2) == Py_None) items.pop_back();
  capture_.objects[static_cast<size_t>(index)].items = std::move(items);
  return {TemplateKind::Object, index, {}};
}

Template TemplateBuilder::generator(PyObject* object) {
  const GeneratorData& data = generator_data(object);
  const Frame& frame = data.frame;
  if (is_prelude_code(frame.pycode())) {
    const std::optional<RealIterator> real = real_iterator(data);
    if (!real) interpreter_.stop("an iterator over what the interpreter makes outlives the captured region");
    keep_alive_.insert(keep_alive_.end(), {real->arguments, real->state});
    const int32_t index = reserve(object, ObjectKind::Reduced);
    std::vector<Template> items = {constant(real->callable.get()), build(real->arguments.get())};
    if (real->state) items.push_back(build(real->state.get()));
    capture_.objects[static_cast<size_t>(index)].items = std::move(items);
    return {TemplateKind::Object, index, {}};
  }
  if (data.state == GeneratorState::Running) interpreter_.stop("a generator ends the captured region");
  const bool finished = data.state == GeneratorState::Finished;
  const auto flag = [&](bool value) { return constant(value ? Py_True : Py_False); };
  const int32_t index = reserve(object, ObjectKind::Generator);
  std::vector<Template> items = {constant(frame.code_object.get()), constant(frame.globals.get()),
                                 build(frame.function.get()), build(data.handled.get())};
  items.push_back(finished ? constant(Py_None)
                           : constant(Ref::steal(PyLong_FromLong(frame.instruction().end)).get()));
  items.push_back(flag(data.state == GeneratorState::Suspended));
  items.push_back(flag(waits_for_another(data)));
  for (const Ref& local : frame.locals) items.push_back(build(local.get()));
  for (const Ref& entry : frame.stack) items.push_back(build(entry.get()));
  capture_.objects[static_cast<size_t>(index)].items = std::move(items);
  return {TemplateKind::Object, index, {}};
}

Template TemplateBuilder::instance(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyTypeObject* base = native_base(type);
  const bool exception = PyExceptionInstance_Check(object);
  // A raised exception has a traceback and a context, which belong to one run.
  if (exception && interpreter_.calls.raised.contains(object))
    interpreter_.stop("an exception that was raised outlives the captured region");
  // An exception of a C type may have state besides its arguments, which would not be copied.
  if (exception) {
    auto* state = reinterpret_cast<PyBaseExceptionObject*>(object);
    if (base->tp_basicsize != static_cast<Py_ssize_t>(sizeof(PyBaseExceptionObject)) || state->cause ||
        state->context || state->suppress_context || state->notes)
      interpreter_.stop(fmt::format("an exception of type {} outlives the captured region", type->tp_name));
  }
  const bool known = base == &PyBaseObject_Type || base == &PyDict_Type || base == &PyODict_Type ||
                     base == &PyList_Type || base == &PySet_Type || is_deque_type(base);
  if (!exception && (!known || (type == base && base != &PyODict_Type && !is_deque_type(base))))
    interpreter_.stop(fmt::format("an object of type {} outlives the captured region", type->tp_name));
  const int32_t index = reserve(object, exception ? ObjectKind::Exception : ObjectKind::Instance,
                                reinterpret_cast<PyObject*>(type));
  Template contents;
  if (exception) {
    const Ref args = exception_arguments(object);
    keep_alive_.push_back(args);
    contents = build(args.get());
  } else if (base != &PyBaseObject_Type) {
    Ref copy;
    if (PyDict_Check(object)) {
      // A plain dict of the keys and values, in order.
      copy = Ref::steal(PyDict_New());
      Ref keys = cpy::dict_keys(object);
      for (Py_ssize_t i = 0; keys && i < PyTuple_GET_SIZE(keys.get()); ++i) {
        PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
        PyDict_SetItem(copy.get(), key, PyDict_GetItemWithError(object, key));
      }
    } else if (is_deque_type(base)) {
      const Ref iterator = Ref::steal(base->tp_iter(object));
      copy = Ref::steal(iterator ? PySequence_List(iterator.get()) : nullptr);
    } else if (PyList_Check(object)) {
      copy = Ref::steal(PyList_GetSlice(object, 0, PyList_GET_SIZE(object)));
    } else {
      copy = cpy::copy_of_set(object);
    }
    PyErr_Clear();
    if (!copy) interpreter_.stop(fmt::format("an object of type {} cannot be made again", type->tp_name));
    keep_alive_.push_back(copy);
    contents = build(copy.get());
  }
  std::vector<Template> items;
  if (is_deque_type(base))
    items.push_back(build(Ref::steal(PyObject_GenericGetAttr(object, interned("maxlen").get())).get()));
  if (PyObject* dict = cpy::materialized_dict(object)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict, &position, &key, &value)) {
      if (!PyUnicode_Check(key))
        interpreter_.stop("an object whose __dict__ has a key that is no str outlives the captured region");
      items.push_back(build(key));
      items.push_back(build(value));
    }
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* owner = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!is_python_class(owner)) continue;
    PyObject *key = nullptr, *descriptor = nullptr;
    Py_ssize_t position = 0;
    const cpy::Ref attributes = cpy::type_dict(owner);
    while (PyDict_Next(attributes.get(), &position, &key, &descriptor)) {
      if (Py_TYPE(descriptor) != &PyMemberDescr_Type) continue;
      // Read by the descriptor, since a subclass may use the name for something else.
      Ref value = Ref::steal(
          Py_TYPE(descriptor)->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
      PyErr_Clear();
      if (!value) continue;
      items.push_back(constant(descriptor));
      items.push_back(build(value.get()));
    }
  }
  capture_.objects[static_cast<size_t>(index)].items = std::move(items);
  capture_.objects[static_cast<size_t>(index)].contents = std::move(contents);
  return {TemplateKind::Object, index, {}};
}

}  // namespace oxy::eval
