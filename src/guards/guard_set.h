// Guards: the conditions under which a capture is valid for a call.
//
// A GuardSet is built during a capture. Every read of an external object becomes a source node, and every
// property that the capture relies on becomes a check on a node. Parents come before their children, so that
// checking is one pass over a flat array. The fast path checks what hangs below objects that never change
// (the compiled module, globals) by versions and pointers alone. Only what depends on the call's arguments is
// read anew.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpy/dict.h"
#include "cpy/ref.h"
#include "guards/source.h"
#include "guards/symbol_guards.h"
#include "guards/tensor_guard.h"

namespace oxy::guards {

enum class CheckKind : uint8_t {
  Identity,    // the value is `object`
  Type,        // type(value) is `object`
  Equal,       // the value has the type of `object` and equals it, as same_constant() compares them
  Length,      // len of a list, tuple, dict or set is `number`
  DictKeys,    // the keys, in order, are those of the tuple `object`
  Absent,      // the dict has no key `object`
  SetEqual,    // the value is a set of constants, and equals the frozenset `object`
  SetOrder,    // iterating over the set gives the items of the tuple `object` (constants) in that order; if
               // `number` is not 0, the set's table also has that mask and no entries of removed items
  DequeLimit,  // the maxlen of a deque is `number` (-1: None)
  Tensor,      // the tensor fits tensor guard `number`
  Definition,  // a bound method of C code whose PyMethodDef lies at address `number`
  Same,        // the same object as that of source `number`, which was added before this one
  Unbound,     // the location holds nothing
  Present,     // the location holds something
  NoGradientHooks,  // the tensor has no hooks that see its gradient
  FitsInt64,        // the int fits into int64
  FitsType,         // the float does not overflow the floating-point type `number`, a c10::ScalarType
  Finite,           // the float is no infinity and no NaN
  Unfinalized,      // the location holds nothing, or an object for which end_is_seen() is false
  Elements,         // the tensor, which has a Tensor check before, has the elements of the tensor `object`
};

struct Check;
using CheckId = Id<Check>;
using TensorGuardId = Id<TensorGuard>;

struct Check {
  SourceId source;
  CheckKind kind = CheckKind::Identity;
  cpy::Ref object;
  int64_t number = 0;
  std::string asked_at = {};  // the user's line that needs it; empty: the object's admission
};

// A constant that was another one at a later call.
struct ChangedConstant {
  std::string place;           // as GuardSet::describe() names it
  bool is_number = false;      // it was an int and is one, or it was a float and is one
  bool is_calculated = false;  // of numbers that vary, and the program asks for the number itself
};

// A size or stride of a tensor that was another one at a later call.
struct ChangedSize {
  std::string place;  // of the tensor, as GuardSet::describe() names it
  IntegerPart part = IntegerPart::Size;
  int32_t dimension = -1;
  friend auto operator<=>(const ChangedSize&, const ChangedSize&) = default;
};

// Why guards fail that held at the capture.
struct Changes {
  // In order, up to the first guard that fails for another reason.
  std::vector<ChangedConstant> constants;
  std::vector<ChangedSize> sizes;
  bool elements = false;      // that other guard is an Elements check
  bool only_numbers = false;  // nothing but sizes, strides and numbers differs, and relations between symbols
};

// Whether the program may notice the end of the object: it has a finalizer, weak references (those to
// parameters do not count), or holds an object with a finalizer.
bool end_is_seen(PyObject* object);

class GuardSet {
 public:
  // --- Sources. The same read asked for twice gives the same id. Keys are held.

  // `index`: in the roots of a call. `label`: its name for messages.
  SourceId root(int32_t index, const std::string& label);
  SourceId pinned(PyObject* object);  // an object that the guards hold themselves
  SourceId instance_dict(SourceId base);
  SourceId dict_item(SourceId base, PyObject* key);
  SourceId list_item(SourceId base, int32_t index);
  SourceId tuple_item(SourceId base, int32_t index);
  // A read of another kind. `key` and `index` as the SourceKind says.
  SourceId derived(SourceKind kind, SourceId base, PyObject* key = nullptr, int32_t index = -1);

