"""What follows the memory format of a tensor with one channel or one pixel: strides that do not count decide it."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from size_checks import compiles, same

import oxyfuel

PROGRAMS = {
    "channels beside each other": lambda x: torch.cat([x, torch.div(x, x + 30, rounding_mode="floor")], 1) + 0.7,
    "both made": lambda x: torch.hstack([x * 2, x.sigmoid()]),
    "one below the other": lambda x: torch.cat([x * 2, x.sigmoid()], 2),
    "side by side": lambda x: torch.cat([x, x.sigmoid()], 3),
    "batches": lambda x: torch.cat([x, x.sigmoid()], 0),
    "larger": lambda x: F.interpolate(x * 2, scale_factor=2.0, mode="nearest"),
    "padded": lambda x: F.pad(x.sigmoid(), (1, 1, 1, 1), mode="replicate"),
    "pooled": lambda x: F.avg_pool2d(x.sigmoid(), 3, padding=1, stride=1),
    "beside its first": lambda x: torch.hstack([torch.fmax(x.sign(), x.sign()[:1])] * 2),
    "of one width": lambda x: torch.cat([torch.maximum(x.sigmoid()[:1], x.sigmoid())] * 2, 1) if x.size(3) == 1 else x * 2,
    "normalised": lambda x: F.batch_norm(x.permute(2, 1, 3, 0), torch.zeros(x.size(1)), torch.ones(x.size(1)), training=x.numel() > x.size(1)),
    "repeated": lambda x: torch.cat([(x * 2).expand(-1, 4, -1, -1), x.expand(-1, 4, -1, -1)], 2) if x.size(1) == 1 else x + 1,
}
# One image may lose its format where it is seen in other sizes, or in its own.
SEEN = {
    "rolled": lambda x: x.view_as(x).roll(-2, 2),
    "joined": lambda x: torch.cat([x.view_as(x), x.view_as(x).sigmoid()], 2),
    "tokens": lambda x: torch.cat([x.flatten(2).transpose(1, 2).contiguous().transpose(1, 2).view(x.shape)] * 2, 3),
    "cut": lambda x: F.avg_pool2d(x.view(x.size(0), x.size(1), x.size(2), -1).roll(1, 2), 2),
}
LAYOUTS = [torch.channels_last, torch.contiguous_format]
SIZES = [
    [(1, 1, 33, 64), (1, 1, 31, 1), (1, 1, 31, 64)],
    [(2, 3, 5, 7), (2, 3, 1, 1), (2, 1, 5, 7), (1, 1, 1, 1), (1, 3, 5, 1)],
    [(2, 1, 5, 7), (2, 3, 5, 7), (4, 1, 6, 7)],
    [(2, 3, 1, 1), (2, 3, 4, 4), (3, 5, 1, 1)],
    [(9, 1, 1, 9), (15, 1, 1, 15), (7, 1, 2, 1), (3, 2, 5, 1)],
]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_are_those_of_eager(name, dynamic):
    program = PROGRAMS[name]
    for layout in LAYOUTS:
        for sizes in SIZES:
            oxyfuel.reset()
            compiled = oxyfuel.compile(program, dynamic=dynamic)
            for size in sizes:
                x = torch.randn(size).to(memory_format=layout)
                same(compiled(x), program(x))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("name", SEEN)
def test_one_image_is_seen_as_eager_sees_it(name, first, dynamic):
    program = SEEN[name]
    for layout in LAYOUTS:
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
        for size in ((first, 2, 8, 3), (1, 31, 8, 3), (2, 31, 8, 3), (3, 5, 6, 4), (1, 4, 6, 4)):
            x = torch.randn(size).to(memory_format=layout)
            same(compiled(x), program(x))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=lambda order: "".join(map(str, order)))
def test_composites_ask_for_the_format_that_ones_make(order, dynamic):
    """rms_norm is one of several operators of PyTorch whose result has the suggested format."""
    program = lambda x: F.rms_norm(x * 2, x.shape[-1:])  # noqa: E731
    for sizes in ([(1, 4, 100, 15), (1, 4, 1, 15)], [(3, 4, 5, 6), (3, 1, 5, 6), (1, 4, 5, 6), (3, 4, 1, 1)]):
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic)
        for size in sizes:
            x = torch.randn([size[d] for d in order]).permute([order.index(d) for d in range(4)])
            same(compiled(x), program(x))


def test_channels_that_vary_are_compiled_once():
    compiled = oxyfuel.compile(PROGRAMS["channels beside each other"], dynamic=True)

    def calls():
        for size in ((2, 3, 5, 7), (1, 4, 5, 7), (2, 3, 1, 7), (2, 5, 1, 1)):
            compiled(torch.randn(size).to(memory_format=torch.channels_last))

    assert compiles(calls) == 1


ORDERED = {
    "rolled": lambda x: x.neg().roll(1, 2),
    "padded": lambda x: F.pad(x.clip(-2, 1), (1, 1, 1, 1), mode="replicate"),
    "joined": lambda x: torch.cat([x.sigmoid(), x.neg()], 2),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("permutation", list(itertools.permutations(range(4))), ids=str)
@pytest.mark.parametrize("name", ORDERED)
def test_sizes_of_one_bring_a_tensor_into_the_order_of_a_format(name, permutation, dynamic):
    """What was made of a tensor with one index somewhere may be a channels-last one, although that of others is not."""
    program = ORDERED[name]
    for sizes in ([(4, 4, 2, 1), (4, 4, 2, 3), (4, 1, 2, 3)], [(3, 4, 5, 6), (1, 2, 1, 7), (1, 7, 2, 1), (4, 5, 1, 1)]):
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
        for size in sizes:
            x = torch.randn(size).permute(permutation)
            same(compiled(x), program(x))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", ORDERED)
def test_what_a_break_hands_on_has_the_format_of_eager(name, dynamic):
    """The segment behind a break sees strides that do not count, and what it makes of them does."""
    whole = ORDERED[name]

    def program(x):
        made = x.erf().clamp(-3, 3)
        print(end="")
        return whole(made)

    for layout in LAYOUTS:
        for sizes in SIZES + [[(1, 1, 1, 32), (1, 1, 1, 129)], [(2, 1, 1, 32), (2, 3, 1, 1), (2, 3, 4, 5)]]:
            oxyfuel.reset()
            compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
            for size in sizes:
                x = torch.randn(size).to(memory_format=layout)
                same(compiled(x), program(x))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("size", [(63, 1, 64, 1), (3, 1, 4, 5), (3, 4, 1, 1), (1, 1, 1, 1), (2, 3, 4, 5)], ids=str)
def test_a_conversion_is_a_copy_where_it_is_one_in_eager(size, dynamic):
    def program(x):
        rounded = x.round()
        return rounded, rounded.to(memory_format=torch.channels_last)

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for scale in (1, 2, 3):
        x = torch.randn([d * scale if d > 1 else d for d in size]).to(memory_format=torch.channels_last)
        (kept, converted), (kept_in_eager, converted_in_eager) = compiled(x), program(x)
        assert (kept.data_ptr() == converted.data_ptr()) == (kept_in_eager.data_ptr() == converted_in_eager.data_ptr())
        same(converted, converted_in_eager)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_line_with_one_channel_is_contiguous(dynamic):
    def program(x, weight):
        return torch.nn.functional.conv_transpose1d(x, weight.transpose(0, 1))

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for length, channels in ((33, 100), (2, 1), (2, 3), (5, 1), (1, 1)):
        x, weight = torch.randn(1, length, channels).permute(0, 2, 1), torch.randn(3, channels, 3)
        same(compiled(x, weight), program(x, weight))


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_dimension_that_is_divided_into_one_part(dynamic):
    def program(x):
        parts = x.unflatten(2, (-1, 5))
        return parts, parts.tensor_split(2, 2)[1]

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for size in (5, 10, 5, 20):
        x = torch.randn(size, 2, size, size).to(memory_format=torch.channels_last)
        for actual, expected in zip(compiled(x), program(x)):
            assert actual.storage_offset() == expected.storage_offset()
            same(actual, expected)


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_line_of_one_pixel_is_contiguous(dynamic):
    def program(x, weight):
        return torch.nn.functional.conv_transpose1d(x * 1.5, weight)

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for channels in (3, 2, 4):
        x, weight = torch.randn(channels, 1, channels).permute(0, 2, 1), torch.randn(channels, 8, 2)
        same(compiled(x, weight), program(x, weight))
