"""What errors of Python's own say and show: their words, causes, contexts and tracebacks, captured or not."""

import collections
import functools
import operator

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program


def ones():
    return torch.ones(2)


@program()
def test_the_text_of_exceptions(compile):
    @compile
    def f(error, x):
        return str(error), repr(error), x + 1

    return [f(error, ones()) for error in (ValueError("one"), ValueError("two"), KeyError("k"), ValueError("one"))]


@program()
def test_exceptions_with_more_than_arguments(compile):
    @compile
    def f(x):
        error = ImportError("text", name="module")
        other = ValueError("v")
        other.__cause__ = error
        oxyfuel.graph_break()
        return error.msg, error.name, type(other.__cause__), ValueError(x), x + 1

    return [f(ones()) for _ in range(2)]


@program()
def test_deletions_of_what_is_not_there(compile):
    class Slots:
        __slots__ = ("value",)

    class Plain:
        pass

    @compile
    def attribute(thing):
        del thing.value
        return "gone"

    @compile
    def variable(x):
        for _ in range(2):
            del x
        return "gone"

    slots, plain = Slots(), Plain()
    slots.value, plain.value = 1, 2
    return [outcome(attribute, slots) for _ in range(3)] + [outcome(attribute, plain) for _ in range(3)] + [outcome(variable, 1), outcome(variable, 2)]


@program()
def test_words_of_type_errors(compile):
    class Odd:
        def __add__(self, other):
            return NotImplemented

        def __iter__(self):
            return 5

        def __enter__(self):
            return self

    @compile
    def f(number):
        texts = []
        for action in (lambda: Odd() + 1, lambda: iter(Odd()), lambda: functools.reduce(max, []), lambda: operator.add(Odd(), Odd())):
            try:
                action()
            except TypeError as error:
                texts.append(str(error))
        try:
            with Odd():
                pass
        except TypeError as error:
            texts.append(str(error))
        return texts, number + 1

    return f(1), f(2)


@program()
def test_methods_of_dicts_given_too_many_arguments(compile):
    @compile
    def f(d):
        found = []
        for arguments in ((), ("a",), ("a", 1), ("a", 1, 2)):
            try:
                found.append(d.get(*arguments))
            except TypeError as error:
                found.append(str(error))
        return found

    return f({"a": 5}), f({"b": 5})


@program()
def test_tracebacks_of_what_is_caught(compile):
    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            self.seen = traceback is not None, kind
            return True

    @compile
    def f(x):
        def g():
            raise ValueError(x.shape[0])

        with Manager() as manager:
            g()
        try:
            g()
        except ValueError as error:
            return manager.seen, error.__traceback__ is None, x + 1

    @compile
    def depth(x):
        def g():
            raise ValueError

        try:
            g()
        except ValueError as error:
            found, count = error.__traceback__, 0
            while found is not None:
                found, count = found.tb_next, count + 1
            return count, x + 1

    return f(ones()), f(ones()), depth(ones())[0]


@program()
def test_causes_that_are_none(compile):
    class Wrong(Exception):
        def __new__(cls):
            return 5

    @compile
    def f(kind, cause):
        def g():
            if cause is None:
                raise kind
            raise kind from cause

        try:
            g()
        except Exception as error:
            return type(error), str(error), type(error.__cause__)

    return f(IndexError, 5), f(IndexError, KeyError), f(IndexError, None), f(Wrong, None), f(IndexError, "text")


@program()
def test_unbound_cells(compile):
    @compile
    def f(inner_first):
        def outer():
            if inner_first:
                return inner()
            return late

        def inner():
            return late

        if inner_first is None:
            late = 1
        return outer()

    @compile
    def own():
        def g():
            return late

        seen = late
        late = 1
        return g, seen

    return [outcome(f, False), outcome(f, True), outcome(own)]


