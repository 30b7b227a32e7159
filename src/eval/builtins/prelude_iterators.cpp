#include "eval/builtins/prelude_iterators.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "eval/python/objects.h"
#include "eval/python/passing_iterator.h"
#include "eval/treatment/prelude.h"

namespace oxy::eval {
namespace {

Ref tuple_of(std::initializer_list<PyObject*> items) {
  Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  Py_ssize_t i = 0;
  for (PyObject* item : items) PyTuple_SET_ITEM(tuple.get(), i++, Py_NewRef(item));
  return tuple;
}

Ref type_of(const char* module, const char* name) {
  return Ref::borrow(well_known(module, name));
}

Ref number(Py_ssize_t value) {
  return Ref::steal(PyLong_FromSsize_t(value));
}

// A generator of the prelude, with its locals by name.
class View {
 public:
  explicit View(const GeneratorData& data) : data_(data) {}
  bool is_function(const char* name) const {
    return PyUnicode_CompareWithASCIIString(data_.frame.pycode()->co_name, name) == 0;
  }
  // Whether it waits at a yield.
  bool has_begun() const { return data_.state == GeneratorState::Suspended; }
  PyObject* operator[](const char* name) const {
    PyObject* names = data_.frame.pycode()->co_localsplusnames;
    for (size_t i = 0; i < data_.frame.locals.size(); ++i)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)), name) == 0)
        return data_.frame.locals[i].get();
    return nullptr;
  }

 private:
  const GeneratorData& data_;
};

// The argument for a C constructor in place of an iterator. The constructor calls `__iter__`, which the
// region has called already (passing_iterator.h).
Ref for_constructor(PyObject* iterator) {
  return is_python_class(Py_TYPE(iterator)) ? new_passing_iterator(iterator) : Ref::borrow(iterator);
}

// A tuple of the iterators in a list.
Ref for_constructor_all(PyObject* iterators) {
  Ref tuple = Ref::steal(PyTuple_New(PyList_GET_SIZE(iterators)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(iterators); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, for_constructor(PyList_GET_ITEM(iterators, i)).release());
  return tuple;
}

std::optional<RealIterator> slice(const View& view) {
  Py_ssize_t start = PyLong_AsSsize_t(view["start"]);
  const Py_ssize_t step = PyLong_AsSsize_t(view["step"]);
  Ref stop = Ref::borrow(view["stop"]);
  if (view.has_begun()) {
    const Py_ssize_t given = PyLong_AsSsize_t(view["taken"]) + 1;
    start = step - 1;
    if (stop != Py_None) {
      const Py_ssize_t left = std::max<Py_ssize_t>(PyLong_AsSsize_t(stop.get()) - given, 0);
      start = std::min(start, left);
      stop = number(left);
    }
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return RealIterator{type_of("itertools", "islice"),
                      tuple_of({for_constructor(view["iterator"]).get(), number(start).get(), stop.get(),
                                number(step).get()}),
                      {}};
}

std::optional<RealIterator> accumulation(const View& view) {
  PyObject* total = view["total"];
  // An accumulate without a state takes its first item as the total, and may not have None there. With a
  // state it goes on from the total. An initial total is yielded first.
  if (view.has_begun() == (total == Py_None)) return std::nullopt;
  return RealIterator{type_of("itertools", "accumulate"),
                      tuple_of({for_constructor(view["iterator"]).get(), view["function"]}),
                      view.has_begun() ? Ref::borrow(total) : Ref()};
}

}  // namespace

bool asks_again(const GeneratorData& data) {
  constexpr std::array<const char*, 9> kForgetful = {"run_map",       "run_zip",       "run_filter",
                                                     "run_enumerate", "run_starmap",   "run_accumulate",
                                                     "run_takewhile", "run_dropwhile", "run_compress"};
  if (!is_prelude_code(data.frame.pycode())) return false;
  const View view(data);
  return std::ranges::any_of(kForgetful, [&](const char* name) { return view.is_function(name); });
}

std::optional<RealIterator> real_iterator(const GeneratorData& data) {
  if (data.state != GeneratorState::Created && data.state != GeneratorState::Suspended) return std::nullopt;
  const View view(data);
  if (view.is_function("run_map")) {
    const Ref iterators = for_constructor_all(view["iterators"]);
    return RealIterator{type_of("builtins", "map"),
                        Ref::steal(PySequence_Concat(tuple_of({view["function"]}).get(), iterators.get())),
                        {}};
  }
  if (view.is_function("run_filter")) {
    const bool kept = view["wanted"] == Py_True;
    return RealIterator{kept ? type_of("builtins", "filter") : type_of("itertools", "filterfalse"),
                        tuple_of({view["function"], for_constructor(view["iterator"]).get()}),
                        {}};
  }
  if (view.is_function("run_zip"))
    return RealIterator{type_of("builtins", "zip"), for_constructor_all(view["iterators"]),
                        view["strict"] == Py_True ? Ref::borrow(Py_True) : Ref()};
  if (view.is_function("run_enumerate")) {
    const Ref one = number(view.has_begun() ? 1 : 0);
    const Ref next = Ref::steal(PyNumber_Add(view["number"], one.get()));
    return RealIterator{type_of("builtins", "enumerate"),
                        tuple_of({for_constructor(view["iterator"]).get(), next.get()}),
                        {}};
  }
  if (view.is_function("run_islice")) return slice(view);
  if (view.is_function("run_starmap"))
    return RealIterator{type_of("itertools", "starmap"),
                        tuple_of({view["function"], for_constructor(view["iterator"]).get()}),
                        {}};
  if (view.is_function("run_takewhile"))
    return RealIterator{type_of("itertools", "takewhile"),
                        tuple_of({view["predicate"], for_constructor(view["iterator"]).get()}),
                        {}};
  if (view.is_function("run_dropwhile"))
    return RealIterator{type_of("itertools", "dropwhile"),
                        tuple_of({view["predicate"], for_constructor(view["iterator"]).get()}),
                        view.has_begun() ? number(1) : Ref()};
  if (view.is_function("run_accumulate")) return accumulation(view);
  if (view.is_function("run_chain")) {
    const Ref chain = type_of("itertools", "chain");
    if (!view.has_begun()) {
      Ref from_iterable = Ref::steal(PyObject_GetAttrString(chain.get(), "from_iterable"));
      return RealIterator{std::move(from_iterable), tuple_of({for_constructor(view["iterables"]).get()}), {}};
    }
    // The stack has the iterator over the iterables, and the iterator whose turn it is.
    const std::vector<Ref>& stack = data.frame.stack;
    if (stack.size() != 2) return std::nullopt;
    return RealIterator{chain, tuple_of({}), tuple_of({stack[0].get(), stack[1].get()})};
  }
  if (view.is_function("run_compress")) {
    const GeneratorData& pairs = generator_data(view["pairs"]);
    return RealIterator{type_of("itertools", "compress"), for_constructor_all(View(pairs)["iterators"]), {}};
  }
  if (view.is_function("run_pairwise") && !view.has_begun())
    return RealIterator{
        type_of("itertools", "pairwise"), tuple_of({for_constructor(view["iterator"]).get()}), {}};
  if (view.is_function("run_cycle") && !view.has_begun())
    return RealIterator{
        type_of("itertools", "cycle"), tuple_of({for_constructor(view["iterator"]).get()}), {}};
  return std::nullopt;
}

}  // namespace oxy::eval
