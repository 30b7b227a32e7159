#include "eval/externals/variables.h"

#include "eval/externals/admission.h"
#include "eval/externals/effects.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::kNoSource;

SourceId unread_on_stack(const Frame& frame, size_t index) {
  return index < frame.unread_stack.size() ? frame.unread_stack[index] : kNoSource;
}

Ref& local(Interpreter& interpreter, Frame& frame, int32_t index) {
  const auto i = static_cast<size_t>(index);
  if (!frame.unread.empty() && frame.unread[i] != guards::kNoSource) {
    const SourceId source = std::exchange(frame.unread[i], guards::kNoSource);
    if (frame.locals[i])
      frame.locals[i] = admit(interpreter, frame.locals[i].get(), source);
    else
      interpreter.guards().require(source, guards::CheckKind::Unbound, nullptr);
  }
  return frame.locals[i];
}

void drop(Interpreter& interpreter, const Frame& frame, PyObject* object, SourceId unread) {
  // CPython's own frame holds the object until the segment has ended, so its finalizer would run late.
  if (&frame != interpreter.outermost) return;
  const auto given = interpreter.externals.external_of.find(object);
  if (object &&
      guards::end_is_seen(given == interpreter.externals.external_of.end() ? object : given->second))
    interpreter.stop("drops an object whose end can be seen");
  const SourceId source =
      unread == guards::kNoSource && object ? interpreter.externals.source_of(object) : unread;
  if (source != guards::kNoSource)
    interpreter.guards().require(source, guards::CheckKind::Unfinalized, nullptr);
}

void overwrite_local(Interpreter& interpreter, Frame& frame, int32_t index, Ref value) {
  const auto i = static_cast<size_t>(index);
  drop(interpreter, frame, frame.locals[i].get(), frame.unread.empty() ? guards::kNoSource : frame.unread[i]);
  if (!frame.unread.empty()) frame.unread[i] = guards::kNoSource;
  frame.locals[i] = std::move(value);
}

Ref read_cell(Interpreter& interpreter, PyObject* cell) {
  PyObject* const contents = PyCell_GET(cell);
  const SourceId source = interpreter.externals.source_of(cell);
  if (source == guards::kNoSource) return Ref::borrow(contents);
  if (auto written = attribute_effect(interpreter, cell, interned(kCellContents).get())) return *written;
  const SourceId place = interpreter.guards().derived(guards::SourceKind::CellContents, source);
  if (contents) return admit(interpreter, contents, place);
  interpreter.guards().require(place, CheckKind::Unbound, nullptr);
  return {};
}

}  // namespace oxy::eval
