#include "eval/treatment/library_code.h"

#include <filesystem>
#include <string>
#include <vector>

#include "eval/python/objects.h"

namespace oxy::eval {
using cpy::Ref;

namespace {

// The folders of the standard library, PyTorch and NumPy, with a separator at their ends.
const std::vector<std::string>& library_folders() {
  static const auto& folders = *new std::vector<std::string>([] {
    std::vector<std::string> found;
    for (const char* module : {"os", "torch", "numpy", "oxyfuel"})
      if (const std::string_view file = text_of_str(well_known(module, "__file__")); !file.empty())
        found.push_back(std::filesystem::path(file).parent_path().string() + "/");
    return found;
  }());
  return folders;
}

// Code of generated methods of dataclasses and named tuples. It has no file. Code that a program passes to
// exec() has none either.
bool is_generated(PyCodeObject* code) {
  if (text_of_str(code->co_qualname).starts_with("__create_fn__.")) return true;
  const Ref names = Ref::steal(PyCode_GetVarnames(code));
  return text_of_str(code->co_qualname) == "<lambda>" && names && PyTuple_GET_SIZE(names.get()) > 0 &&
         text_of_str(PyTuple_GET_ITEM(names.get(), 0)) == "_cls";
}

}  // namespace

bool is_library_code(PyCodeObject* code) {
  const std::string_view file = text_of_str(code->co_filename);
  if (file.starts_with("<frozen ")) return true;
  if (file == "<string>" && is_generated(code)) return true;
  for (const std::string& folder : library_folders())
    if (file.starts_with(folder) && file.find("-packages/", folder.size()) == std::string_view::npos)
      return true;
  return false;
}

}  // namespace oxy::eval
