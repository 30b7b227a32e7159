// Relocatable object bytes to code in this process, by LLVM's JITLink.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace oxy::backend::cpu {

// Code that was mapped for execution; unmapped with this object.
class LoadedObject {
 public:
  virtual ~LoadedObject() = default;
  virtual void* symbol() const = 0;
};

// Links the object and finds `symbol` in it. What the object leaves undefined is looked up in the process
// (libm, libc, libgcc) and in libtorch_cpu if that is loaded (Sleef). InternalError if a symbol is missing.
// Thread-safe.
std::shared_ptr<LoadedObject> load_object(std::string_view object, const std::string& symbol);

}  // namespace oxy::backend::cpu