@program()
def test_errors_of_names_say_which(compile):
    class Answers:
        def __getattr__(self, name):
            raise AttributeError("no " + name)

    class Plain:
        pass

    @compile
    def f(x):
        seen = []

        def look(action):
            try:
                action()
            except (NameError, AttributeError) as error:
                seen.append((str(error), error.name, type(getattr(error, "obj", None)).__name__))

        look(lambda: not_there)  # noqa: F821
        look(lambda: Answers().first)
        look(lambda: Plain().second)
        look(lambda: getattr(5, "third"))
        look(lambda: x.fourth)
        return seen, x + 1

    return f(ones())[0]


@program()
def test_attributes_of_builtin_classes_cannot_be_set(compile):
    @compile
    def f(x):
        object.__setattr__(str, "made_up", x)

    return outcome(f, 1), hasattr(str, "made_up")


@program()
def test_super_without_a_first_argument(compile):
    class Base:
        def name(self):
            return "base"

    class Derived(Base):
        def run(self, case):
            def none():
                return super()

            def deleted(x):
                del x
                return super()

            def of(x):
                return super().name()

            def of_shared(x):
                return super().name(), lambda: x

            return {"none": none, "deleted": lambda: deleted(self), "of": lambda: of(self), "shared": lambda: of_shared(self)[0],
                    "cell": lambda: of((lambda: case).__closure__[0])}[case]()

    @compile
    def f(case):
        try:
            return Derived().run(case)
        except (RuntimeError, TypeError) as error:
            return type(error), str(error)

    return [f(case) for case in ("none", "deleted", "of", "shared", "cell")]


@program()
def test_what_a_stopped_generator_was_stopped_by(compile):
    @compile
    def f(x):
        def numbers():
            yield 1
            raise StopIteration("early")

        try:
            list(numbers())
        except RuntimeError as error:
            return str(error), type(error.__cause__), error.__cause__ is error.__context__, x + 1

    return f(ones())


MISSING = {
    "tuple": (1, 2), "none": None, "empty": (), "nested": ((1,),), "text": "k", "number": 3,
}


@pytest.mark.parametrize("key", MISSING)
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict, lambda: collections.defaultdict(None), set])
@program()
def test_keys_that_are_missing(compile, kind, key):
    def remove(container):
        container.remove(MISSING[key])

    def delete(container):
        del container[MISSING[key]]

    actions = [remove] if kind is set else [lambda c: c[MISSING[key]], delete, lambda c: c.pop(MISSING[key])]

    @compile
    def f(x, container):
        found = []
        for action in actions:
            for each in (container, kind()):
                try:
                    action(each)
                except KeyError as error:
                    found.append((error.args, str(error)))
        return x + 1, found

    return f(ones(), kind()), f(ones(), kind())


@program()
def test_what_is_unpacked_and_has_no_getter(compile):
    class Written:
        value = property(None, lambda self, value: None)

    def texts(actions):
        for action in actions:
            try:
                action()
            except (TypeError, AttributeError) as error:
                yield str(error)

    @compile
    def f(x, written):
        return x + 1, list(texts([lambda: [*5], lambda: [*None], lambda: written.value, lambda: Written().value, lambda: [*x[0]]]))

    return f(ones(), Written()), f(ones(), Written())


@program()
def test_super_objects_themselves(compile):
    class Base:
        pass

    class Derived(Base):
        def look(self):
            return super().__class__, hasattr(super(), "__self__"), super().__thisclass__, hasattr(super(), "nothing")

    f = compile(lambda x, d: (x + 1, d.look(), Derived().look()))
    return f(ones(), Derived()), f(ones(), Derived())


class OneSlot:
    __slots__ = ("value",)
    name = 3

    def method(self): ...


@pytest.mark.parametrize("name", ["name", "method", "other", "value"])
@program()
def test_attributes_that_cannot_be_set(compile, name):
    @compile
    def f(x, given):
        texts = []
        for holder in (given, OneSlot()):
            for act in (lambda: setattr(holder, name, 1), lambda: delattr(holder, name), lambda: delattr(holder, name)):
                try:
                    act()
                except AttributeError as error:
                    texts.append(str(error))
        return texts, x + 1

    return f(torch.ones(2), OneSlot())
