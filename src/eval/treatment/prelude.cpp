#include "eval/treatment/prelude.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "eval/python/objects.h"
#include "eval/treatment/number_forms.h"
#include "eval/treatment/optimizer_forms.h"
#include "eval/treatment/stream_forms.h"

namespace oxy::eval {

using cpy::Ref;

namespace {

constexpr const char* kFileName = "<oxyfuel prelude>";

// As with the real ones, iterators are made when the function is called, items are taken when asked for:
// `for` does not call __iter__ of what is an iterator (step GetIter), iter() does. What zip_, enumerate_ and
// islice_ are given are iterators.
constexpr const char* kPrelude = R"(
import torch

def map_(function, iterable, *iterables):
    return run_map(function, [iter(each) for each in (iterable, *iterables)])

def run_map(function, iterators):
    while True:
        items = []
        for iterator in iterators:
            for item in iterator:
                break
            else:
                return
            items.append(item)
        try:
            value = function(*items)
        except StopIteration as stop:
            return stop.value
        yield value

def refusal(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)

nothing_to_group = refusal(torch._C._group_tensors_by_device_and_dtype, [[]], False)

def group_tensors(lists, with_indices=False):
    if not lists[0]:
        raise RuntimeError(nothing_to_group)
    groups = {}
    for i, first in enumerate(lists[0]):
        key = first.device, first.dtype
        if key not in groups:
            groups[key] = [[] for each in lists], []
        members, indices = groups[key]
        for each, member in zip(lists, members):
            if each:
                member.append(each[i])
        if with_indices:
            indices.append(i)
    return groups

def filter_(function, iterable, /):
    return run_filter(function, iter(iterable), True)

def filterfalse_(function, iterable, /):
    return run_filter(function, iter(iterable), False)

def run_filter(function, iterator, wanted):
    for item in iterator:
        if bool(item if function is None or function is bool else function(item)) is wanted:
            yield item

def zip_(*iterators, strict=False):
    return run_zip(list(iterators), bool(strict))

def run_zip(iterators, strict):
    while iterators:
        items = []
        for iterator in iterators:
            for item in iterator:
                break
            else:
                if strict:
                    check_lengths(iterators, len(items))
                return
            items.append(item)
        yield tuple(items)

def check_lengths(iterators, count):
    if count:
        others = f"argument {count}" if count == 1 else f"arguments 1-{count}"
        raise ValueError(f"zip() argument {count + 1} is shorter than {others}")
    for count in range(1, len(iterators)):
        for item in iterators[count]:
            others = f"argument {count}" if count == 1 else f"arguments 1-{count}"
            raise ValueError(f"zip() argument {count + 1} is longer than {others}")

def zip_longest_(*iterables, fillvalue=None):
    return run_zip_longest([iter(each) for each in iterables], fillvalue)

def run_zip_longest(iterators, fillvalue):
    active = len(iterators)
    while active:
        items = []
        for i in range(len(iterators)):
            if iterators[i] is None:
                items.append(fillvalue)
                continue
            for item in iterators[i]:
                items.append(item)
                break
            else:
                active -= 1
                if not active:
                    return
                iterators[i] = None
                items.append(fillvalue)
        yield tuple(items)

def enumerate_(iterable, start=0):
    return run_enumerate(iterable, start)

def run_enumerate(iterator, number):
    for item in iterator:
        yield number, item
        number += 1

def islice_(iterable, *bounds):
    bounds = slice(*bounds)
    start = 0 if bounds.start is None else bounds.start
    step = 1 if bounds.step is None else bounds.step
    return run_islice(iterable, start, bounds.stop, step)

def run_islice(iterator, start, stop, step):
    taken, wanted = 0, start
    while stop is None or wanted < stop:
        for item in iterator:
            break
        else:
            return
        if taken == wanted:
            yield item
            wanted += step
        taken += 1
    while taken < stop:
        for item in iterator:
            break
        else:
            return
        taken += 1

def chain_(*iterables):
    return run_chain(iter(iterables))

def chain_from_iterable(iterables, /):
    return run_chain(iter(iterables))

def run_chain(iterables):
    for iterable in iterables:
        for item in iter(iterable):
            yield item

def compress_(data, selectors):
    return run_compress(run_zip([iter(data), iter(selectors)], False))

def run_compress(pairs):
    for item, selected in pairs:
        if selected:
            yield item

def cycle_(iterable, /):
    return run_cycle(iter(iterable))

def run_cycle(iterator):
    saved = []
    for item in iterator:
        saved.append(item)
        yield item
    while saved:
        for item in saved:
            yield item

def starmap_(function, iterable, /):
    return run_starmap(function, iter(iterable))

def run_starmap(function, iterator):
    for items in iterator:
        yield function(*items)

def accumulate_(iterable, func=None, *, initial=None):
    return run_accumulate(iter(iterable), func, initial)

def run_accumulate(iterator, function, total):
    if total is None:
        for total in iterator:
            break
        else:
            return
    yield total
    for item in iterator:
        total = total + item if function is None else function(total, item)
        yield total

def pairwise_(iterable, /):
    return run_pairwise(iter(iterable))

def run_pairwise(iterator):
    for first in iterator:
        break
    else:
        return
    for second in iterator:
        yield first, second
        first = second

def takewhile_(predicate, iterable, /):
    return run_takewhile(predicate, iter(iterable))

def run_takewhile(predicate, iterator):
    for item in iterator:
        if not predicate(item):
            return
        yield item

def dropwhile_(predicate, iterable, /):
    return run_dropwhile(predicate, iter(iterable))

def run_dropwhile(predicate, iterator):
    for item in iterator:
        if not predicate(item):
            yield item
            break
    for item in iterator:
        yield item

def prod(iterable, /, *, start=1):
    for item in iter(iterable):
        start = start * item
    return start

def setitem(a, b, c, /):
    a[b] = c

def delitem(a, b, /):
    del a[b]

def contains(a, b, /):
    return b in a

def not_(a, /):
    return not a

def truth(a, /):
    return bool(a)

def is_(a, b, /):
    return a is b

def is_not(a, b, /):
    return a is not b

def neg(a, /):
    return -a

def pos(a, /):
    return +a

def invert(a, /):
    return ~a

def abs_(a, /):
    return abs(a)

def lshift(a, b, /):
    return a << b

def rshift(a, b, /):
    return a >> b

def iadd(a, b, /):
    a += b
    return a

def isub(a, b, /):
    a -= b
    return a

def imul(a, b, /):
    a *= b
    return a

def imatmul(a, b, /):
    a @= b
    return a

def itruediv(a, b, /):
    a /= b
    return a

def ifloordiv(a, b, /):
    a //= b
    return a

def imod(a, b, /):
    a %= b
    return a

def ipow(a, b, /):
    a **= b
    return a

def iand(a, b, /):
    a &= b
    return a

def ior(a, b, /):
    a |= b
    return a

def ixor(a, b, /):
    a ^= b
    return a

class FunctionContext:
    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.to_save = self.dirty_tensors = self.non_differentiable = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors):
        self.to_save = tensors

