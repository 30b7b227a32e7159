// Guards: what must still hold for a captured segment to be valid.
//
// A GuardSet is built while capturing: every read of something that existed before the call becomes a source
// node, every property that capture relied on becomes a check on it. Nodes are created parents first, so that
// a check is one pass over a flat array. Values under roots that never change (the compiled module, globals)
// are checked by versions and pointers alone while nothing moved; only what differs from call to call is read
// anew.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "cpy/ref.h"
#include "guards/source.h"
#include "guards/tensor_guard.h"

namespace oxy::guards {

enum class CheckKind : uint8_t {
  Identity,  // the value is `object`
  Type,      // type(value) is `object`
  Equal,     // value has the type of `object` and equals it (a constant or value of constants.h; -0.0 by its
             // bits), or is `object` if that is a NaN
  Length,    // len of a list, tuple, dict or set is `number`
  DictKeys,  // the keys, in order, are those of the tuple `object`
  Absent,    // the dict has no key `object`
  SetEqual,  // a set of constants equal to the frozenset `object`
  SetOrder,  // iterating over the set gives the items of the tuple `object`: constants, in that order; if
             // `number` is not 0, its table has that mask and no places of removed items
  DequeLimit,       // the maxlen of a deque is `number` (-1: None)
  Tensor,           // fits tensor guard `number`
  Definition,       // a bound method of C code, of which `number` is the address of the PyMethodDef
  Same,             // is the same object as source `number`, which was added before this one
  Unbound,          // the location holds nothing
  Present,          // the location holds something
  NoGradientHooks,  // the tensor has no hooks that see its gradient
  FitsInt64,        // the int has at most 63 bits and a sign
  FitsFloat,        // the float does not overflow float32
  Unfinalized,      // the location holds nothing, or an object of which end_is_seen() is false
  Elements,         // the tensor, which fits its tensor guard, has the elements of the tensor `object`
};

struct Check;
using CheckId = Id<Check>;
using TensorGuardId = Id<TensorGuard>;

struct Check {
  SourceId source;
  CheckKind kind = CheckKind::Identity;
  cpy::Ref object;
  int64_t number = 0;
};

// A number or a text that is another one.
struct ChangedConstant {
  std::string place;       // as GuardSet::describe() has it
  bool is_number = false;  // it was an int and is one, or it was a float and is one
};

// Why guards fail that held before.
struct Changes {
  std::vector<ChangedConstant> constants;  // in order, up to the first guard that fails for something else
  bool elements = false;                   // which is the elements of a tensor
};

// Whether the program may notice that the object ends.
bool end_is_seen(PyObject* object);

class GuardSet {
 public:
  // Sources. The same read asked for twice gives the same id.
  SourceId root(int32_t index, const std::string& label);
  SourceId pinned(PyObject* object);
  SourceId instance_dict(SourceId base);
  SourceId dict_item(SourceId base, PyObject* key);
  SourceId list_item(SourceId base, int32_t index);
  SourceId tuple_item(SourceId base, int32_t index);
  SourceId derived(SourceKind kind, SourceId base, PyObject* key = nullptr, int32_t index = -1);

  // See SourceKind::Calculated. `other` may be kNoSource, and so may both.
  SourceId calculated(PyObject* function, SourceId base, SourceId other);

  // Checks. A check that is there already is not added again.
  void require(SourceId source, CheckKind kind, PyObject* object, int64_t number = 0);
  void require_tensor(SourceId source, const at::Tensor& tensor, PyTypeObject* type);
  // Where it lies in its storage counts as well. Precondition: require_tensor() of this source and tensor.
  void require_storage_offset(SourceId source, const at::Tensor& tensor);
  // The type's method resolution order stays what it is.
  void require_resolution_order(PyTypeObject* type);
  // Looking `name` up in the type's method resolution order gives `found` (null: nothing).
  void require_type_lookup(PyTypeObject* type, PyObject* name, PyObject* found);

  // The objects that these sources hold are all different ones (sources of objects that differ now).
  void require_distinct(std::vector<SourceId> sources);

  // A root whose object is the same at every call (checked by identity elsewhere): what hangs below it is
  // stable.
  void mark_stable(SourceId root);
  // What hangs below a stable root and yet is another number at every call. Before its first check.
  void mark_varying(SourceId source);
  bool is_stable(SourceId source) const { return nodes_[source].stable; }
  SourceKind kind_of(SourceId source) const { return nodes_[source].source.kind; }
  // A parameter or buffer of a module that is the same at every call.
  bool is_module_state(SourceId source) const;

  // No more additions: prepares the fast path. `roots` are those of the call that was captured.
  void freeze(std::span<PyObject* const> roots);

  // True if all guards hold. Then value() gives what each source holds (borrowed, valid until Python code
  // runs again). Needs the GIL.
  bool check(std::span<PyObject* const> roots);
  PyObject* value(SourceId source) const { return nodes_[source].value; }

  Changes changes(std::span<PyObject* const> roots);
  // The first guard that fails: "L['self'].training: was True, is False". Empty if all hold.
  std::string explain_failure(std::span<PyObject* const> roots);
  std::string describe(SourceId source) const;
  std::vector<std::string> describe_all() const;
  size_t size() const { return checks_.size() + type_lookups_.size(); }
  // Every reference that the guards own, as tp_traverse wants them.
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
  enum class FastKind : uint8_t { DictVersion, ReadPointer, TypeIs, Tensor, Length, NoGradientHooks };
  struct FastCheck {
    FastKind kind;
    SourceId node;
    PyObject* object;  // borrowed; alive as long as the checks before this one hold
    uint64_t expected;
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
  // The first source in order that fails, and its check: null if it can no longer be reached.
  struct Failure {
    SourceId source;
    const Check* check;
  };
  std::optional<Failure> first_failure(std::span<PyObject* const> roots);
  bool check_fast();
  bool recheck_dict(FastCheck& check);
  TypeLookup& lookup_of(PyTypeObject* type);
  bool check_type_lookup(TypeLookup& lookup);
  void build_fast();

  std::map<std::tuple<SourceKind, SourceId, int32_t, PyObject*, SourceId>, SourceId> by_read_;
  IdVector<SourceId, Node> nodes_;
  std::vector<SourceId> roots_;
  IdVector<CheckId, Check> checks_;
  IdVector<TensorGuardId, TensorGuard> tensors_;
  std::vector<TypeLookup> type_lookups_;
  std::vector<DistinctGroup> distinct_;
  std::vector<FastCheck> fast_;
  std::vector<SourceId> varying_;
  IdVector<SourceId, std::vector<SourceId>> dict_children_;
  bool fast_valid_ = false;
};

}  // namespace oxy::guards
