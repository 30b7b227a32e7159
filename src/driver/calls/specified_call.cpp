#include "driver/calls/specified_call.h"

namespace oxy::driver {

namespace {

thread_local SpecifiedCall* innermost = nullptr;

}  // namespace

SpecifiedCall::SpecifiedCall(PyObject* specification, PyObject* target, PyObject* const* args, size_t nargsf,
                             PyObject* kwnames)
    : specification_(specification),
      target_(target),
      args_(args),
      nargsf_(nargsf),
      kwnames_(kwnames),
      outer_(innermost) {
  if (specification_ != nullptr) innermost = this;
}

SpecifiedCall::~SpecifiedCall() {
  if (specification_ != nullptr) innermost = outer_;
}

const eval::SpecifiedSizes* SpecifiedCall::sizes(PyObject* specification) {
  SpecifiedCall* call = innermost;
  while (call != nullptr && call->specification_ != specification) call = call->outer_;
  if (call == nullptr) return nullptr;
  if (!call->sizes_)
    call->sizes_.emplace(specification, call->target_, call->args_, call->nargsf_, call->kwnames_);
  return &*call->sizes_;
}

}  // namespace oxy::driver