  // See SourceKind::Calculated. `other`, or both, may be kNoSource.
  SourceId calculated(PyObject* function, SourceId base, SourceId other);

  // --- Checks. A check that is there already is not added again.

  // `object` and `number` mean what the CheckKind says. `object` is held. `asked_at`: the user's line that
  // needs it, for messages.
  void require(SourceId source, CheckKind kind, PyObject* object, int64_t number = 0,
               std::string asked_at = {});
  // The Python class `type` and all properties of a TensorGuard.
  void require_tensor(SourceId source, const at::Tensor& tensor, PyTypeObject* type);
  // The tensor guard of a source, to say which sizes are symbols. Precondition: require_tensor() of this
  // source. Valid until the next one is added.
  TensorGuard& tensor_guard(SourceId source);
  // The storage offset of the tensor, too. Precondition: require_tensor() of this source and tensor.
  void require_storage_offset(SourceId source, const at::Tensor& tensor);
  // The type's method resolution order stays what it is.
  void require_resolution_order(PyTypeObject* type);
  // Looking `name` up in the type's method resolution order gives `found` (null: nothing).
  void require_type_lookup(PyTypeObject* type, PyObject* name, PyObject* found);

  // Relations between symbols, and where their values are read: from sources that other checks have made sure
  // of. Called at most once.
  void require_symbols(SymbolGuards symbols) { symbols_ = std::move(symbols); }
  // The values of the symbols, by id, as check() has read them. Empty: there are none.
  std::span<const int64_t> symbol_values() const { return symbols_.values(); }
  std::vector<std::optional<int64_t>> known_symbol_values() const { return symbols_.known_values(); }
  std::span<const DescribedSymbol> symbols() const { return symbols_.symbols(); }

  // The objects at these sources are pairwise different. They have to be different now.
  void require_distinct(std::vector<SourceId> sources);

  // Declares a root stable: its object is the same at every call, which is checked elsewhere. Everything that
  // hangs below it is then checked by the fast path without reading it.
  void mark_stable(SourceId root);
  // Declares that a number below a stable root is another one at every call. To be called before its first
  // check.
  void mark_varying(SourceId source);
  bool is_stable(SourceId source) const { return nodes_[source].stable; }
  SourceKind kind_of(SourceId source) const { return nodes_[source].source.kind; }
  // A parameter or buffer of a module that is the same at every call.
  bool is_module_state(SourceId source) const;

  // Ends the building and prepares the fast path. `roots`: those of the captured call.
  void freeze(std::span<PyObject* const> roots);

  // Whether all guards hold for these roots (borrowed). If so, value() gives the object at each source:
  // borrowed, and valid until Python code runs again. Runs no Python code. Needs the GIL.
  bool check(std::span<PyObject* const> roots);
  PyObject* value(SourceId source) const { return nodes_[source].value; }

