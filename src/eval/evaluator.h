// The symbolic evaluator: runs a function's bytecode on real Python objects, with trace tensors in place of
// tensors.
//
// Every value is a real PyObject. Three kinds are told apart:
//   - constants and immutable objects of C types: used as they are;
//   - external objects, which existed before the call: registered in `sources_` when they are first read, so
//     that what is read of them is guarded. They are never written: writes go to a shadow (shadow.h) and are
//     done after the segment has run. External tensors never appear: `admit` puts their trace tensor in
//     their place;
//   - fresh objects, made while evaluating: changed for real, and rebuilt from a template at every run
//   (template.h).
// C functions run for real when they are known to read only what they are given; Python functions are
// inlined. Whatever is not understood throws Break: the segment then ends before the instruction of the
// outermost frame that was being evaluated.
#pragma once

#include <Python.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bytecode/decode.h"
#include "bytecode/instruction.h"
#include "cpy/ref.h"
#include "eval/capture.h"
#include "eval/shadow.h"
#include "eval/treatment.h"
#include "guards/guard_set.h"
#include "trace/recorder.h"

namespace oxy::eval {

using cpy::Ref;
using guards::SourceId;

// What a call of functools.lru_cache would have found: `cache` (a dict) has no `key` yet. Both null where
// nothing is missing.
struct MissingAnswer {
  Ref cache;
  Ref key;
};

// Capture cannot go past the current instruction. Shown to the user by explain().
struct Break {
  std::string reason;
  std::string hint;
  MissingAnswer missing;     // why it cannot now, but may at a later call
  bool is_too_long = false;  // the frame is not to be tried again
  // C code was given a varying number (varying_number.h), which it can do nothing with.
  bool is_of_varying_number() const { return reason.find("VaryingNumber") != std::string::npos; }
};

// A Python error is set that is the caller's to raise: a signal handler's, or that of a backend of the
// user's.
struct Interrupted {};

class TemplateBuilder;
class TorchCallLog;

struct Frame {
  Ref code_object;  // PyCodeObject
  std::shared_ptr<const bytecode::Code> code;
  Ref function;  // null for the outermost frame of a segment
  Ref globals;
  Ref builtins;
  std::vector<Ref> locals;  // localsplus; null: unbound
  // Only in the outermost frame: the source of a local that was not read so far (it is not admitted
  // yet, so nothing is guarded of it), kNoSource for the others.
  std::vector<SourceId> unread;
  std::vector<Ref> stack;  // null entries are pushed NULLs
  // The same for the stack, from the bottom; entries beyond its end have been read. An unread entry may be
  // moved, and is admitted before an instruction has it as an operand.
  std::vector<SourceId> unread_stack;
  size_t next = 0;  // index of the next instruction
  size_t current = 0;
  Frame* back = nullptr;
  std::vector<PyObject*> caught;  // exceptions that its handlers were given; kept alive

  PyCodeObject* pycode() const { return reinterpret_cast<PyCodeObject*>(code_object.get()); }
  const bytecode::Instruction& instruction() const { return code->instructions[current]; }
};

SourceId unread_on_stack(const Frame& frame, size_t index);  // kNoSource: it was read, or made meanwhile

enum class Flow : uint8_t { Next, Jumped, Returned, Raised, Yielded };

struct GeneratorData;
using AbandonedGenerators = std::vector<std::unique_ptr<GeneratorData>>;

struct Arguments {
  std::vector<Ref> positional;
  std::vector<std::pair<Ref, Ref>> keywords;  // (name, value) in call order
};

class Evaluator {
 public:
  explicit Evaluator(const CaptureOptions& options);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Captures `callable(*roots[1:], **kwnames...)` whole: root 0 is the callable, the rest its arguments, the
  // last len(kwnames) of them by keyword. Throws Break if it cannot be captured whole.
  std::unique_ptr<Capture> capture_call(std::span<PyObject* const> roots, PyObject* kwnames);
  // Captures from the middle of a frame (roots: its localsplus, then its stack) up to its return or up to a
  // break. `stop_at`: end before the stop_at-th instruction of the frame (a break known from an earlier try);
  // -1: none. On Break, executed_instructions() says how many instructions of the frame came before the
  // breaking one.
  std::unique_ptr<Capture> capture_frame(const FrameRoots& frame, int64_t stop_at);
  int64_t executed_instructions() const { return executed_; }
  // The user's lines at the moment of a Break, innermost first.
  const std::vector<std::string>& stack_lines() const { return break_lines_; }

