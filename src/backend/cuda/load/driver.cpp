#include "backend/cuda/load/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/cuda/load/library_function.h"
#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

constexpr int kOldestVersion = 12000;  // libraries that belong to no context came with it
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

struct Opened {
  Driver driver;
  std::string missing;  // empty: all is there
};

GraphFunctions find_graph_functions(void* library) {
  GraphFunctions g;
  const bool is_complete = find_function(library, "cuStreamCreate", g.create_stream) &&
                           find_function(library, "cuStreamBeginCapture_v2", g.begin_capture) &&
                           find_function(library, "cuStreamEndCapture", g.end_capture) &&
                           find_function(library, "cuStreamIsCapturing", g.is_capturing) &&
                           find_function(library, "cuStreamGetCaptureInfo_v2", g.capture_info) &&
                           find_function(library, "cuStreamUpdateCaptureDependencies", g.follow) &&
                           find_function(library, "cuGraphGetNodes", g.nodes) &&
                           find_function(library, "cuGraphNodeGetType", g.node_type) &&
                           find_function(library, "cuGraphKernelNodeGetParams_v2", g.get_kernel) &&
                           find_function(library, "cuGraphMemcpyNodeGetParams", g.get_copy) &&
                           find_function(library, "cuGraphMemsetNodeGetParams", g.get_fill) &&
                           find_function(library, "cuGraphExecKernelNodeSetParams_v2", g.set_kernel) &&
                           find_function(library, "cuGraphExecMemcpyNodeSetParams", g.set_copy) &&
                           find_function(library, "cuGraphExecMemsetNodeSetParams", g.set_fill) &&
                           find_function(library, "cuFuncGetParamInfo", g.function_parameter) &&
                           find_function(library, "cuKernelGetParamInfo", g.kernel_parameter) &&
                           find_function(library, "cuGraphInstantiateWithFlags", g.instantiate) &&
                           find_function(library, "cuGraphLaunch", g.launch) &&
                           find_function(library, "cuGraphExecDestroy", g.destroy_executable) &&
                           find_function(library, "cuGraphDestroy", g.destroy) &&
                           find_function(library, "cuPointerGetAttribute", g.pointer_attribute) &&
                           find_function(library, "cuMemGetAllocationGranularity", g.granularity) &&
                           find_function(library, "cuMemCreate", g.create_memory) &&
                           find_function(library, "cuMemRelease", g.release_memory) &&
                           find_function(library, "cuMemAddressReserve", g.reserve_addresses) &&
                           find_function(library, "cuMemAddressFree", g.free_addresses) &&
                           find_function(library, "cuMemMap", g.map_memory) &&
                           find_function(library, "cuMemUnmap", g.unmap_memory) &&
                           find_function(library, "cuMemSetAccess", g.set_access);
  return is_complete ? g : GraphFunctions();
}

TimingFunctions find_timing_functions(void* library) {
  TimingFunctions t;
  const bool is_complete =
      find_function(library, "cuStreamCreate", t.create_stream) &&
      find_function(library, "cuStreamDestroy_v2", t.destroy_stream) &&
      find_function(library, "cuStreamSynchronize", t.wait_for_stream) &&
      find_function(library, "cuEventCreate", t.create_event) &&
      find_function(library, "cuEventDestroy_v2", t.destroy_event) &&
      find_function(library, "cuEventRecord", t.record) &&
      find_function(library, "cuEventSynchronize", t.wait_for_event) &&
      find_function(library, "cuEventElapsedTime", t.elapsed) &&
      find_function(library, "cuMemAlloc_v2", t.allocate) && find_function(library, "cuMemFree_v2", t.free) &&
      find_function(library, "cuMemsetD8Async", t.fill) &&
      find_function(library, "cuThreadExchangeStreamCaptureMode", t.exchange_capture_mode);
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
  if (!find_function(library, "cuInit", d.init) || !find_function(library, "cuDriverGetVersion", d.version) ||
      !find_function(library, "cuGetErrorString", d.error_text) || d.init(0) != 0 ||
      d.version(&version) != 0) {
    result.missing = "NVIDIA's driver could not be initialised";
    return result;
  }
  const bool is_complete =
      find_function(library, "cuDeviceGetCount", d.device_count) &&
      find_function(library, "cuDeviceGetAttribute", d.device_attribute) &&
      find_function(library, "cuDeviceGetName", d.device_name) &&
      find_function(library, "cuCtxGetCurrent", d.current_context) &&
      find_function(library, "cuCtxSetCurrent", d.make_current) &&
      find_function(library, "cuDevicePrimaryCtxRetain", d.retain_primary_context) &&
      find_function(library, "cuDevicePrimaryCtxRelease_v2", d.release_primary_context) &&
      find_function(library, "cuLibraryLoadData", d.load_library) &&
      find_function(library, "cuLibraryUnload", d.unload_library) &&
      find_function(library, "cuLibraryGetKernel", d.get_kernel) &&
      find_function(library, "cuKernelSetAttribute", d.set_kernel_attribute) &&
      find_function(library, "cuLaunchKernelEx", d.launch) &&
      find_function(library, "cuMemcpyHtoDAsync_v2", d.copy_to_device);
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
