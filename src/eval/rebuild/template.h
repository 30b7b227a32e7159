// Templates describe the Python objects that come out of a segment. A Rebuilder makes the objects anew after
// each run (reconstruction).
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cpy/ref.h"
#include "cpy/set.h"

namespace oxy::eval {

enum class TemplateKind : uint8_t {
  Null,      // no object: an unbound local, a pushed NULL
  Constant,  // `object` itself, the same at every run
  External,  // an external object: number `index` of Capture::externals
  Output,    // graph output `index`
  Computed,  // an int or bool that data decide: number `index` of Capture::computed
  Object,    // object number `index` of the TemplateObjects
};

// One value.
struct Template {
  TemplateKind kind = TemplateKind::Null;
  int32_t index = -1;
  cpy::Ref object;

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(object.get());
    return 0;
  }
};

enum class ObjectKind : uint8_t {
  Tuple,
  List,
  Dict,
  Set,
  FrozenSet,
  Slice,
  TupleSubclass,  // `type`, items
  Instance,       // `type`: made by `__new__` of its C base; items: key, value pairs of its __dict__, and
                  // member descriptor, value pairs of its slots. `contents`, for a subclass of list, dict,
                  // OrderedDict, set or deque: an object of the base class with the same items. For a deque
                  // `items` begin with its maxlen.
  Cell,           // items: contents, or none
  Function,     // items: code, globals, defaults, kwdefaults, closure, annotations, name, qualname, __dict__
  Method,       // items: function, self
  Exception,    // `type`, contents: args tuple; items: key, value pairs of its __dict__
  DefaultDict,  // items: factory, key, value pairs
  Iterator,     // of a dict or set; `type`; items: the container (absent if exhausted), count of items given
  Generator,    // items: code, globals, function, the exception it handles, the offset where it goes on (code
                // units; None: it has ended), whether it has started, whether it waits for another generator,
                // then as many locals as the code has, then its stack
  Reduced,      // a builtin iterator, by its __reduce__; items: callable, tuple of arguments, [state]
  Called,       // the same for objects that have no other state: bound C methods, views of dicts, partials
};

struct ObjectTemplate {
  ObjectKind kind = ObjectKind::Tuple;
  cpy::Ref type;
  std::vector<Template> items;
  Template contents;
  // For a set or frozenset, also of a subclass, whose items have the same hash at every run: keeps its order.
  cpy::SetTable table;
};

// The objects may refer to each other in cycles, except for the cycles that problem_of_order() names.
using TemplateObjects = std::vector<ObjectTemplate>;

// Rebuilds the objects of one run. Each object is made once, so references that are shared in the templates
// are shared in the results. The spans have to outlive it. `externals`, `outputs` and `computed` are by
// number.
class Rebuilder {
 public:
  Rebuilder(const TemplateObjects& objects, std::span<const cpy::Ref> externals,
            std::span<const cpy::Ref> outputs, std::span<const cpy::Ref> computed)
      : objects_(objects),
        externals_(externals),
        outputs_(outputs),
        computed_(computed),
        made_(objects.size()),
        filled_(objects.size()) {}
  // Null with an exception set on failure; null without one for TemplateKind::Null.
  cpy::Ref build(const Template& t);

 private:
  cpy::Ref part(const Template& t);  // as build(), not filled yet if it can be filled later
  cpy::Ref make(size_t index);
  bool complete(size_t index);  // fills what was made, once
  bool complete_reached(const std::vector<Template>& items);
  bool fill(size_t index, PyObject* object);
  bool fill_generator(const ObjectTemplate& t, PyObject* generator);

  const TemplateObjects& objects_;
  std::span<const cpy::Ref> externals_;
  std::span<const cpy::Ref> outputs_;
  std::span<const cpy::Ref> computed_;
  std::vector<cpy::Ref> made_;
  std::vector<bool> filled_;
  std::vector<size_t> unfilled_;  // made, to be filled before build() returns
};

}  // namespace oxy::eval
