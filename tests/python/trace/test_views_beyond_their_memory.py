"""Views of the storage that reach beyond it: the error is eager's, whatever is read of the view."""

import pytest
import torch

import oxyfuel

PROGRAMS = {
    "an element": lambda x: x.as_strided((40,), (1,))[0],
    "some elements": lambda x: x.as_strided((40,), (1,))[:2] * 2,
    "of a part": lambda x: x[1:].as_strided((40,), (1,))[0],
    "of a result": lambda x: (x + 1).as_strided((40,), (1,))[0],
    "not read": lambda x: (x.as_strided((40,), (1,)), x * 2)[1],
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_views_beyond_their_memory(name, dynamic):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for size in (2, 50, 3, 41):
        x = torch.arange(float(size))
        results = []
        for function in (program, compiled):
            try:
                results.append(function(x).tolist())
            except RuntimeError as error:
                results.append(str(error))
        assert results[0] == results[1]


@pytest.mark.parametrize("dynamic", [None, True])
def test_views_of_tensors_without_elements(dynamic):
    """Of many columns one row would hold the view."""

    def program(x):
        x.as_strided((16,), (1,))
        return x * 2

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for rows in (16, 0, 3, 0):
        x = torch.randn(1023, rows).t()
        if rows == 0:
            for function in (program, compiled):
                with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
                    function(x)
        else:
            assert torch.equal(compiled(x), program(x))