  // --- externals.cpp: objects that existed before the call
  Ref admit(PyObject* raw, SourceId source);
  SourceId source_of(PyObject* object) const;  // kNoSource for fresh objects and constants
  bool is_external(PyObject* object) const { return source_of(object) != guards::kNoSource; }
  // Whether a later call may be given the same value: a constant, an object from outside, or a tuple of
  // these.
  bool lasts(PyObject* argument) const;
  // An object from outside that is guarded by which one it is. The others are known by what they are made of.
  bool is_known_by_identity(PyObject* object) const;
  // A function that its program makes anew, as it does lambdas, or a bound method of C code: guarded by its
  // code.
  bool is_known_by_code(PyObject* object) const { return known_by_code_.contains(object); }
  // What is done with the function depends on more than its code and what its calls read.
  void require_identity(PyObject* known_by_code);
  // The object that the program sees (of a tensor, the real one), guarded by which one it is. Null where that
  // would be another one at most calls: what the region makes, and arguments other than modules, parameters
  // and what is_identity_object() names.
  PyObject* identified(PyObject* object);
  void compare_identity(PyObject* left, PyObject* right);  // what `is` answers is relied upon
  // Every place that the constant was read from has to hold this very object, not just its value.
  void rely_on_identity(PyObject* constant);
  void admit_presence(SourceId source);  // the location holds something, whatever it is
  Ref pin(PyObject* raw);                // admits an object reached by identity alone
  void guard_type_lookup(PyTypeObject* type, PyObject* name, PyObject* found);
  void guard_resolution_order(PyTypeObject* type);

  // --- external_containers.cpp
  // The copy, items admitted, of an external list, deque, tuple, dict or set that stands for it (guards its
  // length or keys): not to be written except by what writes to the container. Anything else unchanged.
  Ref materialize(PyObject* object);
  Py_ssize_t size_of(PyObject* object);             // of an external list, deque, tuple, dict or set
  int has_key(PyObject* container, PyObject* key);  // an external dict or set; -1: an error is set
  Ref read_entry(PyObject* dict, PyObject* key);    // an external dict; null without an error: no such key
  Ref read_entry_or_make(PyObject* dict, PyObject* key);  // null: an error is set, KeyError if there is none
  // Value null: the entry, if there is one, is removed. Of a set the value says that the key is a member.
  bool write_entry(PyObject* container, PyObject* key, PyObject* value);
  // --- container_methods.cpp: what changes an external container, or looks at it by key
  // Nothing: the method does neither.
  std::optional<Ref> call_container_method(PyObject* self, std::string_view name, Arguments& arguments);

  // --- containers.cpp
  // `object` with every external container below it materialised: safe to hand to C code that looks inside.
  // Throws Break if something below it cannot be shown to C code.
  Ref plain(PyObject* object, const char* what);
  // The same of an object from outside alone: what the region has made is what C code sees.
  Ref known(PyObject* object, const char* what);
  Ref make_slice(PyObject* start, PyObject* stop, PyObject* step);  // null: None
  bool truth(PyObject* object, bool* error);
  Ref get_item(PyObject* object, PyObject* key);
  bool set_item(PyObject* object, PyObject* key, PyObject* value);
  bool delete_item(PyObject* object, PyObject* key);
  int contains(PyObject* container, PyObject* item);  // -1: error set
  Ref get_iterator(PyObject* object);
  // Null without error: exhausted; `value_of_end` gets the value of a StopIteration then, if it raised one.
  // Generators do not: generator_data() has theirs.
  Ref iterate(PyObject* iterator, bool* error, Ref* value_of_end = nullptr);
  Ref deep_copy(PyObject* object, std::unordered_map<PyObject*, Ref>& memo, int depth = 0);  // copies.cpp
  Ref length_of(PyObject* object);  // what the object's `__len__` gives, evaluated
  // What CPython asks of what it makes a list or tuple of. False: exception set.
  bool ask_length_hint(PyObject* iterable);
  bool is_fresh_builtin_container(PyObject* object) const;

