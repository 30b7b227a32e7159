// The compiled segments of the frames that run under one compiled callable.
#pragma once

#include <Python.h>

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "driver/calls/capture_session.h"
#include "driver/entries/entry_list.h"

namespace oxy::driver {

struct SegmentEntry {
  std::shared_ptr<Entry> entry;
  PyObject* globals = nullptr;  // borrowed: the entry's guards pin them
};

struct Segment {
  CaptureSite site;
  EntryList<SegmentEntry> entries;
};

using Segments = std::map<std::pair<int32_t, size_t>, Segment>;  // by (offset, stack depth)

// What is known of one code object.
struct CodeData {
  bool wanted = true;  // false: its frames are left to CPython
  // Never null. A run holds it, as an inner run of the same code may drop it.
  std::shared_ptr<Segments> segments = std::make_shared<Segments>();
  bool has_graph = false;       // some capture of it recorded an operator
  int calls_without_graph = 0;  // calls of compiled entries while it had no graph
  int segments_of_call = 0;     // segments that have begun since the last call of it did
};

// By code object. The GIL is held for all functions. Dropping entries may run Python code, which may call
// these functions again.
class SegmentTable {
 public:
  SegmentTable();
  ~SegmentTable();
  SegmentTable(const SegmentTable&) = delete;
  SegmentTable& operator=(const SegmentTable&) = delete;

  // Null if the code is not known. A caller that runs Python code must keep a copy of the pointer.
  const std::shared_ptr<CodeData>& find(PyCodeObject* code) const;
  // Adds the code, which must not be known. It is forgotten when the code object dies; the table does not
  // keep it alive. Runs no Python code.
  CodeData& add(PyCodeObject* code);
  void forget(PyCodeObject* code);
  void reset();  // forgets everything
  // For tp_traverse: visits the references that the table alone owns.
  int traverse(visitproc visit, void* arg) const;

 private:
  std::unordered_map<PyCodeObject*, std::shared_ptr<CodeData>> codes_;
};

// Resets all tables of the process.
void reset_segment_tables();

}  // namespace oxy::driver
