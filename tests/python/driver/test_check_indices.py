"""OXYFUEL_CHECK_INDICES=1: the host checks indices before kernels read them. On the CPU a call that fails is left to eager, which
raises; tests/gpu/test_check_indices.py has the others."""

import textwrap

import pytest

from other_process import OtherProcess

CHECKING = OtherProcess(OXYFUEL_CHECK_INDICES="1")


def run(text):
    program = textwrap.dedent("""
        import torch, oxyfuel
        import torch.nn.functional as F
        torch.manual_seed(0)
        def said(call):
            try:
                call()
            except Exception as error:
                return type(error).__name__ + ": " + str(error)
            return "nothing"
        """)
    return CHECKING.run(program + textwrap.dedent(text))


# The program over (x, i), a good index and a bad one.
PROGRAMS = {
    "embedding": ("F.embedding(i, x)", "[0, 4]", "[1, 7]"),
    "negative rows": ("F.embedding(i, x)", "[0, 4]", "[1, -1]"),
    "index": ("x[i]", "[0, -5]", "[1, -6]"),
    "second dimension": ("x[:, i].sin()", "[0, 2]", "[3, 0]"),
    "behind a mask": ("x[x[:, 0] < 9, i]", "[0, 1, 2, 0, 1]", "[0, 1, 2, 3, 1]"),
    "computed": ("x[i * 2]", "[0, 2]", "[0, 3]"),
    "gather": ("x.gather(1, i[:, None])", "[0, 2]", "[3, 0]"),
    "scatter": ("x.scatter(0, i[None], 2.0)", "[0, 4, 3]", "[0, 5, 3]"),
    "index_select": ("x.index_select(-1, i)", "[0, 2]", "[-1, 0]"),
    "index_fill": ("x.index_fill(1, i, 1.0)", "[0, -3]", "[0, -4]"),
    "take": ("x.take(i)", "[14, -15]", "[15]"),
    "index_put": ("x.index_put((i,), x[0] * 2)", "[1, -1]", "[5, 1]"),
    "classes": ("F.cross_entropy(x, i)", "[0, 1, 2, -100, 0]", "[0, 1, 3, -100, 0]"),
    "an ignored class": ("F.cross_entropy(x, i, ignore_index=1)", "[0, 1, 2, 2, 0]", "[0, 1, 2, -100, 0]"),
    "bags": ("F.embedding_bag(i[None], x)", "[0, 4]", "[5, 0]"),
}


# A mask takes as many elements as its data say: without symbols it runs in eager.
CASES = [(name, dynamic) for name in PROGRAMS for dynamic in (False, True) if dynamic or name != "behind a mask"]


@pytest.mark.parametrize("name, dynamic", CASES)
def test_operators(name, dynamic):
    text, good, bad = PROGRAMS[name]
    lines = run(f"""
        def program(x, i, written):
            written.add_(1)
            return {text}
        compiled = oxyfuel.compile(program, dynamic={dynamic})
        x, written, twin = torch.randn(5, 3), torch.zeros(2), torch.zeros(2)
        for i in ({good}, {bad}, {good}):
            i = torch.tensor(i)
            results = []
            says = said(lambda: results.append(compiled(x, i, written)))
            assert says == said(lambda: results.append(program(x, i, twin))), says
            torch.testing.assert_close(*results) if results else None
            torch.testing.assert_close(written, twin)
            print(says != "nothing")
        print(len(oxyfuel.metrics()["breaks"]), oxyfuel.metrics()["calls_eager"])
        """)
    assert lines == ["False", "True", "False", "0 1"]


