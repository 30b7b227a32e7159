#include "backend/cuda/load/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

constexpr int kOldestVersion = 12000;  // libraries that belong to no context came with it
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

struct Opened {
  Driver driver;
  std::string missing;  // empty: all is there
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

GraphFunctions find_graph_functions(void* library) {
  GraphFunctions g;
  const bool is_complete =
      find(library, "cuStreamCreate", g.create_stream) &&
      find(library, "cuStreamBeginCapture_v2", g.begin_capture) &&
      find(library, "cuStreamEndCapture", g.end_capture) &&
      find(library, "cuStreamIsCapturing", g.is_capturing) &&
      find(library, "cuStreamGetCaptureInfo_v2", g.capture_info) &&
      find(library, "cuStreamUpdateCaptureDependencies", g.follow) &&
      find(library, "cuGraphGetNodes", g.nodes) && find(library, "cuGraphNodeGetType", g.node_type) &&
      find(library, "cuGraphKernelNodeGetParams_v2", g.get_kernel) &&
      find(library, "cuGraphMemcpyNodeGetParams", g.get_copy) &&
      find(library, "cuGraphMemsetNodeGetParams", g.get_fill) &&
      find(library, "cuGraphExecKernelNodeSetParams_v2", g.set_kernel) &&
      find(library, "cuGraphExecMemcpyNodeSetParams", g.set_copy) &&
      find(library, "cuGraphExecMemsetNodeSetParams", g.set_fill) &&
      find(library, "cuFuncGetParamInfo", g.function_parameter) &&
      find(library, "cuKernelGetParamInfo", g.kernel_parameter) &&
      find(library, "cuGraphInstantiateWithFlags", g.instantiate) &&
      find(library, "cuGraphLaunch", g.launch) && find(library, "cuGraphExecDestroy", g.destroy_executable) &&
      find(library, "cuGraphDestroy", g.destroy) &&
      find(library, "cuPointerGetAttribute", g.pointer_attribute) &&
      find(library, "cuMemGetAllocationGranularity", g.granularity) &&
      find(library, "cuMemCreate", g.create_memory) && find(library, "cuMemRelease", g.release_memory) &&
      find(library, "cuMemAddressReserve", g.reserve_addresses) &&
      find(library, "cuMemAddressFree", g.free_addresses) && find(library, "cuMemMap", g.map_memory) &&
      find(library, "cuMemUnmap", g.unmap_memory) && find(library, "cuMemSetAccess", g.set_access);
  return is_complete ? g : GraphFunctions();
}

TimingFunctions find_timing_functions(void* library) {
  TimingFunctions t;
  const bool is_complete =
      find(library, "cuStreamCreate", t.create_stream) &&
      find(library, "cuStreamDestroy_v2", t.destroy_stream) &&
      find(library, "cuStreamSynchronize", t.wait_for_stream) &&
      find(library, "cuEventCreate", t.create_event) && find(library, "cuEventDestroy_v2", t.destroy_event) &&
      find(library, "cuEventRecord", t.record) && find(library, "cuEventSynchronize", t.wait_for_event) &&
      find(library, "cuEventElapsedTime", t.elapsed) && find(library, "cuMemAlloc_v2", t.allocate) &&
      find(library, "cuMemFree_v2", t.free) && find(library, "cuMemsetD8Async", t.fill) &&
      find(library, "cuThreadExchangeStreamCaptureMode", t.exchange_capture_mode);
  return is_complete ? t : TimingFunctions();
}

Opened open() {
  Opened result;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    result.missing = "NVIDIA's driver (libcuda.so.1) was not found";
    return result;
  }
  Driver& d = result.driver;
  int version = 0;
  if (!find(library, "cuInit", d.init) || !find(library, "cuDriverGetVersion", d.version) ||
      !find(library, "cuGetErrorString", d.error_text) || d.init(0) != 0 || d.version(&version) != 0) {
    result.missing = "NVIDIA's driver could not be initialised";
    return result;
  }
  const bool is_complete = find(library, "cuDeviceGetCount", d.device_count) &&
                           find(library, "cuDeviceGetAttribute", d.device_attribute) &&
                           find(library, "cuDeviceGetName", d.device_name) &&
                           find(library, "cuCtxGetCurrent", d.current_context) &&
                           find(library, "cuCtxSetCurrent", d.make_current) &&
                           find(library, "cuDevicePrimaryCtxRetain", d.retain_primary_context) &&
                           find(library, "cuDevicePrimaryCtxRelease_v2", d.release_primary_context) &&
                           find(library, "cuLibraryLoadData", d.load_library) &&
                           find(library, "cuLibraryUnload", d.unload_library) &&
                           find(library, "cuLibraryGetKernel", d.get_kernel) &&
                           find(library, "cuKernelSetAttribute", d.set_kernel_attribute) &&
                           find(library, "cuLaunchKernelEx", d.launch) &&
                           find(library, "cuMemcpyHtoDAsync_v2", d.copy_to_device);
  d.graphs = find_graph_functions(library);
  d.timing = find_timing_functions(library);
  if (!is_complete || version < kOldestVersion)
    result.missing = fmt::format("NVIDIA's driver is for CUDA {}.{}, and 12.0 is needed", version / 1000,
                                 version % 1000 / 10);
  return result;
}

}  // namespace

const Driver* find_driver(std::string& missing) {
  static const Opened opened = open();
  if (opened.missing.empty()) return &opened.driver;
  missing = opened.missing;
  return nullptr;
}

void check_call(const Driver& driver, Result result, const char* what) {
  if (result == 0) [[likely]]
    return;
  const char* text = nullptr;
  driver.error_text(result, &text);
  throw InternalError(
      fmt::format("CUDA refused {}: {} (error {})", what, text ? text : "unknown error", result));
}

int compute_capability(const Driver& driver, int device) {
  int major = 0, minor = 0;
  if (driver.device_attribute(&major, kCapabilityMajor, device) != 0 ||
      driver.device_attribute(&minor, kCapabilityMinor, device) != 0)
    return -1;
  return major * 10 + minor;
}

std::string card_name(const Driver& driver, int device) {
  char name[256] = {};
  return driver.device_name(name, sizeof(name) - 1, device) == 0 ? name : "";
}

}  // namespace oxy::backend::cuda
