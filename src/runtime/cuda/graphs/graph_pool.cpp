#include "runtime/cuda/graphs/graph_pool.h"

#include <Python.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <string>

#include "backend/cuda/load/relaxed_captures.h"
#include "base/error.h"
#include "cpy/gil.h"
#include "cpy/ref.h"

namespace oxy::runtime {

namespace {

using backend::cuda::Driver;

// The allocator's functions are reached through PyTorch's bindings, so that nothing is linked against
// PyTorch's CUDA libraries. Steals the arguments.
cpy::Ref call_binding(const char* name, PyObject* arguments, const char* module_name = "torch._C") {
  const cpy::Ref given = cpy::Ref::steal(arguments);
  const cpy::Ref module = cpy::Ref::steal(PyImport_ImportModule(module_name));
  const cpy::Ref function = cpy::Ref::steal(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  cpy::Ref result =
      cpy::Ref::steal(function && given ? PyObject_CallObject(function.get(), given.get()) : nullptr);
  if (!result) {
    PyErr_Clear();
    throw InternalError(std::string("PyTorch's allocator refused ") + name);
  }
  return result;
}

GraphPool::Id new_id() {
  const cpy::Ref id = call_binding("_graph_pool_handle", PyTuple_New(0));
  unsigned long long first = 0, second = 0;
  if (!PyArg_ParseTuple(id.get(), "KK", &first, &second)) {
    PyErr_Clear();
    throw InternalError("PyTorch's allocator names a pool in an unknown way");
  }
  return {first, second};
}

void call_with_pool(const char* name, c10::DeviceIndex device, const GraphPool::Id& id) {
  call_binding(name,
               Py_BuildValue("(i(KK))", static_cast<int>(device), static_cast<unsigned long long>(id.first),
                             static_cast<unsigned long long>(id.second)));
}

void begin_use(c10::DeviceIndex device, const GraphPool::Id& id) {
  call_with_pool("_cuda_beginAllocateCurrentThreadToPool", device, id);
}

void end_use(c10::DeviceIndex device, const GraphPool::Id& id) {
  call_with_pool("_cuda_endAllocateToPool", device, id);
}

void release(c10::DeviceIndex device, const GraphPool::Id& id) {
  call_with_pool("_cuda_releasePool", device, id);
}

// While it lives, an emptying of caches leaves those of all devices but `except` alone: PyTorch empties no
// cache of a device on which a pool is in use.
class KeepsCaches {
 public:
  explicit KeepsCaches(c10::DeviceIndex except) : id_(new_id()), except_(except) {
    const c10::DeviceIndex count = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
    for (; next_ < count; ++next_)
      if (next_ != except_) begin_use(next_, id_);
  }
  ~KeepsCaches() {
    for (c10::DeviceIndex device = 0; device < next_; ++device) {
      if (device == except_) continue;
      try {
        end_use(device, id_);
        release(device, id_);
      } catch (const InternalError&) {  // then the cache is kept for longer
      }
    }
  }
  KeepsCaches(const KeepsCaches&) = delete;
  KeepsCaches& operator=(const KeepsCaches&) = delete;

 private:
  GraphPool::Id id_;
  c10::DeviceIndex except_;
  c10::DeviceIndex next_ = 0;
};

constexpr c10::DeviceIndex kNoDevice = -1;

// Empties the cache of `device`, or of none. On all devices, pools that nobody owns any more are given back.
void empty_caches(const Driver& driver, c10::DeviceIndex device) noexcept {
  try {
    const KeepsCaches others(device);
    const backend::cuda::RelaxedCaptures relaxed(driver);
    call_binding("empty_cache", PyTuple_New(0), "torch.cuda");
  } catch (const std::exception&) {  // PyTorch empties them when memory is short
  }
}

}  // namespace

void empty_cache(const Driver& driver, c10::DeviceIndex device) {
  const cpy::WithGil gil;
  empty_caches(driver, device);
}

GraphPool::GraphPool(const Driver& driver, c10::DeviceIndex device) : driver_(driver), device_(device) {
  const cpy::WithGil gil;
  id_ = new_id();
}

GraphPool::~GraphPool() {
  if (!is_made_ || !Py_IsInitialized()) return;
  const cpy::WithGil gil;
  try {
    release(device_, id_);
  } catch (const InternalError&) {  // the process ends
    return;
  }
  empty_caches(driver_, kNoDevice);
}

// The first use makes the pool and counts as its owner; each later one is counted, and released at its end.
void GraphPool::begin() {
  const cpy::WithGil gil;
  begin_use(device_, id_);
}

void GraphPool::end() noexcept {
  try {
    const cpy::WithGil gil;
    end_use(device_, id_);
    if (is_made_) release(device_, id_);
    is_made_ = true;
  } catch (const InternalError&) {  // nothing is lost but the memory of the pool
  }
}

}  // namespace oxy::runtime
