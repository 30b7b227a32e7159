"""Results and arguments that share memory: views that are written, offsets, other types, elements that overlap."""

import numpy
import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program


def written_row(x):
    v = x * 1
    w = v[1]
    w.add_(1)
    return v, w


def written_rest(x):
    a = torch.ones(3)
    b = a[1:]
    b.add_(1)
    return b, a[:2], x


def written_piece(x):
    v = x * 1
    w = v.unbind(0)[-1]
    w[0] = 7.0
    return v, w, w.view(-1), {"a": v.t()}


def part_before_the_whole(x):
    v = x.relu()
    w = v.clone()
    x.add_(1)
    return w, v[:1], v.view(-1)


def part_of_zeros(x):
    r = torch.rand(2)
    v = torch.zeros(2, 2)
    w = v.clone()
    x.add_(1)
    return r, w, v[:1], v.view(-1)


def overwritten_by_a_part(x):
    y = torch.zeros(2)
    y.copy_((x.flatten() + 1)[2:4])
    z = torch.zeros(6)
    z[:] = (x.flatten() * 2)[2:]
    return y, z, z[1:]


def scattered_into_a_new_one(x):
    return torch.ops.aten.as_strided_scatter.out(x, torch.tensor([70.0]), [1], [1], 5, out=torch.zeros(4, 2))


def as_another_type(x):
    x.add_(1)
    return x.view(torch.int32), x.view(torch.uint8)[..., 1:]


def strided(x):
    y = x.as_strided((2,), (1,), 1)
    y.add_(10)
    return y


def views_of_a_copy_of_a_part(x):
    y = x[1:].clone()
    return y.unsqueeze(0), x[1:].clone()[1:], x[:, 1:].to(x.dtype, copy=True).t(), torch.cat([x[1:]])[None], x.new_empty(x[1:].shape).copy_(x[1:]).view(-1)


def view_of_a_copy_of_a_part(x):
    return x[1:].clone().unsqueeze(-2)


def strided_over_gaps(x):
    y = x.as_strided((4,), (1,))
    y.neg_()
    return y


def part_of_strided_over_gaps(x):
    x.as_strided((4,), (1,)).view(2, 2)[1].mul_(3)
    return x + 1


def strided_over_gaps_after_a_write(x):
    y = x.as_strided((4,), (1,))
    x.mul_(2)
    return y + 1


def strided_result(x):
    return (x * 1).as_strided((2,), (1,), 1), (x + 0).as_strided((1,), (1,), 0)


def out_of_bounds_after_a_write(x):
    x.mul_(2)
    return x.as_strided((50,), (1,))


def overlapping(x):
    y = x.as_strided((2, 2), (1, 1))
    y[0].add_(1)
    return x * 1


