"""oxyfuel.mark_unbacked: sizes that a compilation may not look at."""

import math

import pytest
import torch

import oxyfuel


def marked(n, columns=4, **settings):
    x = torch.randn(n, columns)
    oxyfuel.mark_unbacked(x, 0, **settings)
    return x


def runs(function, *sizes, fullgraph=True, **settings):
    """The number of compilations; results are eager's."""
    compiled = oxyfuel.compile(function, fullgraph=fullgraph)
    before = oxyfuel.metrics()["graphs"]
    for n in sizes:
        x = marked(n, **settings)
        torch.testing.assert_close(compiled(x), function(x))
    return oxyfuel.metrics()["graphs"] - before


SIZES = (5, 3, 8, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 + 1,
        lambda x: x.sum(0) / x.size(0),
        lambda x: torch.softmax(x @ x.T, -1),
        lambda x: x.reshape(-1)[: x.size(0)],
        lambda x: torch.cat([x, x]).view(2, x.size(0), 4),
        lambda x: (x * x.size(0), x.size(0) * 2, x.shape),
        lambda x: x + torch.arange(x.size(0))[:, None],
        lambda x: (x.size(0) > 3, x * 2),
        lambda x: x[x > 0].sum() + x.size(0),
        lambda x: x * x.size(0) ** -0.5,
        lambda x: x / (x.size(0) / 2) + math.sqrt(x.size(0)),
        lambda x: (x * (math.log(x.size(0) + 1) * 2), x.size(0) / 2),
        lambda x: x.sum(0) * (x.numel() / x.size(0)),
    ],
)
def test_one_compilation(function):
    assert runs(function, *SIZES) == 1


def test_sizes_0_and_1():
    assert runs(lambda x: x * 2 + x.sum(0), 5, 1, 0, 7) == 1
    assert runs(lambda x: x + torch.ones(x.size(0), 1), 5, 1, 0) == 1


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_branch_is_an_error_with_its_line(fullgraph):
    def function(x):
        if x.size(0) > 4:
            return x * 2
        return x * 3

    with pytest.raises(
        RuntimeError,
        match=r"(?s)x\.size\(0\) is marked unbacked, but the program needs to know .*at test_unbacked\.py:\d+ in function"
        r".*torch\._check\(.*x\.size\(0\).*decides it; oxyfuel\.mark_dynamic",
    ):
        oxyfuel.compile(function, fullgraph=fullgraph)(marked(5))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [x + i for i in range(x.size(0))],
        lambda x: x * {5: 1}[x.size(0)],
        lambda x: x * len(f"{x.size(0)}"),
        lambda x: x * 2 if x.size(0) ** 0.5 > 2 else x,
        lambda x: x * round(x.size(0) / 2),
        lambda x: x * len(str(x.size(0) / 2)),
        lambda x: x.view(-1, 8) if x.size(0) % 2 == 0 else x,
    ],
)
def test_a_need_of_the_number_is_an_error(function):
    with pytest.raises(RuntimeError, match=r"marked unbacked, but the program needs to know"):
        oxyfuel.compile(function)(marked(5))


def test_a_check_decides():
    def function(x):
        torch._check(x.size(0) > 1)
        torch._check(x.size(0) < 100)
        return x * 2 if x.size(0) < 100 else x * 3

    assert runs(function, *SIZES) == 1
    compiled = oxyfuel.compile(function, fullgraph=True)
    compiled(marked(5))
    before = oxyfuel.metrics()["graphs"]
    for n in (1, 100):  # eager raises what the program's check says
        with pytest.raises(RuntimeError, match="Expected cond to be True"):
            compiled(marked(n))
    assert oxyfuel.metrics()["graphs"] == before
    assert torch.equal(compiled(x := marked(7)), x * 2)


def test_an_assertion_decides():
    def function(x):
        if x.size(0) == 3:
            raise ValueError("three")
        return x * 2 if x.size(0) != 3 else x

    assert runs(function, 5, 4, 1) == 1
    compiled = oxyfuel.compile(function)
    compiled(marked(5))
    with pytest.raises(ValueError, match="three"):
        compiled(marked(3))