    def mark_dirty(self, *args):
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        self.materialize_grads = value

    def save_for_forward(self, *tensors):
        pass

    @property
    def saved_tensors(self):
        return self.to_save

    # What the real one of this release has besides: the call ends here and runs in eager.
    def __getattr__(self, name):
        if name in function_attributes:
            raise NotImplementedError("the context of a torch.autograd.Function is asked for " + name)
        raise AttributeError(name)

function_attributes = tuple(dir(torch.autograd.Function))

def new_function_context(needs_input_grad):
    return FunctionContext(needs_input_grad)

# Each release of PyTorch has attributes of its own there.
record_function_attributes = tuple(vars(torch.autograd.profiler.record_function("")).items())

def record_function_init(self, name, args=None):
    for attribute, value in record_function_attributes:
        setattr(self, attribute, value)
    self.name, self.args, self.run_callbacks_on_exit = name, args, False

def record_function_enter(self):
    self.run_callbacks_on_exit = False
    return self

def record_function_exit(self, exc_type, exc_value, traceback):
    self.run_callbacks_on_exit = True

def ilshift(a, b, /):
    a <<= b
    return a

def irshift(a, b, /):
    a >>= b
    return a
)";

struct Entry {
  const char* module;
  const char* name;      // or "class.method"
  const char* function;  // of the prelude
};

constexpr const char* kProfiler = "torch.autograd.profiler";