PROGRAMS = [
    written_row, written_rest, written_piece, part_before_the_whole, part_of_zeros, overwritten_by_a_part, scattered_into_a_new_one, as_another_type,
    views_of_a_copy_of_a_part, view_of_a_copy_of_a_part, strided, strided_over_gaps, part_of_strided_over_gaps, strided_over_gaps_after_a_write, strided_result, out_of_bounds_after_a_write, overlapping,
]
ARGUMENTS = {
    "whole": lambda: torch.arange(8.0).view(4, 2),
    "rows from the second on": lambda: torch.arange(12.0).view(6, 2)[2:],
    "columns": lambda: torch.arange(16.0).view(4, 4)[:, 1:3],
    "transposed": lambda: torch.arange(8.0).view(2, 4).t(),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("function", PROGRAMS)
@program()
def test_results_and_what_is_left_of_the_argument(compile, function, argument):
    f, x = compile(function), ARGUMENTS[argument]()
    whole = x._base if x._base is not None else x
    return [outcome(f, x) for _ in range(2)], whole, torch.rand(1)


def window_of_the_storage(x):
    return x.as_strided((2,), (1,), 4) + 1


def scatter_into_the_storage(x):
    return torch.as_strided_scatter(x, torch.tensor([70.0, 80.0]), (2,), (1,), 4)


def scatter_out_of_the_storage(x):
    return torch.ops.aten.as_strided_scatter.out(x, torch.tensor([70.0, 80.0]), [2], [1], 4, out=torch.zeros(6))


def copy_of_the_storage(x):
    return torch.as_strided_copy(x, (2,), (1,), 4)


def copy_out_of_the_storage(x):
    return torch.ops.aten.as_strided_copy.out(x, [2], [1], 4, out=torch.zeros(2))


@pytest.mark.parametrize(
    "function",
    [window_of_the_storage, scatter_into_the_storage, scatter_out_of_the_storage, copy_of_the_storage, copy_out_of_the_storage],
)
@program()
def test_offsets_count_from_the_storage_of_the_argument_of_each_call(compile, function):
    f, whole = compile(function), torch.arange(12.0)
    return [f(whole[start : start + 6]).clone() for start in (2, 1, 3, 2, 0)]


@program()
def test_complex_views_of_a_written_argument(compile):
    def as_complex(x):
        x.add_(1)
        return torch.view_as_complex(x)

    def parts(z):
        z.mul_(2)
        return z.imag, z.real, torch.view_as_real(z)

    x = torch.zeros(6, 2)
    z = torch.view_as_complex(torch.arange(16.0).view(8, 2))
    return compile(as_complex)(x[4:]), x, compile(parts)(z[3:5]), z


@program()
def test_arguments_whose_elements_share_memory(compile):
    def write_both(z, x):
        z.mul_(2)
        x[0] = 4.0

    def write_column(z, x):
        z.fill_(3)
        x[..., 0] = z[0]

    f, g = compile(write_both), compile(write_column)
    z, expanded, columns, windows = torch.ones(3), torch.ones(1).expand(3), torch.zeros(2, 1).expand(2, 2), torch.zeros(4).as_strided((3, 2), (1, 1))
    h = compile(lambda x: (x[0].add_(1), x * 1)[1])
    return f(z, expanded), g(z, columns), h(windows), z, expanded, columns, windows


@program(grad=True)
def test_detaching_in_place(compile):
    @compile
    def f(x, y):
        y.detach_()
        x.detach_()
        return x + y

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2
    return f(x, y), x.requires_grad, y.requires_grad, y.grad_fn is None, f(torch.ones(2), torch.ones(2))


def test_forward_gradients_run_in_eager():
    forward = torch.autograd.forward_ad
    f = oxyfuel.compile(lambda x: x.sin())
    x = torch.ones(2)
    f(x)
    with forward.dual_level():
        tangent = forward.unpack_dual(f(forward.make_dual(x, torch.ones(2)))).tangent
    torch.testing.assert_close(tangent, x.cos())


@program()
def test_a_class_of_tensors(compile):
    class Named(torch.Tensor):
        pass

    f = compile(lambda x: x.as_subclass(Named) * 2)
    return type(f(torch.ones(1))).__name__, type(f(torch.ones(1))) is Named


@program()
def test_where_results_lie_in_their_storage(compile):
    @compile
    def f(x):
        rows = torch.stack([x, x + 1])
        last = rows[1]
        last.add_(1)
        return last

    @compile
    def g(x):
        a, b = (x * 2).chunk(2)
        b *= 3
        return b

    results = [f(torch.arange(4.0)), g(torch.arange(4.0))]
    return [(y, y.storage_offset(), y.untyped_storage().nbytes(), y.as_strided((1,), (1,), 0)) for y in results]


def over_one_array(kind):
    """Two tensors over one buffer, and a part of it."""
    array = numpy.arange(1, 7, dtype=numpy.float32)
    if kind == "from_numpy":
        return torch.from_numpy(array), torch.from_numpy(array)
    if kind == "as_tensor":
        return torch.as_tensor(array), torch.as_tensor(array)
    if kind == "slices":
        return torch.from_numpy(array[:4]), torch.from_numpy(array[2:])
    if kind == "apart":
        return torch.from_numpy(array[:3]), torch.from_numpy(array[3:])
    tensor = torch.from_numpy(array)
    return tensor, torch.from_dlpack(tensor) if kind == "dlpack" else torch.from_numpy(tensor.numpy())


@pytest.mark.parametrize("kind", ["from_numpy", "as_tensor", "slices", "apart", "dlpack", "numpy"])
@program()
def test_tensors_over_one_buffer(compile, kind):
    @compile
    def first_writes(x, y):
        x.add_(1)
        return y * 2

    @compile
    def both_write(x, y):
        x.mul_(2)
        y.add_(1)
        x.mul_(3)
        return y + 0, x.sum()

    results = []
    for f in (first_writes, both_write, first_writes):
        pair = over_one_array(kind)
        apart = torch.ones(4), torch.ones(4)
        results.append((f(*apart), f(*pair), f(*apart), [tensor.clone() for tensor in pair]))
    return results


@program()
def test_one_array_twice(compile):
    @compile
    def f(array):
        first = torch.as_tensor(array)
        first.add_(1)
        second = torch.as_tensor(array)
        second.mul_(2)
        return first + 0, second + 0

    arrays = [numpy.ones(2, dtype=numpy.float32) for _ in range(2)]
    return [f(array) for array in arrays], arrays


PARTS_OF_CONSTANTS = {
    "a transposed part": lambda: torch.tensor([[1.0, 2.5, -3], [3, 4, 5]]).t()[1:],
    "windows": lambda: torch.tensor([1.0, 2.5, -3]).unfold(0, 2, 1),
    "repeated": lambda: torch.tensor([1.0, 2.5, -3])[None].expand(2, 3),
    "the end": lambda: torch.tensor([1.0, 2.5, -3])[1:],
    "every second": lambda: torch.tensor([1.0, 2.5, -3])[::2],
    "a repeated number": lambda: torch.tensor(3.0).expand(3),
    "a repeated part": lambda: torch.tensor([[1.0, 2.5, -3], [3, 4, 5]])[:, None].expand(2, 2, 3)[..., 1:],
}


@pytest.mark.parametrize("part", PARTS_OF_CONSTANTS.values(), ids=PARTS_OF_CONSTANTS)
@program(whole=True)
def test_results_that_are_parts_of_constants(compile, part):
    """A call makes the tensor anew, so that it may be written to, and its storage is the whole."""
    results = []
    compiled = compile(part)
    for _ in range(2):
        result = compiled()
        results.append((result.clone(), result.storage_offset(), result.untyped_storage().nbytes()))
        result.select(0, 0).fill_(7)
        results.append(result)
    return results
