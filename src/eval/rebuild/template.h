// Templates: how the Python objects that a segment made are made again at each run.
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
  External,  // external number `index`: Capture::externals names its source
  Output,    // graph output `index`
  Object,    // object number `index` of the TemplateObjects
};

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
  Instance,       // `type`: made by `type.__new__` of its C base; items: key, value pairs of its __dict__,
                  // and member descriptor, value pairs of its slots;
  // `contents`: for a subclass of list, dict, OrderedDict, set or deque, the object that holds
  // what it contains; of a deque the first of the items is its maxlen
  Cell,         // items: contents, or none
  Function,     // items: code, globals, defaults, kwdefaults, closure, annotations, name, qualname, __dict__
  Method,       // items: function, self
  Exception,    // `type`, contents: args tuple; items: key, value pairs of its __dict__
  DefaultDict,  // items: factory, key, value pairs
  Iterator,     // `type`: over a dict or set, items: the container (none if the iterator was exhausted), how
                // many items it has given
  Generator,  // items: code, globals, function, the exception it handles, where it goes on (code units; None:
              // it has ended), whether it has started, whether it waits for another, then as many locals as
              // the code has and its stack
  Reduced,    // items: callable, arguments tuple, [state]: a builtin iterator, by its __reduce__
  Called,     // the same of what keeps its arguments alone: bound methods of C code, views of dicts, partial
};

struct ObjectTemplate {
  ObjectKind kind = ObjectKind::Tuple;
  cpy::Ref type;
  std::vector<Template> items;
  Template contents;
  cpy::SetTable
      table;  // of a set or frozenset (also of a subclass) whose items have the same hash at every run
};

// They may refer to each other in rings, but for those that problem_of_order() names.
using TemplateObjects = std::vector<ObjectTemplate>;

// Rebuilds the objects of one run. References shared in the template are shared in the result.
class Rebuilder {
 public:
  Rebuilder(const TemplateObjects& objects, std::span<const cpy::Ref> externals,
            std::span<const cpy::Ref> outputs)
      : objects_(objects),
        externals_(externals),
        outputs_(outputs),
        made_(objects.size()),
        filled_(objects.size()) {}
  // A new reference; null with an exception set on failure. Null without one for TemplateKind::Null.
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
  std::vector<cpy::Ref> made_;
  std::vector<bool> filled_;
  std::vector<size_t> unfilled_;  // made, to be filled before build() returns
};

}  // namespace oxy::eval
