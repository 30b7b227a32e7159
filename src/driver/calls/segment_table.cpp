#include "driver/calls/segment_table.h"

#include "cpy/code_extra.h"

namespace oxy::driver {
namespace {

std::set<SegmentTable*>& live_tables() {
  static auto& tables = *new std::set<SegmentTable*>;
  return tables;
}

// Calls the function for each table that is still alive in its turn. Dropping the entries of one may destroy
// others.
template <typename Function>
void for_each_table(const Function& function) {
  const std::set<SegmentTable*> tables = live_tables();
  for (SegmentTable* table : tables)
    if (live_tables().contains(table)) function(*table);
}

// `code` is the address that watch_end() kept with the code object.
void code_ends(void* code) {
  if (code) for_each_table([&](SegmentTable& table) { table.forget(static_cast<PyCodeObject*>(code)); });
}

void watch_end(PyCodeObject* code) {
  static const cpy::CodeExtra extra(&code_ends);
  if (!extra.get(code)) extra.set(code, code);
}

}  // namespace

SegmentTable::SegmentTable() {
  live_tables().insert(this);
}

SegmentTable::~SegmentTable() {
  live_tables().erase(this);
}

const std::shared_ptr<CodeData>& SegmentTable::find(PyCodeObject* code) const {
  static const std::shared_ptr<CodeData> none;
  const auto found = codes_.find(code);
  return found == codes_.end() ? none : found->second;
}

CodeData& SegmentTable::add(PyCodeObject* code) {
  watch_end(code);
  return *codes_.emplace(code, std::make_shared<CodeData>()).first->second;
}

void SegmentTable::forget(PyCodeObject* code) {
  const auto forgotten = codes_.extract(code);
}

void SegmentTable::reset() {
  const auto forgotten = std::exchange(codes_, {});
}

int SegmentTable::traverse(visitproc visit, void* arg) const {
  for (const auto& [code, data] : codes_) {
    if (data.use_count() > 1) continue;  // a call is inside
    for (const auto& [place, segment] : *data->segments)
      for (const SegmentEntry& item : segment.entries) {
        if (item.entry.use_count() > 1) continue;
        if (const int stopped = item.entry->capture().traverse(visit, arg)) return stopped;
      }
  }
  return 0;
}

void reset_segment_tables() {
  for_each_table([](SegmentTable& table) { table.reset(); });
}

}  // namespace oxy::driver