  // --- taking_items.cpp: what these return null or false for has set an exception
  using TakeItem = std::function<bool(Ref item)>;  // false: with an exception set, or no more is wanted
  // Gives `take` each item before the next is asked for; those of exact lists and tuples as they are at the
  // start. `asks_length`: for C code that asks ask_length_hint() first.
  bool take_items(PyObject* iterable, const TakeItem& take, bool asks_length = false);
  bool take_rest(PyObject* iterator, const TakeItem& take);
  Ref drain(PyObject* iterable, bool asks_length = false);  // a fresh list of all its items
  // For C code that answers a TypeError of iter() with words of its own, which is a break.
  Ref iterator_or_stop(PyObject* iterable);
  // The same, and a fresh list of all items: what PySequence_Fast() does.
  Ref fast_sequence(PyObject* iterable);
  // Appends the items that `before` names get and, if `after` says how many come behind a starred name, its
  // list and those.
  bool unpack(PyObject* sequence, Py_ssize_t before, std::optional<Py_ssize_t> after,
              std::vector<Ref>* items);
  // --- merging.cpp: adding what is iterated over to a list or deque, set or dict. False: exception set.
  // `on_the_left`: as extendleft() of a deque that the region has made.
  bool extend(PyObject* sequence, PyObject* iterable, bool on_the_left = false);
  bool update_set(PyObject* set, PyObject* iterable, bool adds);
  bool update_dict(PyObject* dict, PyObject* source);
  // Methods of a container made by the region that do such things; of dicts, any. Nothing: another method.
  std::optional<Ref> merge_into(PyObject* self, std::string_view name, const Arguments& arguments);

  // --- operators.cpp
  Ref binary(bytecode::BinaryKind kind, bool in_place, PyObject* left, PyObject* right);
  Ref compare(PyObject* left, PyObject* right, int operation);
  int is_or_equals(PyObject* left, PyObject* right);  // as containers compare items; -1: an exception is set
  Ref unary(bytecode::Op op, PyObject* operand);
  // The special method of a tensor stays that which its class has now.
  void guard_tensor_special(PyObject* object, const char* method);
  // conversion: 0 none, 1 str, 2 repr, 3 ascii.
  Ref convert(PyObject* value, int conversion);
  Ref format(PyObject* value, int conversion, PyObject* spec);
  Ref to_text(PyObject* value, bool repr);

