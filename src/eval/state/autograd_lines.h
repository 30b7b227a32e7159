// The user's lines that made the nodes of autograd's graph. What a backward pass asks and records belongs to
// them: the program itself is at no line then, or at that of `backward()`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oxy::eval {

class AutogradLines {
 public:
  // An operator is recorded for this line, which must live as long as this. To be called behind the making of
  // its node.
  void note(const std::string& line);
  // "gradient of file.py:12 in f": of the node that the engine evaluates on this thread, or whose results it
  // looks at. Empty: it does neither, or the line is not known.
  std::string current();

 private:
  struct Made {
    uint64_t nodes = 0;  // how many this thread had made when the line was noted
    const std::string* line = nullptr;
  };
  std::vector<Made> made_;  // in increasing order, one for each count
  std::string last_;        // what current() said of the last node
};

}  // namespace oxy::eval
