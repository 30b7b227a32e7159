#include "torch_api/allocator_pool.h"

#include <Python.h>

#include "base/error.h"
#include "cpy/gil.h"
#include "cpy/ref.h"

namespace oxy::torch_api {

namespace {

// The allocator's functions are reached through PyTorch's bindings, so that nothing is linked against
// PyTorch's CUDA libraries.
cpy::Ref call_binding(const char* name, PyObject* arguments) {
  const cpy::Ref given = cpy::Ref::steal(arguments);
  const cpy::Ref module = cpy::Ref::steal(PyImport_ImportModule("torch._C"));
  const cpy::Ref function = cpy::Ref::steal(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  cpy::Ref result =
      cpy::Ref::steal(function && given ? PyObject_CallObject(function.get(), given.get()) : nullptr);
  if (!result) {
    PyErr_Clear();
    throw InternalError(std::string("PyTorch's allocator refused ") + name);
  }
  return result;
}

PyObject* arguments_of(c10::DeviceIndex device, const std::pair<uint64_t, uint64_t>& id) {
  return Py_BuildValue("(i(KK))", static_cast<int>(device), static_cast<unsigned long long>(id.first),
                       static_cast<unsigned long long>(id.second));
}

}  // namespace

AllocatorPool::AllocatorPool(c10::DeviceIndex device) : device_(device) {
  const cpy::WithGil gil;
  const cpy::Ref id = call_binding("_graph_pool_handle", PyTuple_New(0));
  unsigned long long first = 0, second = 0;
  if (!PyArg_ParseTuple(id.get(), "KK", &first, &second)) {
    PyErr_Clear();
    throw InternalError("PyTorch's allocator names a pool in an unknown way");
  }
  id_ = {first, second};
}

AllocatorPool::~AllocatorPool() {
  if (!is_made_ || !Py_IsInitialized()) return;
  try {
    const cpy::WithGil gil;
    call_binding("_cuda_releasePool", arguments_of(device_, id_));
  } catch (const InternalError&) {  // the process ends
  }
}

// The first use makes the pool and counts as its owner; each later one is counted, and released at its end.
void AllocatorPool::begin() {
  const cpy::WithGil gil;
  call_binding("_cuda_beginAllocateCurrentThreadToPool", arguments_of(device_, id_));
}

void AllocatorPool::end() noexcept {
  try {
    const cpy::WithGil gil;
    call_binding("_cuda_endAllocateToPool", arguments_of(device_, id_));
    if (is_made_) call_binding("_cuda_releasePool", arguments_of(device_, id_));
    is_made_ = true;
  } catch (const InternalError&) {  // nothing is lost but the memory of the pool
  }
}

}  // namespace oxy::torch_api
