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
