"""Integers that vary as keys and as elements of tensors, and in containers: a value more compiles nothing."""

import copy

import pytest
import torch

import oxyfuel

VALUES = (2, 3, 5, 7, 4)


def compare(program, calls, graphs, **options):
    oxyfuel.reset()
    compiled = oxyfuel.compile(program, **options)
    for arguments in calls:
        expected, actual = copy.deepcopy(arguments), copy.deepcopy(arguments)
        result = program(*expected)
        torch.testing.assert_close(compiled(*actual), result)
        torch.testing.assert_close(actual, expected)
    assert oxyfuel.metrics()["graphs"] == graphs
    assert oxyfuel.metrics()["calls_eager"] == 0
    assert not oxyfuel.metrics()["breaks"]


def program_of(body):
    namespace = {"torch": torch}
    exec("def program(x, k):\n    " + body.replace("; ", "\n    ") + "\n    return x.sum(0), x\n", namespace)
    return namespace["program"]


WRITES = ["x[:k] = 0", "x[k] = 1.", "x[:k] = x[:k] * 2", "x[0] = k", "x[k:] = k", "x[x > 0] = k", "x[-k] = 3", "x[k] = k", "x[..., k] = 1", "x[:, k] = 1", "x[k, :k] = 2",
          "x[None, k, ..., k, None] = k", "x[k, None, 1:k] = 3", "x[:k, None] = x[:k, None] + 1", "x[k] += k", "x[k, torch.arange(2)] = 4"]  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_writes(write, dtype):
    compare(program_of(write), [((torch.randn(12, 12) * 4).to(dtype), k) for k in VALUES], graphs=2)


def test_writes_with_gradients():
    def program(x, k):
        y = x * 1
        y[:k] = x[k] * 2
        y[:, k] = k
        return y

    oxyfuel.reset()
    compiled = oxyfuel.compile(program)
    for k in VALUES:
        x = torch.randn(12, 12, requires_grad=True)
        twin = x.detach().clone().requires_grad_()
        (compiled(x, k) ** 2).sum().backward()
        (program(twin, k) ** 2).sum().backward()
        torch.testing.assert_close(x.grad, twin.grad)
    assert oxyfuel.metrics()["graphs"] == 2