def test_training():
    lines = run("""
        table = torch.nn.Embedding(5, 3)
        twin = torch.nn.Embedding(5, 3)
        twin.load_state_dict(table.state_dict())
        compiled = oxyfuel.compile(lambda i: table(i).sin().sum())
        print(said(lambda: compiled(torch.tensor([0, 4, 4])).backward()))
        twin(torch.tensor([0, 4, 4])).sin().sum().backward()
        torch.testing.assert_close(table.weight.grad, twin.weight.grad)
        print(said(lambda: compiled(torch.tensor([0, 5, 4])).backward()))
        torch.testing.assert_close(table.weight.grad, twin.weight.grad)
        print(said(lambda: compiled(torch.tensor([0, 4, 4])).backward()))
        torch.testing.assert_close(table.weight.grad, 2 * twin.weight.grad)
        """)
    assert lines[0] == lines[2] == "nothing"
    assert lines[1].startswith("IndexError")


def test_the_error_is_the_programs_to_catch():
    lines = run("""
        compiled = oxyfuel.compile(lambda x, i: x[i])
        def program(x, i):
            try:
                return compiled(x, i)
            except IndexError:
                return x
        x = torch.randn(3)
        print(program(x, torch.tensor([4])) is x, program(x, torch.tensor([2])).shape)
        """)
    assert lines[0] == "True torch.Size([1])"


def test_handlers_and_effects_of_the_program():
    lines = run("""
        def program(x, i, seen):
            noise = torch.rand(2)
            x.add_(1)
            seen.append(1)
            try:
                y = x[i]
            except IndexError:
                y = x
            finally:
                x.mul_(2)
            return y * 2 + noise[0]
        compiled = oxyfuel.compile(program)
        for i in ([1, 2], [9], [0]):
            x, twin, seen, twins = torch.arange(5.0), torch.arange(5.0), [], []
            torch.manual_seed(3)
            result, after = compiled(x, torch.tensor(i), seen), torch.rand(1)
            torch.manual_seed(3)
            expected, after_eager = program(twin, torch.tensor(i), twins), torch.rand(1)
            torch.testing.assert_close((result, after, x), (expected, after_eager, twin))
            assert seen == twins
        """)
    assert lines == []


def test_indices_that_nothing_is_taken_with():
    lines = run("""
        nothing = torch.zeros(0, dtype=torch.long)
        programs = [lambda x, i, j: x[i, j], lambda x, i, j: x.index_put((i, j), x.new_ones(())), lambda x, i, j: x.new_zeros(5, 0)[j],
                    lambda x, i, j: x.new_zeros(5, 0).index_fill(0, j, 1.0)]
        for program in programs:
            x = torch.randn(5, 3)
            torch.testing.assert_close(oxyfuel.compile(program)(x, nothing, torch.tensor([9])), program(x, nothing, torch.tensor([9])))
        print(oxyfuel.metrics()["calls_eager"])
        """)
    assert lines == ["0"]


def test_random_indices():
    """It raises where eager does, and gives eager's answer elsewhere."""
    lines = run("""
        programs = [lambda x, i: x[i], lambda x, i: x[:, i] * 2, lambda x, i: x[i, i], lambda x, i: x.gather(0, i[None].expand(2, -1)),
                    lambda x, i: x.index_select(1, i), lambda x, i: x[i][:, None] + x.mean(), lambda x, i: x[i.remainder(4)],
                    lambda x, i: x[i].index_put((i.abs().clamp(max=0),), x[0])]
        compiled = [oxyfuel.compile(program, dynamic=True) for program in programs]
        raised = 0
        for seed in range(160):
            generator = torch.Generator().manual_seed(seed)
            rows, columns, count, low, high = (int(torch.randint(a, b, (), generator=generator)) for a, b in ((1, 6), (1, 6), (0, 4), (-6, 1), (1, 7)))
            x = torch.randn(rows, columns, generator=generator)
            i = torch.randint(low, high, (count,), generator=generator)
            eager, ours = [], []
            k = seed % len(programs)
            said_by_eager = said(lambda: eager.append(programs[k](x, i)))
            said_by_us = said(lambda: ours.append(compiled[k](x, i)))
            assert (said_by_eager == "nothing") == (said_by_us == "nothing"), (seed, said_by_eager, said_by_us)
            if eager:
                torch.testing.assert_close(ours[0], eager[0])
            raised += not eager
        print(raised)
        """)
    assert 30 < int(lines[-1]) < 130