  // --- attributes.cpp, attribute_writes.cpp
  Ref get_attribute(PyObject* object, PyObject* name);
  Ref generic_get_attribute(PyObject* object, PyObject* name);            // object.__getattribute__
  bool set_attribute(PyObject* object, PyObject* name, PyObject* value);  // value null: delete
  bool generic_set_attribute(PyObject* object, PyObject* name, PyObject* value);
  // A special method, looked up on the type: bound, or null without an exception if there is none.
  Ref special_method(PyObject* object, const char* name);
  // True if the type's special method `name` is a Python function (or other non-C object), to be evaluated.
  bool has_python_special(PyObject* object, const char* name);
  // What the special method gives, evaluated. Stops if that is not of the exact type, which CPython refuses
  // or treats in ways of its own.
  Ref call_special(PyObject* object, const char* name, PyTypeObject* type);
  Ref type_lookup(PyTypeObject* type, PyObject* name);  // guarded; null if absent, no exception
  Ref bind_descriptor(PyObject* descriptor, PyObject* object, PyTypeObject* type);
  // Whether what is found on a class (null: nothing) has code of its own for writes to the attribute;
  // guarded, as its class can be given some later.
  bool takes_writes(PyObject* found);
  // What a C descriptor reads of an existing class or function: something that the object holds.
  Ref read_field(PyObject* object, PyObject* descriptor);
  bool overrides_class(PyObject* object);  // its type has a `__class__` of its own
  // What .grad of a tensor is; null if that cannot be said.
  Ref gradient_of(PyObject* tensor);
  bool set_gradient(PyObject* tensor, PyObject* value);
  void require_no_gradient_hooks(PyObject* tensor);  // of a tensor made before the call; stops if it has some
  SourceId instance_dict_source(PyObject* object);
  bool has_entry(PyObject* dict, PyObject* name);          // an external dict, as written so far
  Ref module_attribute(PyObject* object, PyObject* name);  // module_attributes.cpp
  // --- class_attributes.cpp
  Ref class_attribute(PyObject* object, PyObject* name);
  // C code that asks the class for an attribute may run code of its metaclass.
  bool finds_attributes_itself(PyObject* class_object);
  Ref alias_attribute(PyObject* object, PyObject* name);  // of list[int] or int | str
  // --- own_code.cpp
  // C code is to look at an object: stops if that would run code of the program's, now and not at later runs.
  void refuse_own_code(PyObject* object, std::string_view where);
  bool has_own_code(PyObject* object, int depth = 0);  // it, or what it holds
  bool has_own_special(PyObject* object);
  // Stops at a dict or set with its own __iter__: some C code asks for that, some does not.
  void refuse_own_iteration(PyObject* container);
  // --- hashing.cpp
  // True if hashing or comparing the object as a dict key would run Python code of the user's.
  bool hashes_itself(PyObject* object);
  // What C code is to hash in place of `key`: the same, with constants in place of varying numbers. All that
  // it then looks at is guarded. Stops if that runs code of the program's.
  Ref key_of(PyObject* key);
  // What C code is given of an iterable to add its items to a set: sets and dicts themselves, whose tables
  // count for the order that comes of it, of anything else a list. Null: exception set.
  Ref items_for_set(PyObject* iterable);
  // --- sequence_methods.cpp
  // Methods that compare the items of a list, tuple or deque. Nothing: another method.
  std::optional<Ref> search_sequence(PyObject* self, std::string_view name, const Arguments& arguments);
  // A fresh list of the items of one, as list.sort() puts them; `key` and `reverse` may be null. If comparing
  // them raises, in the order that it came to, with the exception set; null if a key function raises.
  Ref sort_items(PyObject* items, PyObject* key, PyObject* reverse);
  Ref sort_in_place(PyObject* list, const Arguments& arguments);  // list.sort()

