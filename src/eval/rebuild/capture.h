// What capturing a segment gives: a recording, the guards under which it is valid, and how to rebuild the
// Python values that come out of it.
#pragma once

#include <Python.h>

#include <optional>
#include <string>
#include <vector>

#include "autograd/joint.h"
#include "cpy/ref.h"
#include "eval/rebuild/autocast.h"
#include "eval/rebuild/template.h"
#include "eval/rebuild/torch_program.h"
#include "eval/rebuild/torch_warnings.h"
#include "guards/guard_set.h"
#include "trace/recorder.h"

namespace oxy::eval {

enum class EndKind : uint8_t {
  Return,  // the segment's only result is the frame's return value
  Break,   // results: localsplus, then stack, as they are before the instruction at `offset`
};

enum class EffectKind : uint8_t {
  SetAttribute,     // of a slot or of a descriptor of C code: `key`, `value`
  DeleteAttribute,  // `key`
  SetCell,          // `value`
  SetItem,          // of a dict: `key`, `value`
  DeleteItem,       // of a dict that may lack `key`
  Clear,            // of a dict, set or deque
  Slice,            // of a list: its items from `begin` to `end` are replaced by `items`
  Extend,           // of a list or deque: `items` behind the others
  Window,    // of a deque: `begin` items are removed on the left, `end` on the right; then `items` are put
             // behind the others, `front` before them
  SetPlace,  // of a deque: the item at `begin` becomes the one of `items`; iterators do not see a change
  Touch,     // of a deque: it stays as it is, but iterators see that it was changed
  Add,       // to a set: `key`
  Discard,   // from a set that may lack `key`
};

// What a segment did to an object that existed before it: done to the object itself once the segment has run.
struct Effect {
  EffectKind kind = EffectKind::SetItem;
  Template object;
  Template key;
  Template value;
  std::vector<Template> items;
  std::vector<Template> front;
  Py_ssize_t begin = 0;
  Py_ssize_t end = 0;
};

struct Capture {
  guards::GuardSet guards;
  trace::Recording recording;
  std::optional<autograd::Joint> joint;  // if the outputs' gradients were recorded too
  // If CaptureOptions asks for it; the recording has no backward pass then. Nothing if the region cannot be
  // written so, for the reason in `torch_problem`.
  std::optional<TorchProgram> torch_program;
  std::string torch_problem;
  std::vector<guards::SourceId> inputs;     // the source of each graph input
  std::vector<guards::SourceId> externals;  // objects that the templates refer to
  EndKind end = EndKind::Return;
  int32_t offset = -1;  // code units
  std::vector<Template> results;
  TemplateObjects objects;      // shared by results and effects
  std::vector<Effect> effects;  // replayed in order after the graph has run
  int64_t instructions = 0;
  bool changes_handled = false;  // another exception is being handled at the end than at the start: `handled`
  Template handled;              // (Null: none)
  bool needs_nothing_handled = false;  // valid while the thread handles no exception
  int final_grad_mode = -1;            // 0 or 1 if the segment ends in another grad mode than it began in
  std::optional<AutocastChange> autocast_change;
  std::vector<std::string> inlined;  // code objects, for explain()

  // The references of the guards and the templates, as tp_traverse wants them.
  int traverse(visitproc visit, void* arg) const;
};

}  // namespace oxy::eval
