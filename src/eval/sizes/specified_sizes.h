// What dynamic_shapes= says of the arguments of one call.
//
// The specification has the shape of the arguments, as torch.export's has it: a dict by parameter, or a tuple
// or list in their order; within, dicts for dicts, tuples or lists for sequences and for other objects that
// torch's pytree knows; and for a tensor a dict of dimensions, or a tuple or list of all of them.
//   - None stands for anything, and makes all sizes below it static.
//   - Keys and parameters that are not named, and dimensions that a dict leaves out, have nothing said of
//   them.
//   - An argument that the call leaves to its default, or for which it gives None, may have any entry.
#pragma once

#include <Python.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpy/ref.h"
#include "eval/sizes/dimension.h"

namespace oxy::eval {

class SpecifiedSizes {
 public:
  // Matches the specification with the arguments of a call of `target`. Holds the tensors. Throws Interrupted
  // with a Python exception that names the place in the specification and the argument:
  //   TypeError, ValueError   the specification does not fit the arguments, or `target` has no signature
  //   RuntimeError            a size contradicts it
  // Runs Python code: inspect.signature, pytree's flattening functions, `fn` of a torch.export.Dim.
  SpecifiedSizes(PyObject* specification, PyObject* target, PyObject* const* args, size_t nargsf,
                 PyObject* kwnames);

  // By dimension; null: nothing is said of this tensor.
  const std::vector<Dimension>* of_tensor(PyObject* tensor) const;
  // `place`: of an int, as GuardSet::describe() names it. Null: nothing is said.
  const Dimension* of_int(const std::string& place) const;

 private:
  // A part of the specification and the part of the arguments that it is about.
  struct Place {
    std::string of_specification;      // "dynamic_shapes['x'][0]"
    std::string of_argument;           // "x[0]"
    std::vector<std::string> sources;  // how GuardSet::describe() may name the argument
    Place item(const std::string& key) const;
  };
  void match(PyObject* specification, PyObject* object, const Place& place);
  void match_tensor(PyObject* specification, PyObject* tensor, const Place& place);
  void match_int(PyObject* specification, PyObject* number, const Place& place);
  void match_dict(PyObject* specification, PyObject* dict, const Place& place);
  void match_items(PyObject* specification, PyObject* items, const Place& place);
  void check_size(const Dimension& said, int64_t size, const std::string& name, const Place& place);

  struct NamedNumber {
    sym::Range range;
    int64_t value;
    std::string of;     // the size that had it first: "x.size(0)"
    int64_t size;       // of that
    std::string place;  // in the specification
  };
  std::unordered_map<PyObject*, std::vector<Dimension>> tensors_;
  std::vector<cpy::Ref> held_;  // their keys
  std::map<std::string, Dimension> ints_;
  std::map<std::string, NamedNumber> named_;
};

}  // namespace oxy::eval
