#include "eval/rebuild/template.h"

#include "base/error.h"
#include "cpy/generator.h"
#include "eval/python/objects.h"
#include "eval/rebuild/template_order.h"

namespace oxy::eval {

using cpy::Ref;

namespace {

// Sets an attribute of an instance past its class: `key` is a member descriptor, or a key of the object's
// __dict__.
int put_attribute(PyObject* object, PyObject* key, PyObject* value) {
  if (Py_TYPE(key) == &PyMemberDescr_Type) return Py_TYPE(key)->tp_descr_set(key, object, value);
  PyObject* const of_class = _PyType_Lookup(Py_TYPE(object), key);
  if (!of_class || !Py_TYPE(of_class)->tp_descr_set) return PyObject_GenericSetAttr(object, key, value);
  const Ref dict = Ref::steal(PyObject_GenericGetDict(object, nullptr));
  return dict ? PyDict_SetItem(dict.get(), key, value) : -1;
}

// An iterator made by the builtin class, whatever methods a subclass has.
Ref container_iterator(PyObject* container, PyTypeObject* type) {
  auto* const base = reinterpret_cast<PyObject*>(native_base(Py_TYPE(container)));
  const auto native = [&](const char* name) {
    const Ref method = Ref::steal(PyObject_GetAttrString(base, name));
    return method ? Ref::steal(PyObject_CallOneArg(method.get(), container)) : Ref();
  };
  const char* view = nullptr;
  if (type == &PyDictIterValue_Type || type == &PyDictRevIterValue_Type) view = "values";
  if (type == &PyDictIterItem_Type || type == &PyDictRevIterItem_Type) view = "items";
  const bool backward =
      type == &PyDictRevIterKey_Type || type == &PyDictRevIterValue_Type || type == &PyDictRevIterItem_Type;
  if (!view) return native(backward ? "__reversed__" : "__iter__");
  const Ref source = native(view);
  if (!source) return {};
  if (!backward) return Ref::steal(PyObject_GetIter(source.get()));
  return Ref::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyReversed_Type), source.get()));
}

}  // namespace

Ref Rebuilder::build(const Template& t) {
  Ref result = part(t);
  while (!unfilled_.empty()) {
    const size_t index = unfilled_.back();
    unfilled_.pop_back();
    if (!complete(index)) return {};
  }
  return result;
}

Ref Rebuilder::part(const Template& t) {
  const auto index = static_cast<size_t>(t.index);
  switch (t.kind) {
    case TemplateKind::Null:
      return {};
    case TemplateKind::Constant:
      return t.object;
    case TemplateKind::External:
      return externals_[index];
    case TemplateKind::Output:
      return outputs_[index];
    case TemplateKind::Computed:
      return computed_[index];
    case TemplateKind::Object:
      return make(index);
  }
  return {};
}

