// Functions of libraries that are opened, not linked against.
#pragma once

#include <dlfcn.h>

namespace oxy::backend::cuda {

// Sets `function` to the library's function of that name; false, and null: it has none. The type is not
// checked.
template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace oxy::backend::cuda
