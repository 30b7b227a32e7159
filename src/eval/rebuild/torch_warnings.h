// Warnings of torch functions that are called on trace tensors. In eager the user would see them at every
// call, with the line of the call. So an operation that warns each time is a break. An operation that warns
// once in a process has warned during the capture, and its warning is shown then.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

using cpy::Ref;

// While one lives, warnings of this thread are collected and not shown, whatever the program's filters say.
// May be nested: the inner one collects.
class CollectedWarnings {
 public:
  CollectedWarnings();
  ~CollectedWarnings();
  CollectedWarnings(const CollectedWarnings&) = delete;
  CollectedWarnings& operator=(const CollectedWarnings&) = delete;
  const std::vector<Ref>& messages() const { return messages_; }  // of type warnings.WarningMessage

 private:
  std::vector<Ref> messages_;
  std::vector<Ref>* outer_;
};

// The place in the program that a warning names.
struct WarningPlace {
  Ref filename;
  Ref globals;  // of the module; null: not known
  int line = 0;
};

// The warnings that the captures of one region have met. If a warning is new to the process, a second capture
// finds out whether the operation warns each time.
class PendingWarnings {
 public:
  // Notes a warning. True: the operation warns each time.
  bool note(PyObject* message, PyObject* category, WarningPlace place);
  // Whether the region is to be captured again: a new warning was noted since the last question.
  bool captures_again();
  // Shows the warnings of operations that warn once. False: a filter of the program's has turned one into a
  // Python error, which is set.
  bool show();

 private:
  struct Pending {
    std::string key;
    Ref message;
    Ref category;
    WarningPlace place;
  };
  std::vector<Pending> pending_;
  int captures_ = 0;
  bool has_new_ = false;
};

}  // namespace oxy::eval
