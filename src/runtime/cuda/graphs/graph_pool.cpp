#include "runtime/cuda/graphs/graph_pool.h"

#include <Python.h>

#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/load/relaxed_captures.h"
#include "base/error.h"
#include "cpy/gil.h"
#include "cpy/ref.h"

namespace oxy::runtime {

namespace {

using backend::cuda::Driver;

// The allocator's functions are reached through PyTorch's bindings, so that nothing is linked against
// PyTorch's CUDA libraries. Steals the arguments.
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

struct Owned {
  const Driver* driver = nullptr;
  c10::DeviceIndex device = 0;
  GraphPool::Id id;
};

// While a pool is in use, PyTorch empties nothing but pools that nobody owns any more.
void drop(const Owned& pool) {
  release(pool.device, pool.id);
  const GraphPool::Id unused = new_id();
  begin_use(pool.device, unused);
  empty_cache(*pool.driver);
  end_use(pool.device, unused);
  release(pool.device, unused);
}

// Pools whose owners went while their threads did not hold the GIL.
struct Waiting {
  std::mutex mutex;
  std::vector<Owned> pools;
};

Waiting& waiting() {
  static Waiting& once = *new Waiting;  // never destroyed: graphs die while the process ends
  return once;
}

void drop_or_leave(const Owned& pool) noexcept {
  try {
    drop(pool);
  } catch (const std::exception&) {  // the process ends
  }
}

// With the GIL.
int drop_waiting(void* /*unused*/) {
  std::vector<Owned> pools;
  {
    const std::scoped_lock lock(waiting().mutex);
    pools.swap(waiting().pools);
  }
  for (const Owned& pool : pools) drop_or_leave(pool);
  return 0;
}

}  // namespace

void empty_cache(const Driver& driver) {
  const cpy::WithGil gil;
  const backend::cuda::RelaxedCaptures relaxed(driver);
  try {
    call_binding("_cuda_emptyCache", PyTuple_New(0));
  } catch (const InternalError&) {  // PyTorch empties it when memory is short
  }
}

GraphPool::GraphPool(const Driver& driver, c10::DeviceIndex device) : driver_(driver), device_(device) {
  const cpy::WithGil gil;
  drop_waiting(nullptr);
  id_ = new_id();
}

GraphPool::~GraphPool() {
  if (!is_made_ || !Py_IsInitialized()) return;
  const Owned pool{&driver_, device_, id_};
  if (PyGILState_Check()) {
    drop_or_leave(pool);
    return;
  }
  {
    const std::scoped_lock lock(waiting().mutex);
    waiting().pools.push_back(pool);
  }
  Py_AddPendingCall(drop_waiting, nullptr);  // refused: the next pool drops it
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