  Changes changes(std::span<PyObject* const> roots);
  // The first guard that fails: "L['self'].training: was True, is False". Empty if all hold.
  std::string explain_failure(std::span<PyObject* const> roots);
  // The place of a source in the program, as Python text. It is the same in every capture of a site, so that
  // it can be a key.
  std::string describe(SourceId source) const;
  // A line for each guard, for logs and explain().
  std::vector<std::string> describe_all() const;
  size_t size() const { return checks_.size() + type_lookups_.size() + symbols_.size(); }
  // For tp_traverse: visits all references that the guards own.
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Node {
    Source source;
    PyObject* value = nullptr;  // borrowed: the last value read
    cpy::Ref held;              // the value, where it is calculated or for the fast path to hold
    bool stable = false;        // read from what is the same at every call
    bool is_same = false;       // for the fast path: no other object can lie at its address
    std::vector<CheckId> checks;
  };
  struct TypeLookup {
    cpy::Ref type;
    unsigned int version = 0;
    std::vector<std::pair<cpy::Ref, cpy::Ref>> names;
    cpy::Ref order;  // the method resolution order, if it counts
  };
  // In the order in which the checks of one depth are made. The depth of a node is the number of reads that
  // lead to it: what a check looks at is alive as long as the checks before it hold.
  // ReadPointer is for reads that do more than to follow a pointer.
  enum class FastKind : uint8_t {
    Pointer,
    ReadPointer,
    TypeIs,
    Tensor,
    Length,
    NoGradientHooks,
    DictVersion
  };
  struct FastCheck {
    FastKind kind;
    SourceId node;
    PyObject* object;  // borrowed
    uint64_t expected;
    const void* place = nullptr;  // of a Pointer or TypeIs
  };
  // A pointer of an object that is alive when it is read.
  struct KnownPointer {
    const void* place;
    uint64_t expected;
  };
  // Checks of one kind and depth, side by side: a processor predicts such loops well.
  struct FastRun {
    FastKind kind;
    size_t begin, end;  // in fast_; those of dict versions in fast_dicts_, of pointers in fast_pointers_
  };

  struct DistinctGroup {
    std::vector<SourceId> sources;
    // For the fast path: the stable members' objects, sorted, and the other members.
    std::vector<PyObject*> stable;
    std::vector<SourceId> varying;
  };

  SourceId find_or_add(Source source);
  bool all_distinct(const DistinctGroup& group) const;
  bool varying_distinct(const DistinctGroup& group) const;
  bool holds(const Check& check, PyObject* value) const;
  bool check_node(SourceId id, std::span<PyObject* const> roots);
  bool check_all(std::span<PyObject* const> roots);
  bool check_symbols();
  bool note_sizes(SourceId source, const TensorGuard& guard, const at::Tensor& tensor,
                  std::vector<ChangedSize>& changed) const;
  // The first source that fails, in order, and its check; null: the source can no longer be read.
  struct Failure {
    SourceId source;
    const Check* check;
  };
  std::optional<Failure> first_failure(std::span<PyObject* const> roots);
  bool check_fast();
  bool check_dicts(std::span<cpy::KnownDict> dicts);
  bool recheck_dict(cpy::KnownDict& known);
  void watch(const cpy::KnownDict& known);
  TypeLookup& lookup_of(PyTypeObject* type);
  bool check_type_lookup(TypeLookup& lookup);
  void build_fast();
  std::vector<FastCheck> find_fast_checks();
  void add_type(SourceId id, std::vector<FastCheck>& found) const;
  void add_read(SourceId id, std::vector<FastCheck>& found) const;
  static bool are_known(std::span<const KnownPointer> pointers);
  bool check_tensors(std::span<const FastCheck> checks) const;

  // What tells sources apart; the node holds the key.
  struct Read {
    SourceKind kind;
    SourceId base;
    int32_t index;
    PyObject* key;
    SourceId other;
    friend bool operator==(const Read&, const Read&) = default;
  };
  struct ReadHash {
    size_t operator()(const Read& read) const;
  };

  std::unordered_map<Read, SourceId, ReadHash> by_read_;
  IdVector<SourceId, Node> nodes_;
  std::vector<SourceId> roots_;
  IdVector<CheckId, Check> checks_;
  IdVector<TensorGuardId, TensorGuard> tensors_;
  std::vector<TypeLookup> type_lookups_;
  std::vector<DistinctGroup> distinct_;
  SymbolGuards symbols_;
  std::vector<FastCheck> fast_;
  std::vector<cpy::KnownDict> fast_dicts_;
  // Whether Python tells of each change of these, and what cpy::watched_changes() was when they were checked.
  bool are_dicts_watched_ = false;
  uint64_t known_changes_ = 0;
  std::vector<KnownPointer> fast_pointers_;
  std::vector<FastRun> fast_runs_;
  std::vector<SourceId> varying_;
  IdVector<SourceId, std::vector<SourceId>> dict_children_;
  bool fast_valid_ = false;
};

}  // namespace oxy::guards