  // --- calls.cpp
  Ref call(PyObject* callable, Arguments arguments);
  Ref call_positional(PyObject* callable, std::vector<Ref> positional);
  Ref call_python_function(PyObject* function, Arguments arguments);
  void pin_function(PyObject* function);  // guards its code and reaches its closure, unless it is a fresh one
  // Evaluates the function on objects that are admitted only when they are read. `self`: an admitted first
  // argument, or null; the last len(kwnames) of the values are given by keyword.
  Ref call_with_unread(PyObject* function, Ref self, std::span<PyObject* const> values,
                       std::span<const SourceId> sources, PyObject* kwnames);
  // Whether object.__new__ (makes) or object.__init__ take arguments for an object of the type, which they do
  // if the type has its own one of the other alone; raises if not. Source: CPython's Objects/typeobject.c.
  bool object_takes(PyTypeObject* type, bool makes, bool has_arguments);
  Ref call_type(PyTypeObject* type, Arguments arguments);
  Ref make_instance(PyTypeObject* type,
                    Arguments arguments);  // type.__call__: what a metaclass has is passed by
  Ref call_cached(PyObject* callable, Arguments arguments);                        // of functools.lru_cache
  void rely_on(PyObject* argument);                                                // of such a call
  std::optional<Ref> log_nothing(PyObject* function, const Arguments& arguments);  // where it is not enabled
  PyTypeObject* class_seen(PyObject* object);                     // what the program sees as its class
  int instance_of(PyObject* object, PyObject* classes);           // isinstance(); -1: exception set
  int subclass_of(PyObject* type, PyObject* classes);             // issubclass(); -1: exception set
  void require_no_new_registrations();                            // with an abstract class, of any
  Ref call_real(PyObject* callable, const Arguments& arguments);  // arguments as they are, no checks
  Ref call_real_plain(PyObject* callable, const Arguments& arguments);
  Ref call_torch(PyObject* callable, const Arguments& arguments);
  Ref require_grad(PyObject* callable, const Arguments& arguments);
  Ref make_like(PyObject* tensor, Arguments arguments);
  Ref call_c_method(PyObject* bound, PyObject* self, std::string_view name, Arguments arguments);
  Ref call_class_method(PyObject* bound, PyObject* self, std::string_view name, Arguments arguments);
  Ref call_equality(PyObject* bound, PyObject* self, bool inverted, PyObject* other);
  Ref call_value_method(PyObject* bound, PyObject* self, std::string_view name, const Arguments& arguments);
  Ref call_getter(PyObject* getter, PyObject* object);
  Ref call_c_new(PyObject* bound, Arguments arguments);
  // tensor.tolist() of a tensor whose elements are known. Nothing: they are not.
  std::optional<Ref> known_list(PyObject* callable, const Arguments& arguments);
  // torch has warned (warnings.WarningMessage): stops at what warns each time.
  void note_warnings(std::span<const Ref> messages);
  Ref torch_result_or_error(PyObject* callable, const Arguments& arguments);
  // A tuple or frozenset among the constants of a code object: always the same object.
  bool is_code_constant(PyObject* object) const { return code_constants_.contains(object); }
  void note_code_constant(PyObject* constant);
  // --- number_arguments.cpp
  Ref call_method(PyObject* object, const char* name, Arguments arguments);
  // `self.name(*arguments)` with a tensor as the factor that is to be a number. Nothing: it has none.
  std::optional<Ref> call_with_factor(PyObject* self, std::string_view name, const Arguments& arguments);
  Ref call_foreach(std::string_view name, const Arguments& arguments);
  // --- treated_calls.cpp: callables that the user has marked
  Ref call_treated(const Treatment& treatment, PyObject* callable, const Arguments& arguments);
  Ref call_in_graph(PyObject* callable, const Arguments& arguments);
  Ref call_for_constant(PyObject* callable, const Arguments& arguments);

  bool is_fresh_function(PyObject* function) const { return fresh_functions_.contains(function); }
  bool accepts(PyObject* function, const Arguments& arguments);  // whether it can be called with them
  bool bind_arguments(PyObject* function, Arguments arguments, Frame& frame);
  // Null, no error: finished. `sent` null: the pending error is thrown.
  Ref run_generator(PyObject* generator, PyObject* sent, bool* error);
  bool close_generator(PyObject* generator);
  Ref generator_attribute(PyObject* generator, PyObject* name);
  Ref call_generator_method(PyObject* generator, std::string_view name, const Arguments& arguments);

  // --- numpy_scalars.cpp
  // A number of numpy's that is looked at: guarded if it was made before.
  Ref known_scalar(PyObject* scalar);
  // Operators, functions and methods on constants and numbers of numpy's are run. Nothing: other operands.
  std::optional<Ref> with_scalars(std::span<PyObject* const> operands, const std::function<Ref()>& run);
  std::optional<Ref> call_on_scalars(PyObject* callable, const Arguments& arguments);

