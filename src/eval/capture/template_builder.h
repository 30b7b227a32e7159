// Describes the values that are alive at the end of a capture as templates.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Stops at an object that cannot be made again. Objects are added to capture.objects, sources of external
// objects to capture.externals.
class TemplateBuilder {
 public:
  TemplateBuilder(Interpreter& interpreter, Capture& capture)
      : interpreter_(interpreter), capture_(capture) {}
  // An object that several values refer to is described once. Null gives TemplateKind::Null.
  Template build(PyObject* object);
  // What lies at the source, whatever it is.
  Template external(SourceId source);
  // The trace tensors that templates refer to as outputs, in order (borrowed).
  const std::vector<PyObject*>& outputs() const { return outputs_; }
  // Whether a value of the dict is a mutable object that will be made again.
  bool shares_objects(PyObject* dict) const;
  // Whether the object will be made again.
  bool makes(PyObject* object) const { return objects_.contains(object); }

 private:
  Template constant(PyObject* object);
  // A float that depends on data: what item() gives of an output.
  Template float_in_result(PyObject* object);
  // Whether the object that is built has the same hash at every run: it is hashed by value, or is always the
  // same object.
  bool has_fixed_hash(PyObject* object, const Template& t) const;
  bool have_fixed_hashes(PyObject* container, const std::vector<Template>& items) const;
  bool is_known_to_its_constants(PyObject* external) const;  // of an item of a set, whose hash was guarded
  int32_t reserve(PyObject* object, ObjectKind kind, PyObject* type = nullptr);
  Template instance(PyObject* object);
  Template view(PyObject* object);
  Template container_iterator(PyObject* object);
  Ref native_maker(PyObject* parts);
  Template reduced(PyObject* object);
  Template generator(PyObject* object);

  Interpreter& interpreter_;
  Capture& capture_;
  int depth_ = 0;
  std::vector<PyObject*> outputs_;
  std::vector<Ref> keep_alive_;
  std::unordered_map<PyObject*, int32_t> objects_;
  std::unordered_map<PyObject*, int32_t> output_index_;
  std::unordered_map<SourceId, int32_t> external_index_;
};

}  // namespace oxy::eval