def test_sizes_as_keys_and_elements():
    def program(x, y):
        y[: x.size(0)] = x
        y[: x.size(0) // 2] = 0
        y[0] = x.size(0)
        return y * 2

    compare(program, [(torch.randn(n), torch.randn(12)) for n in VALUES], graphs=2)


def test_a_cache_that_is_written_to():
    def program(cache, batch, position, count, new):
        cache[:batch, position : position + count] = new[:batch, :count]
        return cache[:batch, : position + count].sum(1)

    steps = ((0, 3), (3, 1), (4, 1), (5, 1), (6, 1), (7, 2))
    compare(program, [(torch.zeros(4, 16), 2, position, count, torch.randn(4, 8)) for position, count in steps], graphs=2)


READS = [lambda x, k: x[:, k], lambda x, k: x[..., k], lambda x, k: x[k, None, k:], lambda x, k: x[k, :, 1], lambda x, k: x[None, k, ..., k, None],
         lambda x, k: x[k, torch.arange(2), k], lambda x, k: x[1, k, 2:4], lambda x, k: x[k, ...], lambda x, k: x[k, k, k], lambda x, k: x[:, 1:, k]]  # fmt: skip


@pytest.mark.parametrize("number", range(len(READS)))
def test_reads(number):
    compare(READS[number], [(torch.randn(9, 9, 9), k) for k in VALUES], graphs=2)


@pytest.mark.parametrize("program", [lambda x, k: x[:, k], lambda x, k: x[k, k, k], program_of("x[:, k] = 1"), program_of("x[..., k, 0] = k")])
def test_errors_are_eagers(program):
    compiled = oxyfuel.compile(program)
    for k in (2, 3, 9, -9, -10, 0):
        x = torch.randn(9, 9)
        try:
            expected = program(x.clone(), k)
        except IndexError as error:
            with pytest.raises(IndexError) as raised:
                compiled(x.clone(), k)
            assert str(raised.value) == str(error)
        else:
            torch.testing.assert_close(compiled(x.clone(), k), expected)


def appended(x):
    sizes = []
    for size in x.shape:
        sizes.append(size)
    return torch.zeros(sizes)


def inserted(x):
    sizes = []
    sizes.append(x.size(0) + 1)
    sizes.extend([x.size(0)])
    sizes.insert(0, x.size(1))
    return x.new_zeros(sizes)


def set_by_default(x):
    sizes = {}
    sizes["a"] = x.size(0)
    sizes.setdefault("b", x.size(1))
    return x.new_zeros(sizes["a"], sizes.pop("b"), sizes.get("c", x.size(0)))


def mapped(x):
    return torch.zeros(list(map(lambda size: size + 1, x.shape)))


def mapped_to_integers(x):
    return x.reshape(*map(int, (x.size(0), -1)))


@pytest.mark.parametrize("program", [appended, inserted, set_by_default, mapped, mapped_to_integers])
def test_containers_of_sizes(program):
    compare(program, [(torch.randn(n, 3),) for n in VALUES], graphs=1, dynamic=True)


@pytest.mark.filterwarnings("ignore:_check_is_size")
@pytest.mark.parametrize(
    "program, make",
    [
        (lambda x, n: (torch._check_is_size(n.item()), x[: n.item()])[1], lambda n: (torch.randn(9), torch.tensor(n))),
        (lambda x: (torch._check_is_size(x.size(0)), x * 2)[1], lambda n: (torch.randn(n),)),
        (lambda x, k: (torch._check_is_size(k), x * 2)[1], lambda n: (torch.randn(4), n)),
    ],
)
def test_numbers_that_are_known_to_be_sizes(program, make):
    compare(program, [make(n) for n in VALUES], graphs=2, fullgraph=True)


@pytest.mark.filterwarnings("ignore:_check_is_size")
def test_a_number_that_is_no_size():
    def program(x, k):
        torch._check_is_size(k)
        return x * 2

    compiled = oxyfuel.compile(program)
    for k in (2, 3, 4):
        compiled(torch.randn(4), k)
    with pytest.raises(RuntimeError):
        compiled(torch.randn(4), -1)


def wrong_lists(x):
    x[torch.tensor([0, 1, 2]), torch.tensor([0, 1])] = 1.0
    return x


def empty_beside_others(x):
    x[torch.tensor([], dtype=torch.long), torch.tensor([0, 1])] = 1.0
    return x


def false_beside_others(x):
    x[False, [0, 1]] = 1.0
    return x


def mask_beside_others(x):
    x[x[:, 0] > 9, [0, 1]] = 1.0
    return x


@pytest.mark.parametrize("program", [wrong_lists, empty_beside_others, false_beside_others, mask_beside_others])
def test_indices_that_do_not_broadcast(program):
    """PyTorch's meta kernel of the in-place form does not look at them."""
    for way in (program, oxyfuel.compile(program)):
        x = torch.zeros(12, 12)
        with pytest.raises(IndexError, match="could not be broadcast together"):
            way(x)
        assert not x.any()


@pytest.mark.parametrize("program", [lambda x: x.std(1), lambda x: x.var(1), lambda x: torch.var_mean(x, 1, correction=0)[0], lambda x: x.std(), lambda x: x.var(correction=2)])
def test_gradients_of_variances(program):
    """Their formula divides by a size less a correction, which is a float."""
    oxyfuel.reset()
    compiled = oxyfuel.compile(program, dynamic=True)
    for n in (6, 9, 4, 12):
        x = torch.randn(4, n, requires_grad=True)
        twin = x.detach().clone().requires_grad_()
        (compiled(x) ** 2).sum().backward()
        (program(twin) ** 2).sum().backward()
        torch.testing.assert_close(x.grad, twin.grad)
    assert oxyfuel.metrics()["graphs"] == 1
