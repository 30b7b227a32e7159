// The objects that existed before the call and that the program has reached.
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
  std::unordered_map<PyObject*, guards::SourceId> sources;
  std::unordered_map<guards::SourceId, cpy::Ref> admitted;
  std::unordered_map<PyObject*, cpy::Ref> trace_of;      // external tensor -> its trace tensor
  std::unordered_map<PyObject*, PyObject*> external_of;  // the other way
  std::vector<cpy::Ref> keep_alive;                      // what the maps have as keys
  std::unordered_set<PyObject*> known_by_code;           // functions and bound methods of C code
  std::unordered_set<PyObject*> code_constants;          // kept alive by their code
  const std::set<std::string>* unguarded = nullptr;      // FrameRoots::unguarded

  // kNoSource for fresh objects and constants.
  guards::SourceId source_of(PyObject* object) const {
    const auto found = sources.find(object);
    return found == sources.end() ? guards::kNoSource : found->second;
  }
  bool is_external(PyObject* object) const { return source_of(object) != guards::kNoSource; }
  // A function that its program makes anew, as it does lambdas, or a bound method of C code: guarded by its
  // code.
  bool is_known_by_code(PyObject* object) const { return known_by_code.contains(object); }
  // A tuple or frozenset among the constants of a code object: always the same object.
  bool is_code_constant(PyObject* object) const { return code_constants.contains(object); }
};

}  // namespace oxy::eval