  // --- varying_number.cpp
  // The constant that a varying number is at this call, guarded; other objects are themselves.
  Ref constant_of(PyObject* object);
  // int or float.
  PyTypeObject* varying_class(PyObject* varying) const;
  SourceId varying_source(PyObject* varying) const;
  // A pure function of one or two numbers, of which some vary. Nothing if it needs the constants.
  std::optional<Ref> calculated(PyObject* function, std::span<PyObject* const> operands);
  std::optional<Ref> varying_arithmetic(bytecode::BinaryKind kind, bool in_place, PyObject* left,
                                        PyObject* right);
  std::optional<Ref> varying_comparison(PyObject* left, PyObject* right, int operation);
  std::optional<Ref> call_on_varying(PyObject* callable, const Arguments& arguments);
  // The arguments with tensors in place of varying numbers, if that is how the method of tensors can take
  // them.
  std::optional<Arguments> tensors_for_varying(PyObject* callable, std::string_view method,
                                               const Arguments& arguments);

  // --- interpreter.cpp
  Ref& local(Frame& frame, int32_t index);  // admits it if it was not read before
  Ref read_cell(PyObject* cell);            // null, no error: it holds nothing
  Flow run(Frame& frame);
  Ref run_to_return(Frame& frame);  // null: exception set

  // What is recorded while one lives has this graph::Location::checkpoint. If `closes_effects` says by what,
  // nothing that existed before may be changed.
  class RecordedAs {
   public:
    RecordedAs(Evaluator& evaluator, int32_t checkpoint, const char* closes_effects = nullptr)
        : evaluator_(evaluator),
          checkpoint_(std::exchange(evaluator.checkpoint_, checkpoint)),
          effects_closed_by_(evaluator.effects_closed_by_) {
      if (!effects_closed_by_) evaluator.effects_closed_by_ = closes_effects;
    }
    ~RecordedAs() {
      evaluator_.checkpoint_ = checkpoint_;
      evaluator_.effects_closed_by_ = effects_closed_by_;
    }
    RecordedAs(const RecordedAs&) = delete;
    RecordedAs& operator=(const RecordedAs&) = delete;

   private:
    Evaluator& evaluator_;
    int32_t checkpoint_;
    const char* effects_closed_by_;
  };
  bool in_checkpoint() const { return checkpoint_ > 0; }
  // What a call of checkpoint() is recorded as: a new one, unless it is inside of another or of a backward
  // pass.
  int32_t checkpoint() { return checkpoint_ == 0 ? ++checkpoints_ : checkpoint_; }

  void keep_function_context(const Ref& context) { function_contexts_.push_back(context); }
  void keep_hooked(const Ref& tensor) { hooked_.push_back(tensor); }
  AutocastCache& autocast_cache() { return autocast_cache_; }
  TorchCallLog* torch_calls() { return torch_calls_.get(); }  // null unless they are asked for
  trace::Recorder& recorder() { return recorder_; }
  guards::GuardSet& guards() { return capture_->guards; }
  Frame* frame() { return frame_; }
  [[noreturn]] void stop(std::string reason, std::string hint = "") const;

  // The program was told that it is being compiled. If it then raises, it may be for that alone: the region
  // is left to eager as a whole, which tells it otherwise.
  void tell_that_it_compiles() { told_that_it_compiles_ = true; }
  bool told_that_it_compiles() const { return told_that_it_compiles_; }

  // What a program sees of the exception being handled, and of those in its context, holds as long as no
  // other was being handled at the start.
  void rely_on_nothing_handled();

  // --- effects.cpp
  void record_attribute_effect(PyObject* object, PyObject* name, PyObject* value);
  // The overlay's value: nullopt if the attribute was not written; a null Ref if it was deleted.
  std::optional<Ref> attribute_effect(PyObject* object, PyObject* name);
  bool has_written() const;
  void record_global_effect(PyObject* globals, PyObject* name, PyObject* value);

