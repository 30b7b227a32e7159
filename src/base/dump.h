// Writes the text form of every stage below OXYFUEL_DUMP.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace oxy {

// One compilation's folder, <directory>/<function>_<n>, with n counting the folders of that function from 0.
// A disk that is full or a folder that cannot be written never stops a compilation: it is reported once, as a
// warning.
class Dump {
 public:
  // Into config().dump; disabled if that is empty.
  explicit Dump(std::string_view function);
  Dump(std::string_view function, const std::filesystem::path& directory);

  bool enabled() const { return !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }

  // `stage` names the file: "graph" becomes graph.txt, "kernels/gelu.cpp" keeps its extension and folder.
  void write(std::string_view stage, std::string_view text) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace oxy
