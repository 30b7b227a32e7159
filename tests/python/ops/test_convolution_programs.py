"""Random networks of convolutions; tests/fuzz/convolution_programs.py runs more."""

import pytest
import torch

import convolution_programs
import oxyfuel
import seeds

CHUNK = 50


@pytest.mark.parametrize("first", range(0, 120, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_same_as_eager(first):
    different = seeds.differing(convolution_programs.difference, first, CHUNK)
    assert not different, f"see one with: tests/fuzz/convolution_programs.py --seeds N:N+1 --show; {different}"


def test_an_answer_closer_to_float64_is_no_difference():
    """Eager loses digits in the gradients of norms over nearly equal numbers."""
    assert not convolution_programs.difference(7_024_360)


def test_statistics_go_on_behind_such_an_answer():
    """Comparing with float64 leaves the models as they are: the next call reads their running statistics."""
    assert not convolution_programs.difference(7_100_800)


def test_programs_are_those_of_their_seeds():
    assert convolution_programs.program(7) == convolution_programs.program(7)
    assert convolution_programs.program(7) != convolution_programs.program(8)


def test_a_difference_is_found(monkeypatch):
    monkeypatch.setattr(oxyfuel, "compile", lambda model: lambda x: model(x) * 1.1)
    assert "is off by" in convolution_programs.difference(0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["conv3d", "conv_transpose3d"])
@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"dilation": 2}, {"padding": 1}], ids=str)
def test_layouts_of_volumes_go_by_the_number_of_threads(threads, kind, options):
    """PyTorch asks another library for kernels of one element where there is one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.randn(2, 8, 4, 4, 4).to(memory_format=torch.channels_last_3d)
        weight = torch.randn(8, 8, 1, 1, 1)
        f = lambda x, weight: getattr(torch.nn.functional, kind)(x, weight, **options)  # noqa: E731
        assert oxyfuel.compile(f)(x, weight).stride() == f(x, weight).stride()
        assert oxyfuel.compile(f, fullgraph=True)(x[:1], weight).stride() == f(x[:1], weight).stride()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("shape, layout", [((2, 16, 6, 6, 6), torch.channels_last_3d), ((1, 16, 12, 10), torch.channels_last)])
def test_gathers_from_other_layouts(shape, layout):
    """The rows of a tile are loaded before the places that are gathered are known."""
    index, x = torch.randint(0, 6, shape), torch.randn(shape).contiguous(memory_format=layout)
    f = lambda x, index: torch.gather(x, 2, index) + x  # noqa: E731
    assert torch.equal(oxyfuel.compile(f, fullgraph=True)(x, index), f(x, index))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batch, positions, kernel", [(1, 1, 1), (2, 1, 1), (3, 4, 1), (2, 5, 3), (0, 1, 1)])
def test_images_without_channels(batch, positions, kernel, bias, dynamic):
    """PyTorch's result has no channels either, whatever the weights say."""

    def program(x, weight, shift):
        return torch.conv1d(x, weight, shift if bias else None) + 1

    x, weight, shift = torch.randn(batch, 0, positions), torch.randn(4, 0, kernel), torch.randn(4)
    try:
        expected = program(x, weight, shift)
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as raised:
            oxyfuel.compile(program, dynamic=dynamic)(x, weight, shift)
        assert str(raised.value) == str(error)
    else:
        assert oxyfuel.compile(program, dynamic=dynamic)(x, weight, shift).shape == expected.shape
