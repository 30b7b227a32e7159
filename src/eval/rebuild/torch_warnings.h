// Warnings of torch functions that are called with what stands for tensors. The program is to get them at
// every call, from its own line: an operation that warns each time ends the region. One that warns once in a
// process has done so while it was captured, and is reported then.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

using cpy::Ref;

// While one lives, the warnings of this thread are kept instead of shown, whatever the program's filters say.
class CollectedWarnings {
 public:
  CollectedWarnings();
  ~CollectedWarnings();
  CollectedWarnings(const CollectedWarnings&) = delete;
  CollectedWarnings& operator=(const CollectedWarnings&) = delete;
  const std::vector<Ref>& messages() const { return messages_; }  // warnings.WarningMessage

 private:
  std::vector<Ref> messages_;
  std::vector<Ref>* outer_;
};

// Where a warning is shown as coming from.
struct WarningPlace {
  Ref filename;
  Ref globals;  // of the module; null: not known
  int line = 0;
};

// What the captures of one region have been warned of. An operation that is met for the first time in the
// process warns once or each time: a second capture tells.
class PendingWarnings {
 public:
  // True: the operation warns each time.
  bool note(PyObject* message, PyObject* category, WarningPlace place);
  bool captures_again();  // has met something new since it was asked last
  // Shows what was warned of once. False: a Python error is set, to which a filter of the program's turns it.
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
