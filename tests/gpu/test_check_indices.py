"""Indices that the host checks: IndexError instead of a device that does nothing more."""

import os
import subprocess
import sys
import textwrap

import pytest


def run(text, **environment):
    program = textwrap.dedent("""
        import torch, oxyfuel
        import torch.nn.functional as F
        def said(call):
            try:
                call()
            except Exception as error:
                return type(error).__name__ + ": " + str(error)
            return "nothing"
        """)
    program += textwrap.dedent(text)
    run_ = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, **environment), capture_output=True, text=True)
    assert run_.returncode == 0, run_.stderr
    return run_.stdout.splitlines()


@pytest.mark.parametrize("graphs", [False, True])
def test_with_the_switch(graphs):
    lines = run(
        f"""
        def program(w, i, s):
            s.add_(1)
            return F.embedding(i, w).sin()
        compiled = oxyfuel.compile(program, options={{"graphs": {graphs}}})
        w, s = torch.randn(5, 4, device="cuda"), torch.zeros(3, device="cuda")
        for index in ([0, 4], [1, 2], [2, 2], [1, 3], [3, 5], [4, 4]):
            i = torch.tensor(index, device="cuda")
            print(said(lambda: torch.testing.assert_close(compiled(w, i, s), w[i].sin())))
        print(s.tolist())
        """,
        OXYFUEL_CHECK_INDICES="1",
    )
    assert lines[:4] == ["nothing"] * 4
    assert lines[4].startswith("IndexError: index 5 is out of bounds for dimension 0 with size 5 at ")
    assert lines[5:] == ["nothing", "[5.0, 5.0, 5.0]"]


@pytest.mark.parametrize("index", ["torch.tensor([1, 9])", "i"])
def test_indices_on_the_host(index):
    """They are checked without the switch, literals among them: the device need not be asked."""
    lines = run(f"""
        compiled = oxyfuel.compile(lambda x, i: x[{index}] * 2)
        x = torch.randn(5, device="cuda")
        print(said(lambda: compiled(x, torch.tensor([1, 9]))))
        print((x + 1).shape)
        """)
    assert lines[0].startswith("IndexError: index 9 is out of bounds for dimension 0 with size 5"), lines
    assert lines[1] == "torch.Size([5])"


def test_a_list_as_index():
    lines = run("""
        compiled = oxyfuel.compile(lambda x: x[[0, 3, 3]] * 2)
        x = torch.randn(5, device="cuda")
        for _ in range(4):
            torch.testing.assert_close(compiled(x), x[[0, 3, 3]] * 2)
        """)
    assert lines == []
