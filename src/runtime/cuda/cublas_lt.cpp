#include "runtime/cuda/cublas_lt.h"

#include <dlfcn.h>
#include <link.h>

#include <optional>
#include <string>
#include <string_view>

#include "backend/cuda/load/library_function.h"

namespace oxy::runtime {

namespace {

using backend::cuda::find_function;

constexpr size_t kOldest = 120000, kTooNew = 140000;

// The path of the loaded library; empty: there is none.
std::string loaded_path() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* data) {
        const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (name.find("libcublasLt.so") == name.npos) return 0;
        *static_cast<std::string*>(data) = name;
        return 1;
      },
      &path);
  return path;
}

std::optional<CublasLt> opened() {
  const std::string path = loaded_path();
  void* const library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  CublasLt lt;
  const bool is_complete =
      find_function(library, "cublasLtCreate", lt.create) &&
      find_function(library, "cublasLtGetVersion", lt.version) &&
      find_function(library, "cublasLtMatmulDescCreate", lt.create_product) &&
      find_function(library, "cublasLtMatmulDescDestroy", lt.destroy_product) &&
      find_function(library, "cublasLtMatmulDescSetAttribute", lt.set_product) &&
      find_function(library, "cublasLtMatrixLayoutCreate", lt.create_layout) &&
      find_function(library, "cublasLtMatrixLayoutDestroy", lt.destroy_layout) &&
      find_function(library, "cublasLtMatmulPreferenceCreate", lt.create_preference) &&
      find_function(library, "cublasLtMatmulPreferenceDestroy", lt.destroy_preference) &&
      find_function(library, "cublasLtMatmulPreferenceSetAttribute", lt.set_preference) &&
      find_function(library, "cublasLtMatmulAlgoGetHeuristic", lt.choose) &&
      find_function(library, "cublasLtMatmul", lt.multiply);
  const bool is_known = is_complete && lt.version() >= kOldest && lt.version() < kTooNew;
  return is_known ? std::optional(lt) : std::nullopt;
}

}  // namespace

const CublasLt* find_cublas_lt() {
  static const std::optional<CublasLt> once = opened();
  return once ? &*once : nullptr;
}

}  // namespace oxy::runtime
