#include "backend/cpu/jit/clang/object_loader.h"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Process.h>

#include <mutex>

#include "base/error.h"

namespace oxy::backend::cpu {
namespace {

using namespace llvm::jitlink;
using llvm::orc::ExecutorAddr;
using llvm::orc::ExecutorSymbolDef;

JITLinkMemoryManager& memory_manager() {
  // Never destroyed: libraries may be released while the process ends.
  static auto* once = new InProcessMemoryManager(llvm::sys::Process::getPageSizeEstimate());
  return *once;
}

void* find_in_process(const char* name) {
  if (void* address = dlsym(RTLD_DEFAULT, name)) return address;
  // libm and libgcc may be loaded for some library only; torch is not in the global scope.
  for (const char* library : {"libm.so.6", "libgcc_s.so.1", "libtorch_cpu.so"})
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
      void* address = dlsym(handle, name);
      dlclose(handle);
      if (address) return address;
    }
  return nullptr;
}

class Code : public LoadedObject {
 public:
  Code(void* symbol, JITLinkMemoryManager::FinalizedAlloc allocation)
      : symbol_(symbol), allocation_(std::move(allocation)) {}
  ~Code() override { llvm::consumeError(memory_manager().deallocate(std::move(allocation_))); }
  void* symbol() const override { return symbol_; }

 private:
  void* symbol_;
  JITLinkMemoryManager::FinalizedAlloc allocation_;
};

struct LinkResult {
  std::string wanted;
  void* symbol = nullptr;
  JITLinkMemoryManager::FinalizedAlloc allocation;
  std::string error;
};

// Everything runs on the calling thread: link() has returned a result when it returns.
class Context : public JITLinkContext {
 public:
  explicit Context(LinkResult& result) : JITLinkContext(nullptr), result_(result) {}

  JITLinkMemoryManager& getMemoryManager() override { return memory_manager(); }

  void notifyFailed(llvm::Error error) override { result_.error = llvm::toString(std::move(error)); }

  void lookup(const LookupMap& symbols, std::unique_ptr<JITLinkAsyncLookupContinuation> next) override {
    AsyncLookupResult found;
    for (const auto& [name, flags] : symbols) {
      void* address = find_in_process(name.str().c_str());
      if (!address && flags == SymbolLookupFlags::RequiredSymbol)
        return next->run(llvm::createStringError("undefined symbol " + name.str()));
      found[name] = ExecutorSymbolDef(ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported);
    }
    next->run(std::move(found));
  }

  llvm::Error notifyResolved(LinkGraph& graph) override {
    for (Symbol* symbol : graph.defined_symbols())
      if (symbol->hasName() && symbol->getName() == result_.wanted)
        result_.symbol = symbol->getAddress().toPtr<void*>();
    if (!result_.symbol) return llvm::createStringError("the kernel does not define " + result_.wanted);
    return llvm::Error::success();
  }

  void notifyFinalized(JITLinkMemoryManager::FinalizedAlloc allocation) override {
    result_.allocation = std::move(allocation);
  }

 private:
  LinkResult& result_;
};

}  // namespace

std::shared_ptr<LoadedObject> load_object(std::string_view object, const std::string& symbol) {
  LinkResult result;
  result.wanted = symbol;
  auto graph = createLinkGraphFromObject(llvm::MemoryBufferRef({object.data(), object.size()}, symbol));
  if (!graph) throw InternalError("cannot read the compiled kernel: " + llvm::toString(graph.takeError()));
  link(std::move(*graph), std::make_unique<Context>(result));
  if (!result.error.empty()) throw InternalError("cannot link a kernel: " + result.error);
  return std::make_shared<Code>(result.symbol, std::move(result.allocation));
}

}  // namespace oxy::backend::cpu
