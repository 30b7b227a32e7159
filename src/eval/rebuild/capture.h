// A capture, the result of interpreting a call or a segment: the recorded graph, the guards under which it is
// valid, the templates of the resulting Python values, and the effects on external objects.
#pragma once

#include <Python.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "autograd/recording/joint.h"
#include "cpy/ref.h"
#include "eval/rebuild/autocast.h"
#include "eval/rebuild/default_device.h"
#include "eval/rebuild/template.h"
#include "eval/rebuild/torch_program.h"
#include "eval/rebuild/torch_warnings.h"
#include "guards/guard_set.h"
#include "sym/multiples.h"
#include "trace/recorder/recorder.h"

namespace oxy::eval {

enum class EndKind : uint8_t {
  Return,  // one result: the return value
  Break,   // results: the localsplus, then the stack, as they are before the instruction at `offset`
};

enum class EffectKind : uint8_t {
  SetAttribute,     // `key` = `value`, where the attribute lies in a slot or has a descriptor of C code
  DeleteAttribute,  // `key`, likewise
  SetCell,          // `value`
  SetItem,          // dict: `key` = `value`
  DeleteItem,       // dict: removes `key` if it is there
  Clear,            // dict, set or deque
  Slice,            // list: `items` replace its items from `begin` to `end`
  Extend,           // list or deque: appends `items`
  Window,    // of a deque: `begin` items are removed on the left, `end` on the right; then `items` are put
             // behind the others, `front` before them
  SetPlace,  // of a deque: the item at `begin` becomes the one of `items`; iterators do not see a change
  Touch,     // of a deque: it stays as it is, but iterators see that it was changed
  Add,       // to a set: `key`
  Discard,   // from a set that may lack `key`
};

// One change that the region made to an external object. It is performed on the real `object` after each run.
// The kind says which of the other fields count.
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
  std::optional<autograd::Joint> joint;  // set if an output requires grad: the recording is a joint graph
  // Set if CaptureOptions asks for it. The recording has no backward pass then. Nothing if the region cannot
  // be expressed as one; `torch_problem` has the reason.
  std::optional<TorchProgram> torch_program;
  std::string torch_problem;
  std::vector<guards::SourceId> inputs;  // the source of each graph input
  // What the graph relies on and no guard says, of symbols that are read before it runs.
  std::vector<sym::Condition> checks;
  // Symbols of the graph that guards hold to be multiples of a number.
  std::vector<sym::Multiple> multiples;
  // What an operator took for likely of sizes that depend on data, among the checks of the capture and of its
  // graph.
  struct Likely {
    sym::Condition condition;
    std::string text;  // for the user, with the line that asked: "u0 != 1 (file.py:12 in forward)"
  };
  std::vector<Likely> likely;
  // The program looked at elements of a small integer tensor that were not known.
  bool wants_elements = false;
  // Ints and bools that templates refer to, known once the graph has run.
  std::vector<std::variant<sym::Expr, sym::Condition>> computed;
  std::vector<guards::SourceId> externals;  // the source of each external object that templates refer to
  EndKind end = EndKind::Return;
  int32_t offset = -1;  // of the last instruction, in code units; -1 for a whole call
  std::vector<Template> results;
  TemplateObjects objects;      // shared by results and effects
  std::vector<Effect> effects;  // performed in order after the graph has run
  int64_t instructions = 0;     // how many were interpreted
  // At the end the thread handles another exception than at the start, which is `handled` (Null: none).
  bool changes_handled = false;
  Template handled;
  bool needs_nothing_handled = false;  // valid only while the thread handles no exception
  int final_grad_mode = -1;            // 0 or 1 if the segment ends in another grad mode than it began in
  int final_device = -1;               // its index, if the current device is another one at the end
  std::optional<AutocastChange> autocast_change;  // set if the segment leaves autocast changed
  DefaultDeviceChange default_device_change;
  std::vector<std::string> inlined;  // names of inlined code, for explain()

  // For tp_traverse: visits all references that guards, templates and effects own.
  int traverse(visitproc visit, void* arg) const;
};

}  // namespace oxy::eval