constexpr Entry kForms[] = {
    // A profiler shows the kernels of a region, but not the ranges in it. If a region ends inside of a range,
    // the real __exit__ finds nothing to do.
    {kProfiler, "record_function.__init__", "record_function_init"},
    {kProfiler, "record_function.__enter__", "record_function_enter"},
    {kProfiler, "record_function.__exit__", "record_function_exit"},
    {"torch._C", "_group_tensors_by_device_and_dtype", "group_tensors"},
    {"torch.cuda", "StreamContext.__init__", "stream_context_init"},
    {"torch.cuda", "StreamContext.__enter__", "stream_context_enter"},
    {"torch.cuda", "StreamContext.__exit__", "stream_context_exit"},
    {"builtins", "map", "map_"},
    {"builtins", "filter", "filter_"},
    {"itertools", "starmap", "starmap_"},
    {"itertools", "accumulate", "accumulate_"},
    {"itertools", "pairwise", "pairwise_"},
    {"itertools", "takewhile", "takewhile_"},
    {"itertools", "dropwhile", "dropwhile_"},
    {"itertools", "filterfalse", "filterfalse_"},
    {"itertools", "zip_longest", "zip_longest_"},
    {"itertools", "compress", "compress_"},
    {"itertools", "cycle", "cycle_"},
    {"math", "prod", "prod"},
    {"operator", "setitem", "setitem"},
    {"operator", "delitem", "delitem"},
    {"operator", "contains", "contains"},
    {"operator", "not_", "not_"},
    {"operator", "truth", "truth"},
    {"operator", "is_", "is_"},
    {"operator", "is_not", "is_not"},
    {"operator", "neg", "neg"},
    {"operator", "pos", "pos"},
    {"operator", "invert", "invert"},
    {"operator", "inv", "invert"},
    {"operator", "abs", "abs_"},
    {"operator", "lshift", "lshift"},
    {"operator", "rshift", "rshift"},
    {"operator", "iadd", "iadd"},
    {"operator", "isub", "isub"},
    {"operator", "imul", "imul"},
    {"operator", "imatmul", "imatmul"},
    {"operator", "itruediv", "itruediv"},
    {"operator", "ifloordiv", "ifloordiv"},
    {"operator", "imod", "imod"},
    {"operator", "ipow", "ipow"},
    {"operator", "iand", "iand"},
    {"operator", "ior", "ior"},
    {"operator", "ixor", "ixor"},
    {"operator", "ilshift", "ilshift"},
    {"operator", "irshift", "irshift"},
};

Ref find(const Entry& entry) {
  Ref object = Ref::steal(PyImport_ImportModule(entry.module));
  std::string_view rest = entry.name;
  while (object && !rest.empty()) {
    const std::string name(rest.substr(0, rest.find('.')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    object = Ref::steal(PyObject_GetAttrString(object.get(), name.c_str()));
  }
  PyErr_Clear();
  return object;
}

}  // namespace

Ref prelude_function(const char* name) {
  // Never destroyed, as the functions in it.
  static PyObject* module_dict = nullptr;
  cpy::made_once(module_dict, [] {
    Ref dict = Ref::steal(PyDict_New());
    PyDict_SetItemString(dict.get(), "__builtins__", PyEval_GetBuiltins());
    for (const char* text : {kPrelude, kNumberForms, kOptimizerForms, kStreamForms}) {
      Ref code = Ref::steal(Py_CompileString(text, kFileName, Py_file_input));
      Ref result = code ? Ref::steal(PyEval_EvalCode(code.get(), dict.get(), dict.get())) : Ref();
      check(static_cast<bool>(result), "the prelude is no Python");
    }
    return dict.release();
  });
  PyObject* function = PyDict_GetItemString(module_dict, name);
  check(function != nullptr, "a function that the prelude lacks");
  return Ref::borrow(function);
}

bool is_prelude_code(PyCodeObject* code) {
  return PyUnicode_CompareWithASCIIString(code->co_filename, kFileName) == 0;
}

Ref python_form(PyObject* callable) {
  if (!PyCFunction_Check(callable) && !PyFunction_Check(callable) && !PyType_Check(callable)) return {};
  // Not the initialiser of a static: an import may let other threads run, which would wait for it.
  static const std::unordered_map<PyObject*, const char*>* forms = nullptr;
  if (forms == nullptr) {
    auto table = std::make_unique<std::unordered_map<PyObject*, const char*>>();
    for (const Entry& entry : kForms) {
      if (Ref object = find(entry)) table->emplace(object.release(), entry.function);
    }
    if (forms == nullptr) forms = table.release();
  }
  auto it = forms->find(callable);
  return it == forms->end() ? Ref() : prelude_function(it->second);
}

}  // namespace oxy::eval
