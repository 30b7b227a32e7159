// What is compiled of the frames under one compiled callable, segment by segment.
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

struct CodeData {
  bool wanted = true;
  std::map<std::pair<int32_t, size_t>, Segment> segments;  // by (offset, stack depth)
  bool has_graph = false;
  int calls_without_graph = 0;
};

// All functions with the GIL held. Dropping what was compiled may run Python code, which may come back here.
class SegmentTable {
 public:
  SegmentTable();
  ~SegmentTable();
  SegmentTable(const SegmentTable&) = delete;
  SegmentTable& operator=(const SegmentTable&) = delete;

  // Null if there is nothing. To be held where Python code may run.
  const std::shared_ptr<CodeData>& find(PyCodeObject* code) const;
  // Adds it. It is forgotten when the code ends, which it does not keep alive. Runs no Python code.
  CodeData& add(PyCodeObject* code);
  void forget(PyCodeObject* code);
  void reset();
  // For the garbage collector: what it alone holds.
  int traverse(visitproc visit, void* arg) const;

 private:
  std::unordered_map<PyCodeObject*, std::shared_ptr<CodeData>> codes_;
};

// Forgets what all of them hold.
void reset_segment_tables();

}  // namespace oxy::driver
