// A call of a function with dynamic_shapes=: what the specification says of the arguments, for all captures
// of the call.
#pragma once

#include <Python.h>

#include <optional>

#include "eval/sizes/specified_sizes.h"

namespace oxy::driver {

// While one lives, captures on this thread under the same specification are told of it. The arguments are
// borrowed. A null specification does nothing. The GIL is held.
class SpecifiedCall {
 public:
  SpecifiedCall(PyObject* specification, PyObject* target, PyObject* const* args, size_t nargsf,
                PyObject* kwnames);
  ~SpecifiedCall();
  SpecifiedCall(const SpecifiedCall&) = delete;
  SpecifiedCall& operator=(const SpecifiedCall&) = delete;

  // Of the innermost call with the specification; null: there is none. Matches it with the arguments when it
  // is first asked for; throws as SpecifiedSizes does.
  static const eval::SpecifiedSizes* sizes(PyObject* specification);

 private:
  PyObject* specification_;
  PyObject* target_;
  PyObject* const* args_;
  size_t nargsf_;
  PyObject* kwnames_;
  std::optional<eval::SpecifiedSizes> sizes_;
  SpecifiedCall* outer_;
};

}  // namespace oxy::driver