Ref Rebuilder::make(size_t index) {
  if (made_[index]) return made_[index];
  const ObjectTemplate& t = objects_[index];
  auto* type = reinterpret_cast<PyTypeObject*>(t.type.get());
  if (is_made_of_complete_objects(t.kind) && !complete_reached(t.items)) return {};
  // Immutable objects are made of their items, which have to be made first.
  auto tuple_of_items = [&](size_t first = 0) {
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(t.items.size() - first)));
    for (size_t i = first; i < t.items.size(); ++i) {
      Ref item = part(t.items[i]);
      if (!item) return Ref();
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i - first), item.release());
    }
    return tuple;
  };
  Ref object;
  bool filled = false;
  switch (t.kind) {
    case ObjectKind::Tuple:
      object = tuple_of_items();
      filled = true;
      break;
    case ObjectKind::TupleSubclass: {
      Ref items = tuple_of_items();
      if (!items) return {};
      if (PyObject_HasAttrString(t.type.get(), "n_sequence_fields")) {
        object = Ref::steal(PyObject_CallOneArg(t.type.get(), items.get()));
      } else {
        Ref args = Ref::steal(PyTuple_Pack(1, items.get()));
        object = Ref::steal(PyTuple_Type.tp_new(type, args.get(), nullptr));
      }
      filled = true;
      break;
    }
    case ObjectKind::FrozenSet: {
      Ref items = tuple_of_items();
      if (!items) return {};
      object = t.table.entries.empty() ? Ref::steal(PyFrozenSet_New(items.get()))
                                       : cpy::set_with_table(&PyFrozenSet_Type, t.table, items.get());
      filled = true;
      break;
    }
    case ObjectKind::Slice: {
      Ref items = tuple_of_items();
      if (!items) return {};
      object = Ref::steal(PySlice_New(PyTuple_GET_ITEM(items.get(), 0), PyTuple_GET_ITEM(items.get(), 1),
                                      PyTuple_GET_ITEM(items.get(), 2)));
      filled = true;
      break;
    }
    case ObjectKind::Method: {
      Ref items = tuple_of_items();
      if (!items) return {};
      object = Ref::steal(PyMethod_New(PyTuple_GET_ITEM(items.get(), 0), PyTuple_GET_ITEM(items.get(), 1)));
      filled = true;
      break;
    }
    case ObjectKind::Called:
    case ObjectKind::Reduced: {
      Ref callable = part(t.items[0]), args = part(t.items[1]);
      if (!callable || !args) return {};
      object = Ref::steal(PyObject_CallObject(callable.get(), args.get()));
      if (object && t.items.size() > 2) {
        Ref state = part(t.items[2]);
        Ref name = Ref::steal(PyUnicode_FromString("__setstate__"));
        Ref done =
            state ? Ref::steal(PyObject_CallMethodOneArg(object.get(), name.get(), state.get())) : Ref();
        if (!done) return {};
      }
      filled = true;
      break;
    }
    case ObjectKind::Iterator: {
      Ref container = t.items.empty()
                          ? Ref::steal(type == &PySetIter_Type ? PySet_New(nullptr) : PyDict_New())
                          : part(t.items[0]);
      object = container ? container_iterator(container.get(), type) : Ref();
      const Py_ssize_t given = t.items.empty() ? 1 : PyLong_AsSsize_t(t.items[1].object.get());
      for (Py_ssize_t i = 0; object && i < given; ++i)
        static_cast<void>(Ref::steal(Py_TYPE(object.get())->tp_iternext(object.get())));
      filled = true;
      break;
    }
    case ObjectKind::Exception: {
      Ref args = part(t.contents);
      if (!args) return {};
      object = Ref::steal(native_base(type)->tp_new(type, args.get(), nullptr));
      // MemoryError's tp_new keeps no arguments.
      if (object) Py_XSETREF(reinterpret_cast<PyBaseExceptionObject*>(object.get())->args, args.release());
      break;
    }
    case ObjectKind::DefaultDict: {
      Ref factory = part(t.items[0]);
      object = factory ? Ref::steal(PyObject_CallOneArg(t.type.get(), factory.get())) : Ref();
      break;
    }
    case ObjectKind::List:
      object = Ref::steal(PyList_New(0));
      break;
    case ObjectKind::Dict:
      object = Ref::steal(PyDict_New());
      break;
    case ObjectKind::Set:
      object = Ref::steal(PySet_New(nullptr));
      break;
    case ObjectKind::Cell:
      object = Ref::steal(PyCell_New(nullptr));
      break;
    case ObjectKind::Instance: {
      // The __new__ of the C type that the class is built on: no Python code runs.
      PyTypeObject* base = native_base(type);
      Ref no_args = Ref::steal(PyTuple_New(0));
      object = Ref::steal(base->tp_new(type, no_args.get(), nullptr));
      if (object && PyDict_Check(object.get()) && base == &PyODict_Type) {
        if (base->tp_init(object.get(), no_args.get(), nullptr) < 0) return {};
      }
      if (object && is_deque_type(base)) {
        Ref limit = part(t.items[0]);
        Ref args = Ref::steal(PyTuple_Pack(2, no_args.get(), limit.get()));
        if (base->tp_init(object.get(), args.get(), nullptr) < 0) return {};
      }
      break;
    }
    case ObjectKind::Function: {
      Ref code = part(t.items[0]), globals = part(t.items[1]);
      object = Ref::steal(PyFunction_New(code.get(), globals.get()));
      break;
    }
    case ObjectKind::Generator: {
      Ref code = part(t.items[0]), globals = part(t.items[1]);
      object = cpy::new_generator(reinterpret_cast<PyCodeObject*>(code.get()), globals.get());
      break;
    }
  }
  if (!object) return {};
  made_[index] = object;
  filled_[index] = filled;
  if (!filled) unfilled_.push_back(index);
  return object;
}

bool Rebuilder::complete(size_t index) {
  if (filled_[index]) return true;
  filled_[index] = true;
  return fill(index, made_[index].get());
}

bool Rebuilder::complete_reached(const std::vector<Template>& items) {
  std::vector<bool> seen(objects_.size());
  std::vector<size_t> left;
  const auto see = [&](const Template& t) {
    const auto index = static_cast<size_t>(t.index);
    if (t.kind != TemplateKind::Object || seen[index]) return;
    seen[index] = true;
    left.push_back(index);
  };
  for (const Template& item : items) see(item);
  while (!left.empty()) {
    const size_t index = left.back();
    left.pop_back();
    if (!make(index) || !complete(index)) return false;
    for_each_part(objects_[index], see);
  }
  return true;
}