def test_likely_answers_are_checked():
    def function(x, y):
        return x + y

    compiled = oxyfuel.compile(function, fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    for n, m in ((5, 5), (3, 3), (1, 4), (4, 1)):
        x, y = marked(n), marked(m)
        assert torch.equal(compiled(x, y), x + y)
    assert oxyfuel.metrics()["graphs"] == before + 1
    with pytest.raises(RuntimeError, match="must match the size"):
        compiled(marked(3), marked(4))


def test_bounds():
    assert runs(lambda x: x * 2 if x.size(0) < 100 else x * 3, *SIZES, min=2, max=50) == 1
    compiled = oxyfuel.compile(lambda x: x * 2)
    for n in (1, 51):
        with pytest.raises(RuntimeError, match=rf"x\.size\(0\) is {n}, but is marked to be 2 <= x\.size\(0\) <= 50"):
            compiled(marked(n, min=2, max=50))


def test_shape_ids():
    def function(x, y):
        return x * 2 if x.size(0) == y.size(0) else x * 3

    compiled = oxyfuel.compile(function, fullgraph=True)
    for n in SIZES:
        x, y = marked(n, shape_id="n"), marked(n, shape_id="n")
        assert torch.equal(compiled(x, y), x * 2)
    with pytest.raises(RuntimeError, match=r"y\.size\(0\) is 4, and as the shape id 'n' it has to be 3"):
        compiled(marked(3, shape_id="n"), marked(4, shape_id="n"))


def test_gradients():
    compiled = oxyfuel.compile(lambda x: (x * x).mean(0) * x.size(0), fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    for n in SIZES:
        x = marked(n).requires_grad_()
        oxyfuel.mark_unbacked(x, 0)
        (got,) = torch.autograd.grad(compiled(x).sum(), x)
        torch.testing.assert_close(got, 2 * x.detach())
    assert oxyfuel.metrics()["graphs"] == before + 1


def test_the_mark_of_torch():
    from torch._dynamo.decorators import mark_unbacked

    compiled = oxyfuel.compile(lambda x: x * 2 if x.size(0) > 3 else x)
    for strict in (False, True):
        x = torch.randn(5, 4)
        mark_unbacked(x, 0, strict=strict)
        with pytest.raises(RuntimeError, match="marked unbacked"):
            compiled(x)
    x = torch.randn(5, 4)
    mark_unbacked(x, 0, min=4, max=9)
    assert torch.equal(compiled(x), x * 2)


def test_layouts():
    compiled = oxyfuel.compile(lambda x: x * 2 + 1, fullgraph=True)
    before = oxyfuel.metrics()["graphs"]
    for n in SIZES:
        for x in (torch.randn(n, 9)[:, ::2], torch.randn(4, n).T):
            oxyfuel.mark_unbacked(x, 0)
            y = compiled(x)
            assert torch.equal(y, x * 2 + 1) and y.stride() == (x * 2 + 1).stride()
    assert oxyfuel.metrics()["graphs"] <= before + 2


def test_writes_and_views():
    def function(x):
        x.add_(1)
        return x[1:], x.view(-1)

    compiled = oxyfuel.compile(function, fullgraph=True)
    for n in SIZES:
        x = marked(n)
        y = x.clone()
        got, expected = compiled(x), function(y)
        assert torch.equal(x, y)
        for a, b in zip(got, expected):
            assert torch.equal(a, b) and a.data_ptr() - x.data_ptr() == b.data_ptr() - y.data_ptr()


def test_bad_marks():
    x = torch.randn(3, 4)
    with pytest.raises(IndexError, match="2 dimensions"):
        oxyfuel.mark_unbacked(x, 2)
    with pytest.raises(TypeError, match="takes a tensor, not list"):
        oxyfuel.mark_unbacked([x], 0)
    with pytest.raises(ValueError, match="at least 5 and at most 2"):
        oxyfuel.mark_unbacked(x, 0, min=5, max=2)
    with pytest.raises(TypeError, match="shape_id must be a str"):
        oxyfuel.mark_unbacked(x, 0, shape_id=3)


MARKS = {"unbacked": oxyfuel.mark_unbacked, "dynamic": oxyfuel.mark_dynamic}


@pytest.mark.parametrize("kind", MARKS)
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("gradient", [False, True])
def test_a_mark_is_never_given_up_in_silence(kind, fullgraph, gradient, capfd):
    """An operator without a rule on symbols: compiled for each size, and the user is told once."""

    def function(x):
        # Neither aten::segment_reduce nor aten::pow_.Scalar has a rule.
        if gradient:
            return torch.linalg.vector_norm(x * 2, 3, dim=1)
        return torch.segment_reduce(x, "sum", lengths=torch.full((x.size(0), 2), 2), axis=1)

    compiled = oxyfuel.compile(function, fullgraph=fullgraph)
    for n in (5, 3):
        x = torch.randn(n, 4)
        MARKS[kind](x, 0)
        if gradient:
            x.requires_grad_()
        torch.testing.assert_close(compiled(x), function(x))
    told = capfd.readouterr().err
    assert told.count("is marked") == 1, told
    assert f"x.size(0) is marked {kind}, but" in told and "is compiled for each size anew: " in told, told
    assert "symbolic sizes" in told and "test_unbacked.py:" in told, told


def test_a_float_of_a_size_that_cannot_be_calculated():
    compiled = oxyfuel.compile(lambda x: x.sum() * x.size(0) ** -0.5)
    x = marked(4)
    torch.testing.assert_close(compiled(x), x.sum() * 0.5)
    with pytest.raises((ZeroDivisionError, RuntimeError)):
        compiled(marked(0))
    torch.testing.assert_close(compiled(y := marked(16)), y.sum() * 0.25)
