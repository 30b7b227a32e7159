// The system's compiler as a Compiler: every kernel of a call to an object, in parallel, and these to one
// library.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <unordered_set>

#include "backend/cpu/jit/jit.h"
#include "backend/cpu/jit/kernel_cache.h"
#include "backend/cpu/jit/parallel.h"
#include "backend/cpu/jit/subprocess.h"
#include "backend/cpu/jit/temporary_folder.h"
#include "backend/cpu/target.h"
#include "base/config.h"
#include "base/error.h"

namespace oxy::backend::cpu {
namespace {

std::string find_compiler() {
  const std::string& wanted = config().system_cxx;
  if (!wanted.empty()) {
    if (auto path = find_program(wanted)) return *path;
    throw Unsupported(fmt::format("OXYFUEL_CXX={} is no program that can be run", wanted));
  }
  for (const char* name : {"c++", "g++", "clang++"})
    if (auto path = find_program(name)) return *path;
  throw Unsupported("no C++ compiler found", "install g++ or clang, or set OXYFUEL_CXX to one");
}

std::vector<std::string> compile_options(const backend::cpu::Target& target) {
  std::vector<std::string> options = {"-std=c++20",
                                      "-O3",
                                      "-fPIC",
                                      "-w",
                                      "-ffp-contract=on",
                                      "-fno-math-errno",
                                      "-fno-trapping-math",
                                      "-fno-exceptions",
                                      "-fno-rtti",
                                      "-fno-asynchronous-unwind-tables",
                                      "-fvisibility=default"};
#if defined(__x86_64__)
  for (const std::string& feature : target.features) options.push_back("-m" + feature);
  options.push_back(fmt::format("-mprefer-vector-width={}", 8 * target.vector_bytes));
#endif
  return options;
}

// Kernels may call Sleef, which libtorch_cpu exports; it is not in the process's global scope.
std::optional<std::string> loaded_torch() {
  void* handle = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return std::nullopt;
  link_map* map = nullptr;
  std::optional<std::string> path;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) path = map->l_name;
  dlclose(handle);
  return path;
}

void require_success(const ProcessResult& result, const std::filesystem::path& product,
                     std::string_view what) {
  std::error_code ignored;
  if (result.status == 0 && std::filesystem::exists(product, ignored)) return;
  if (result.output.find("No space left on device") != std::string::npos)
    throw Unsupported("the disk is full: the C++ compiler cannot write its output",
                      "make room, or point TMPDIR to another disk");
  if (result.status >= 127)
    throw Unsupported(
        fmt::format("the C++ compiler did not run to its end (status {}): {}", result.status, result.output));
  throw InternalError(fmt::format("{}:\n{}", what, result.output));
}

std::shared_ptr<const void> open_library(const std::filesystem::path& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::string reason = dlerror();
    // A temporary folder mounted noexec.
    if (reason.find("failed to map segment") != std::string::npos)
      throw Unsupported("compiled kernels cannot be loaded: " + reason,
                        "point TMPDIR to a disk mounted with exec");
    throw InternalError("cannot load the compiled kernels: " + reason);
  }
  return {handle, [](const void* library) { dlclose(const_cast<void*>(library)); }};
}

class SystemCompiler : public Compiler {
 public:
  SystemCompiler(std::string compiler, backend::cpu::Target target)
      : compiler_(std::move(compiler)), target_(std::move(target)), options_(compile_options(target_)) {
    ProcessResult version = run_process({compiler_, "--version"});
    if (version.status != 0)
      throw Unsupported(fmt::format("the C++ compiler {} does not run: {}", compiler_, version.output));
    version_ = version.output.substr(0, version.output.find('\n'));
  }

  std::shared_ptr<KernelLibrary> compile(std::span<const plan::Kernel> kernels) override {
    return cache_.get(kernels,
                      [&](std::span<const size_t> missing) { return compile_missing(kernels, missing); });
  }

  std::string description() const override {
    return fmt::format("{} ({}), {}", compiler_, version_, fmt::join(target_.features, " "));
  }

 private:
  std::vector<LoadedKernel> compile_missing(std::span<const plan::Kernel> kernels,
                                            std::span<const size_t> missing) {
    std::unordered_set<std::string_view> names;
    for (size_t kernel : missing)
      check(names.insert(kernels[kernel].name).second, "two different kernels have the same name");
    TemporaryFolder folder;
    for_each_in_parallel(missing.size(), [&](size_t i) { compile_one(kernels[missing[i]], i, folder); });
    std::filesystem::path library = folder.path() / "kernels.so";
    link(missing.size(), folder, library);
    std::shared_ptr<const void> owner = open_library(library);
    std::vector<LoadedKernel> loaded;
    for (size_t kernel : missing) {
      void* symbol = dlsym(const_cast<void*>(owner.get()), kernels[kernel].name.c_str());
      check(symbol != nullptr, fmt::format("the kernel does not define {}", kernels[kernel].name));
      loaded.push_back({owner, reinterpret_cast<SliceFunction>(symbol)});
    }
    return loaded;
  }

  void compile_one(const plan::Kernel& kernel, size_t number, const TemporaryFolder& folder) const {
    std::string source = fmt::format("{}.cpp", number);
    folder.write(source, kernel.source);
    std::filesystem::path object = folder.path() / fmt::format("{}.o", number);
    std::vector<std::string> command = {compiler_};
    command.insert(command.end(), options_.begin(), options_.end());
    command.insert(command.end(), {"-c", (folder.path() / source).string(), "-o", object.string()});
    require_success(run_process(command), object, "a generated kernel does not compile");
  }

  void link(size_t count, const TemporaryFolder& folder, const std::filesystem::path& library) const {
    std::vector<std::string> command = {compiler_, "-shared", "-o", library.string()};
    for (size_t i = 0; i < count; ++i) command.push_back((folder.path() / fmt::format("{}.o", i)).string());
    command.insert(command.end(), {"-Wl,--as-needed", "-lm"});
    if (auto torch = loaded_torch()) command.push_back(*torch);
    require_success(run_process(command), library, "generated kernels do not link");
  }

  std::string compiler_;
  backend::cpu::Target target_;
  std::vector<std::string> options_;
  std::string version_;
  KernelCache cache_;
};

}  // namespace

std::unique_ptr<Compiler> make_system_compiler() {
  return std::make_unique<SystemCompiler>(find_compiler(), backend::cpu::host_target());
}

}  // namespace oxy::backend::cpu