bool Rebuilder::fill_generator(const ObjectTemplate& t, PyObject* generator) {
  const auto* code = reinterpret_cast<PyCodeObject*>(t.items[0].object.get());
  Ref function = part(t.items[2]), handled = part(t.items[3]);
  if (!function) return false;
  for (const char* name : {"__name__", "__qualname__"}) {
    Ref value = Ref::steal(PyObject_GetAttrString(function.get(), name));
    if (!value || PyObject_SetAttrString(generator, name, value.get()) < 0) return false;
  }
  if (t.items[4].object == Py_None)
    return static_cast<bool>(Ref::steal(PyObject_CallMethod(generator, "close", nullptr)));
  std::vector<Ref> values;
  for (size_t i = 7; i < t.items.size(); ++i) {
    values.push_back(part(t.items[i]));
    if (!values.back() && t.items[i].kind != TemplateKind::Null) return false;
  }
  const std::span<const Ref> all = values;
  const auto locals = static_cast<size_t>(code->co_nlocalsplus);
  cpy::suspend(generator, {.function = function.get(),
                           .next = static_cast<int32_t>(PyLong_AsLong(t.items[4].object.get())),
                           .started = t.items[5].object == Py_True,
                           .delegates = t.items[6].object == Py_True,
                           .locals = all.first(locals),
                           .stack = all.subspan(locals),
                           .handled = handled.get()});
  return true;
}

bool Rebuilder::fill(size_t index, PyObject* object) {
  const ObjectTemplate& t = objects_[index];
  auto fill_pairs = [&](size_t first, auto&& store) {
    for (size_t i = first; i + 1 < t.items.size(); i += 2) {
      Ref key = part(t.items[i]), value = part(t.items[i + 1]);
      if (!key || !value || store(key.get(), value.get()) < 0) return false;
    }
    return true;
  };
  switch (t.kind) {
    case ObjectKind::List:
      for (const Template& item : t.items) {
        Ref value = part(item);
        if (!value || PyList_Append(object, value.get()) < 0) return false;
      }
      return true;
    case ObjectKind::Set: {
      const bool has_table = !t.table.entries.empty();
      Ref items = Ref::steal(PyTuple_New(has_table ? static_cast<Py_ssize_t>(t.items.size()) : 0));
      for (size_t i = 0; i < t.items.size(); ++i) {
        Ref value = part(t.items[i]);
        if (!value || !items) return false;
        if (has_table) {
          PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i), value.release());
        } else if (PySet_Add(object, value.get()) < 0) {
          return false;
        }
      }
      return !has_table || cpy::lay_out(object, t.table, items.get());
    }
    case ObjectKind::Dict:
      return fill_pairs(0,
                        [&](PyObject* key, PyObject* value) { return PyDict_SetItem(object, key, value); });
    case ObjectKind::DefaultDict:
      return fill_pairs(1,
                        [&](PyObject* key, PyObject* value) { return PyDict_SetItem(object, key, value); });
    case ObjectKind::Cell:
      if (t.items.empty()) return true;
      if (Ref value = part(t.items[0])) return PyCell_Set(object, value.get()) == 0;
      return false;
    case ObjectKind::Instance:
    case ObjectKind::Exception: {
      if (t.kind == ObjectKind::Instance && t.contents.kind != TemplateKind::Null) {
        Ref contents = part(t.contents);
        const bool made_again = t.contents.kind == TemplateKind::Object;
        if (!contents || (made_again && !complete(static_cast<size_t>(t.contents.index)))) return false;
        if (PyODict_Check(object)) {
          PyObject *key = nullptr, *value = nullptr;
          Py_ssize_t position = 0;
          while (PyDict_Next(contents.get(), &position, &key, &value))
            if (PyODict_SetItem(object, key, value) < 0) return false;
        } else if (PyDict_Check(object)) {
          if (PyDict_Update(object, contents.get()) < 0) return false;
        } else if (PyList_Check(object)) {
          if (PyList_SetSlice(object, 0, 0, contents.get()) < 0) return false;
        } else if (PySet_Check(object)) {
          const Ref items = cpy::items_of_set(contents.get());
          if (!items || !cpy::lay_out(object, cpy::table_of(contents.get()), items.get())) return false;
        } else {
          auto* const base = reinterpret_cast<PyObject*>(native_base(Py_TYPE(object)));
          if (!Ref::steal(PyObject_CallMethod(base, "extend", "OO", object, contents.get()))) return false;
        }
      }
      return fill_pairs(is_deque_type(native_base(Py_TYPE(object))) ? 1 : 0,
                        [&](PyObject* key, PyObject* value) { return put_attribute(object, key, value); });
    }
    case ObjectKind::Function: {
      auto* function = reinterpret_cast<PyFunctionObject*>(object);
      PyObject** fields[] = {&function->func_defaults, &function->func_kwdefaults,
                             &function->func_closure,  &function->func_annotations,
                             &function->func_name,     &function->func_qualname,
                             &function->func_dict};
      for (size_t i = 0; i < std::size(fields); ++i) {
        const Template& item = t.items[i + 2];
        if (item.kind == TemplateKind::Null) continue;
        Ref value = part(item);
        if (!value) return false;
        Py_XSETREF(*fields[i], value.release());
      }
      return true;
    }
    case ObjectKind::Generator:
      return fill_generator(t, object);
    default:
      throw InternalError("an object template that is filled in place");
  }
}

}  // namespace oxy::eval