 private:
  friend class TemplateBuilder;
  friend class EffectBuilder;
  void require_open_effects() const;
  Flow step(Frame& frame, const bytecode::Instruction& instruction);
  Flow step_call(Frame& frame, const bytecode::Instruction& instruction);
  Flow step_build(Frame& frame, const bytecode::Instruction& instruction);
  Flow step_exception(Frame& frame, const bytecode::Instruction& instruction);
  Flow step_names(Frame& frame, const bytecode::Instruction& instruction);
  Flow step_generator(Frame& frame, const bytecode::Instruction& instruction);
  Flow step_match(Frame& frame, const bytecode::Instruction& instruction);
  Ref throw_into_receiver(GeneratorData& data, Ref* returned);
  // Runs the handlers of generators that died, as CPython closes them. Keeps the pending exception.
  void close_abandoned();
  void refuse_what_tracebacks_hold(const Frame& frame) const;
  Ref read_attribute(PyObject* object, PyObject* name);
  // The exception to raise for what a program gives: an instance, or one made of a class. False: an error is
  // set.
  bool instantiate(Ref& exception);
  bool unwind(Frame& frame);  // finds the handler of the pending exception; false: none in this frame
  void arm_gate(bool armed);
  bool jump(Frame& frame, int32_t target);
  // Loads, stores and drops what was not read so far, without reading it. False: nothing was done.
  bool move_unread(Frame& frame, const bytecode::Instruction& instruction);
  void admit_operands(Frame& frame, const bytecode::Instruction& instruction);
  // The frame lets go of an object. `unread`: where it is, if it was not admitted.
  void drop(const Frame& frame, PyObject* object, SourceId unread = guards::kNoSource);
  void overwrite_local(Frame& frame, int32_t index, Ref value);
  Ref load_global(Frame& frame, PyObject* name);
  void require_own_import(Frame& frame);  // stops if the program has replaced the interpreter's
  struct Result {
    Ref value;
    SourceId unread = guards::kNoSource;
  };
  void finish(const std::vector<Result>& results, EndKind end, int32_t offset);
  std::string line_text(const Frame& frame) const;
  WarningPlace place_of_warning(PyObject* filename, int line) const;
  void guard_identities();
  Shadow* shadow_of(PyObject* object);
  Shadow& shadow(PyObject* object);
  Shadow& known_length(PyObject* object);
  Shadow& whole_dict(PyObject* object);
  Shadow& whole_set(PyObject* object);
  Ref key_at_start(PyObject* key);
  Ref admit_key(PyObject* key);
  Ref own_key(PyObject* key);
  bool had_key(PyObject* container, PyObject* key);
  Ref known_item(PyObject* item) const;
  Ref read_item(PyObject* item);
  void read_items(PyObject* sequence);
  PyObject* added_items(PyObject* object);
  bool append_items(PyObject* object, PyObject* items);
  void empty(PyObject* object);
  std::optional<Ref> change_list(PyObject* self, std::string_view name, Arguments& arguments);
  std::optional<Ref> change_dict(PyObject* self, std::string_view name, Arguments& arguments);
  std::optional<Ref> change_set(PyObject* self, std::string_view name, Arguments& arguments);
  bool assign_slice(PyObject* list, PyObject* slice, PyObject* iterable);
  bool shows_ordered_dict(PyObject* object) const;
  Ref shallow_iterable(PyObject* iterable);  // an external container as its copy
  bool put_pair(PyObject* dict, PyObject* pair, Py_ssize_t place);
  bool put_entry(PyObject* dict, PyObject* key, PyObject* value);
  Ref intersection(PyObject* set, PyObject* iterable);
  std::optional<Ref> merge_into_set(PyObject* self, std::string_view name, const Arguments& arguments);
  Ref take_end(PyObject* dict, PyObject* key, bool last);
  Ref call_on_copy(PyObject* copy, std::string_view name, Arguments arguments);
  void build_effects(TemplateBuilder& templates);
  Template build_item(TemplateBuilder& templates, PyObject* item);
  int32_t location(graph::Graph& graph);
  int32_t input_for(PyObject* trace);

