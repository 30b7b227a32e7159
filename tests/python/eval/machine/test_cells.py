"""Variables that functions share: who reads and writes them, also where a frame of its own begins."""

import types

from capture_samples import x23
from eager_comparison import program


def makes_children(tag):
    class Base:
        def __init__(self, number):
            self.number = number

        def name(self):
            return "base"

    class Parent(Base):
        def name(self):
            return tag

    class Child(Parent):
        def __init__(self, number):
            super().__init__(number)
            print(end="")
            self.items = [self.number + i for i in range(2)] + [(lambda: self.number)()]

        def name(self):
            print(end="")
            return super().name(), (lambda: self)() is self

    return Child


@program()
def test_super_where_inner_functions_share_self(compile):
    @compile
    def f(x, cls):
        print(end="")
        child = cls(3)
        return child.number, child.items, child.name(), x + 1

    first, second = makes_children("first"), makes_children("second")
    return [f(x23(), cls) for cls in (first, second, first, second)]


@program()
def test_cells_that_functions_call_otherwise(compile):
    @compile
    def f(x, n):
        value = n

        def count():
            nonlocal value
            value += 1
            return value

        def make():
            other = 0

            def read():
                return other

            return types.FunctionType(read.__code__, globals(), "read", None, count.__closure__)

        read = make()
        print(end="")
        return count(), read(), value, x + 1

    return f(x23(), 1), f(x23(), 2)


@program()
def test_cells_that_hold_nothing_at_some_calls(compile):
    @compile
    def f(x, n):
        if n:
            value = n

        def read():
            return value

        print(end="")
        try:
            return read(), x + 1
        except NameError as error:
            return str(error), x

    return [f(x23(), n) for n in (0, 1, 0, 2)]
