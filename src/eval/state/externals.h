// External objects, which existed before the call: the ones that the program has reached so far, and where
// each of them was read. externals/admission.h adds to them.
#pragma once

#include <Python.h>

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cpy/ref.h"
#include "guards/source.h"

namespace oxy::eval {

struct Externals {
  // External object, or trace tensor of an external tensor -> the place where it was read first.
  std::unordered_map<PyObject*, guards::SourceId> sources;
  // Place -> what the program sees there: a trace tensor for a tensor, else the object.
  std::unordered_map<guards::SourceId, cpy::Ref> admitted;
  std::unordered_map<PyObject*, cpy::Ref> trace_of;      // external tensor -> its trace tensor
  std::unordered_map<PyObject*, PyObject*> external_of;  // trace tensor -> external tensor
  std::vector<cpy::Ref> keep_alive;                      // the keys of the maps
  std::unordered_set<PyObject*> known_by_code;           // functions and bound methods of C code
  std::unordered_set<PyObject*> code_constants;          // kept alive by their code
  const std::set<std::string>* unguarded = nullptr;      // FrameRoots::unguarded

  // Where the object was read; kNoSource for fresh objects and constants.
  guards::SourceId source_of(PyObject* object) const {
    const auto found = sources.find(object);
    return found == sources.end() ? guards::kNoSource : found->second;
  }
  bool is_external(PyObject* object) const { return source_of(object) != guards::kNoSource; }
  // A function that the program makes anew at each call, such as a lambda, or a bound method of C code. Its
  // code is guarded, not which object it is.
  bool is_known_by_code(PyObject* object) const { return known_by_code.contains(object); }
  // A tuple or frozenset among the constants of a code object: always the same object.
  bool is_code_constant(PyObject* object) const { return code_constants.contains(object); }
};

}  // namespace oxy::eval