  CaptureOptions options_;
  std::unique_ptr<Capture> capture_;
  AutocastCache autocast_cache_;  // before the recorder, which turns the cache off
  trace::Recorder recorder_;
  std::unique_ptr<TorchCallLog> torch_calls_;
  struct VaryingNumber {
    Ref value;  // at this call
    SourceId source;
  };
  Ref admit_slice(PyObject* slice, SourceId source);
  Ref admit_varying(PyObject* number, SourceId source);
  Ref make_varying(PyObject* number, SourceId source);
  bool can_calculate(const at::Tensor& tensor, PyObject* varying);
  Ref as_tensor(PyObject* varying, at::ScalarType type);
  // A tensor and a varying number, in either order, as two tensors.
  std::optional<std::pair<Ref, Ref>> as_tensors(PyObject* left, PyObject* right);
  std::unordered_map<PyObject*, VaryingNumber> varying_numbers_;  // kept alive by keep_alive_
  std::unordered_map<SourceId, Ref> number_inputs_;  // tensors of the graph: float64 or int64, no dimensions
  int calculations_ = 0;
  Frame* frame_ = nullptr;
  bool told_that_it_compiles_ = false;
  const char* effects_closed_by_ = nullptr;  // what is evaluated now runs later, or once more
  int32_t checkpoint_ = 0;                   // graph::Location::checkpoint of what is recorded
  int32_t checkpoints_ = 0;
  std::vector<Ref> function_contexts_;  // of torch.autograd.Function
  std::vector<Ref> hooked_;             // tensors that the program has registered a hook on
  Frame* outermost_ = nullptr;
  int depth_ = 0;
  std::vector<std::string> break_lines_;
  int64_t executed_ = 0;
  int64_t total_executed_ = 0;
  int64_t stop_at_ = -1;

  const std::set<std::string>* varying_ = nullptr;
  std::unordered_map<PyObject*, SourceId> sources_;
  std::unordered_map<SourceId, Ref> admitted_;
  std::unordered_map<PyObject*, Ref> trace_of_;           // external tensor → its trace tensor
  std::unordered_map<PyObject*, PyObject*> external_of_;  // the other way
  std::unordered_map<PyObject*, Ref> copies_;  // fresh copy made by materialize → external container
  std::vector<Ref> keep_alive_;
  std::unordered_set<PyObject*> raised_;           // exceptions that were caught while evaluating; kept alive
  Ref handled_before_;                             // the exception that was being handled at the start
  Ref handled_after_;                              // and at the end of a segment, if it is another one
  std::unordered_set<PyObject*> fresh_functions_;  // made while evaluating; kept alive
  std::unordered_set<PyObject*> known_by_code_;    // functions and bound methods of C code

  std::unordered_set<PyObject*> shown_;           // containers that plain() is inside of
  std::unordered_set<PyObject*> code_constants_;  // kept alive by their code

  struct UnreadItem {
    SourceId source;
    Ref object;
  };
  std::deque<Shadow> shadows_;
  std::unordered_map<PyObject*, size_t> shadow_index_;
  std::unordered_map<PyObject*, UnreadItem> unread_items_;        // by the placeholder in a copy
  std::unordered_map<PyObject*, Ref> immutable_copies_;           // of external tuples and frozensets
  std::map<std::pair<std::string, int32_t>, int32_t> locations_;  // by text and checkpoint
  // The generators that were made, while they live.
  std::vector<std::pair<std::weak_ptr<void>, PyObject*>> generators_;
  std::vector<PyObject*> fresh_dicts_;  // that the program has looked at, of objects it made; kept alive
  std::shared_ptr<AbandonedGenerators> abandoned_;
};

}  // namespace oxy::eval
