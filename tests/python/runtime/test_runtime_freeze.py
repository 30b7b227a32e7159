"""Freezing: every write to a frozen weight is seen, ordinary reads leave it frozen; packed operators."""

import copy
import gc
import io
import os
import sys

import pytest
import torch
import torch.nn.functional as F

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_RUNTIME_TESTING"),) if path]
rt = pytest.importorskip("oxyfuel_runtime_testing", reason="OXYFUEL_RUNTIME_TESTING names the folder of the module")


def in_place(p):
    with torch.no_grad():
        p.mul_(2)


def optimizer(kind, **options):
    def step(p):
        p.grad = torch.ones_like(p)
        kind([p], 0.1, **options).step()

    return step


def load(p):
    module = torch.nn.Linear(1, 1)
    module.weight = p
    module.load_state_dict({"weight": torch.zeros(64, 64), "bias": torch.zeros(1)})


WRITES = {
    "in place": in_place,
    ".data": lambda p: p.data.add_(1),
    "numpy": lambda p: p.detach().numpy().__imul__(2),
    "data_ptr": lambda p: p.data_ptr(),
    "copy_": lambda p: p.data.copy_(torch.zeros(64, 64)),
    "view": lambda p: p.data[0].fill_(3),
    "index": lambda p: p.data.__setitem__((0, 0), 5.0),
    "AdamW": optimizer(torch.optim.AdamW),
    "SGD foreach": optimizer(torch.optim.SGD, foreach=True),
    "Adam fused": optimizer(torch.optim.Adam, fused=True),
    "dlpack": lambda p: torch.utils.dlpack.from_dlpack(p.detach()).add_(1),
    "set_": torch.no_grad()(lambda p: p.set_(torch.zeros(64, 64))),
    ".data =": lambda p: setattr(p, "data", torch.zeros(64, 64)),
    "share_memory_": lambda p: p.share_memory_(),
    "load_state_dict": load,
    "out=": lambda p: torch.add(torch.ones(64, 64), 1, out=p.data),
    "untyped storage": lambda p: p.untyped_storage().__setitem__(0, 1),
    "resize": lambda p: p.data.resize_(128, 64),
    "init": lambda p: torch.nn.init.normal_(p),
}

READS = {
    "matmul": lambda p: p @ p,
    "linear": lambda p: F.linear(p, p),
    "sum": lambda p: (p * 2).sum(),
    "layer_norm": lambda p: F.layer_norm(p, (64,), p[0], p[1]),
    "conv2d 1x1": lambda p: F.conv2d(torch.ones(1, 64, 8, 8), p.view(64, 64, 1, 1)),
    "conv2d": lambda p: F.conv2d(torch.ones(1, 1, 64, 64), p.view(64, 1, 8, 8)),
    "bmm": lambda p: torch.bmm(p[None], p[None]),
    "embedding": lambda p: F.embedding(torch.tensor([1]), p),
    "attention": lambda p: F.scaled_dot_product_attention(p[None, None], p[None, None], p[None, None]),
    "state_dict": lambda p: torch.nn.ParameterDict({"p": p}).state_dict(),
    "clone": lambda p: p.clone(),
    "item": lambda p: p[0, 0].item(),
    "print": lambda p: repr(p),
    "softmax": lambda p: p.softmax(-1),
}


@pytest.fixture
def weight():
    return torch.nn.Parameter(torch.randn(64, 64))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_are_seen(weight, write):
    before = weight.detach().clone()
    frozen = rt.freeze(weight)
    assert frozen.unchanged(weight) and weight._version == 0
    write(weight)
    assert not frozen.unchanged(weight)
    assert torch.equal(frozen.contents(), before)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reads_leave_it_frozen(weight, read):
    frozen = rt.freeze(weight)
    with torch.no_grad():
        read(weight)
    assert frozen.unchanged(weight)


@pytest.mark.parametrize("operator", ["mm", "addmm", "convolution 1x1", "convolution"])
def test_our_own_calls_leave_inputs_frozen(operator):
    x, w, b = torch.randn(256, 128), torch.nn.Parameter(torch.randn(128, 128)), torch.randn(128)
    plan = rt.Plan(2, 0)
    if operator in ("mm", "addmm"):
        a, weight = strided(plan, x, "input", 0), strided(plan, w, "input", 1)
        out = plan.buffer("float32", [256, 128], [128, 1], "output", -1, 0)
        t = plan.window(weight, [128, 128], [1, 128], 0)
        if operator == "mm":
            plan.call("aten::mm", [plan.view(a), t], [out])
        else:
            plan.call("aten::addmm", [plan.view(strided(plan, b, "constant", 0)), plan.view(a), t, 1, 1], [out])
    else:
        kernel = 1 if operator == "convolution 1x1" else 4
        x, w = torch.randn(1, 128, 16, 16), torch.nn.Parameter(torch.randn(64, 128, kernel, kernel))
        a, weight = strided(plan, x, "input", 0), strided(plan, w, "input", 1)
        size = 17 - kernel
        out = plan.buffer("float32", [1, 64, size, size], [64 * size**2, size**2, size, 1], "output", -1, 0)
        plan.call("aten::convolution", [plan.view(a), plan.view(weight), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1], [out])
    plan.output(plan.view(out), "value", -1)
    frozen = rt.freeze(w)
    with torch.no_grad():
        plan.executable([b]).run([x, w])
    assert frozen.unchanged(w)


def test_a_second_write_and_a_second_freeze(weight):
    frozen = rt.freeze(weight)
    in_place(weight)
    in_place(weight)
    assert not frozen.unchanged(weight)
    again = rt.freeze(weight)
    assert again.unchanged(weight) and not frozen.unchanged(weight)
    assert torch.equal(again.contents(), weight)
    del frozen
    gc.collect()
    in_place(weight)
    assert not again.unchanged(weight)


def test_two_freezes_of_one_weight(weight):
    first, second = rt.freeze(weight), rt.freeze(weight)
    assert first.unchanged(weight) and second.unchanged(weight)
    del first
    in_place(weight)
    assert not second.unchanged(weight)


def test_packing_the_contents_does_not_blind_the_barrier(weight):
    frozen = rt.freeze(weight)
    packed = rt.pack_linear(frozen.contents(), 4)
    frozen.contents().data_ptr()
    assert frozen.unchanged(weight)
    in_place(weight)
    assert not frozen.unchanged(weight)
    assert packed is not None


def test_another_tensor_is_not_the_frozen_one(weight):
    frozen = rt.freeze(weight)
    assert not frozen.unchanged(torch.nn.Parameter(weight.detach().clone()))
    assert not frozen.unchanged(weight.data[1:])
    assert not frozen.unchanged(copy.deepcopy(weight)) or torch.equal(copy.deepcopy(weight), frozen.contents())


def test_a_held_numpy_view_is_refused(weight):
    view = weight.detach().numpy()
    assert "another holder" in rt.freeze(weight)
    view[0] = 1
    del view
    gc.collect()
    assert rt.freeze(weight).unchanged(weight)


def test_a_numpy_view_made_after_freezing(weight):
    frozen = rt.freeze(weight)
    view = weight.detach().numpy()
    assert not frozen.unchanged(weight)  # from here on nobody would see its writes
    assert "another holder" in rt.freeze(weight)
    view[0] = 1


def test_a_held_dlpack_capsule_is_refused(weight):
    capsule = torch.utils.dlpack.to_dlpack(weight.detach())
    assert "another holder" in rt.freeze(weight)
    del capsule


@pytest.mark.parametrize("make", [
    lambda: torch.from_numpy(__import__("numpy").zeros((4, 4), "float32")),
    lambda: torch.zeros(4, 4).share_memory_(),
    lambda: torch.zeros(4, 4, device="meta"),
    lambda: torch.zeros(4, 4).to_sparse(),
    lambda: torch.zeros(0, 4),
    lambda: torch.zeros(4, 4).to_mkldnn(),
    lambda: torch.frombuffer(bytearray(64), dtype=torch.float32),
], ids=["from_numpy", "shared memory", "meta", "sparse", "empty", "mkldnn", "frombuffer"])
def test_refusals_have_reasons(make):
    reason = rt.freeze(make())
    assert isinstance(reason, str) and reason


def test_a_weight_that_thaws_too_often_stays_unfrozen(weight):
    for _ in range(3):
        frozen = rt.freeze(weight)
        in_place(weight)
        assert not frozen.unchanged(weight)
        rt.note_thaw(weight)
        del frozen
    assert "too often" in rt.freeze(weight)
    other = torch.nn.Parameter(torch.ones(3))
    assert rt.freeze(other).unchanged(other)


def test_saving_is_a_thaw_at_worst(weight):
    frozen = rt.freeze(weight)
    torch.save(weight, io.BytesIO())
    assert torch.equal(frozen.contents(), weight)


ACTIVATIONS = {
    "none": lambda x: x, "relu": torch.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
}


def strided(plan, t, place, slot):
    return plan.buffer("float32", list(t.shape), list(t.stride()), place, slot, 0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("place", ["extern", "output"])
def test_packed_linear(activation, place):
    x, w, b = torch.randn(2, 5, 96), torch.randn(80, 96), torch.randn(80)
    packed = rt.pack_linear(w, 10)
    plan = rt.Plan(1, 0)
    ids = [strided(plan, x, "input", 0), plan.buffer("float32", [80, 96], [96, 1], "constant", 0, 0), strided(plan, b, "constant", 1)]
    expected = ACTIVATIONS[activation](F.linear(x, w, b))
    out = strided(plan, expected, place, -1)
    plan.call("oxyfuel::packed_linear", [*(plan.view(i) for i in ids), activation, None], [out])
    plan.output(plan.view(out), "value", -1)
    torch.testing.assert_close(plan.executable([packed, b]).run([x])[0], expected, rtol=1e-3, atol=1e-3)


def test_packed_linear_with_residual():
    x, w, r = torch.randn(6, 96), torch.randn(80, 96), torch.randn(6, 80)
    plan = rt.Plan(2, 0)
    a, c, res = strided(plan, x, "input", 0), plan.buffer("float32", [80, 96], [96, 1], "constant", 0, 0), strided(plan, r, "input", 1)
    out = strided(plan, r, "output", -1)
    plan.call("oxyfuel::packed_linear", [plan.view(a), plan.view(c), None, "none", plan.view(res)], [out])
    plan.output(plan.view(out), "value", -1)
    kept = r.clone()
    torch.testing.assert_close(plan.executable([rt.pack_linear(w, 6)]).run([x, r])[0], x @ w.t() + r, rtol=1e-3, atol=1e-3)
    assert torch.equal(r, kept)


@pytest.mark.parametrize("groups", [1, 32])
@pytest.mark.parametrize("activation", ["none", "relu", "hardswish"])
@pytest.mark.parametrize("with_residual", [False, True])
def test_packed_convolution(groups, activation, with_residual):
    if with_residual and activation == "hardswish":
        pytest.skip("no such fusion")
    x = torch.randn(2, 32, 14, 14).contiguous(memory_format=torch.channels_last)
    w, b = torch.randn(32, 32 // groups, 3, 3), torch.randn(32)
    r = torch.randn(2, 32, 14, 14).contiguous(memory_format=torch.channels_last)
    expected = ACTIVATIONS[activation](F.conv2d(x, w, b, 1, 1, 1, groups) + (r if with_residual else 0))
    packed = rt.pack_convolution(w, list(x.shape), [1, 1], [1, 1], [1, 1], groups)
    plan = rt.Plan(2, 0)
    ids = [strided(plan, x, "input", 0), strided(plan, w, "constant", 0), strided(plan, b, "constant", 1)]
    res, out = strided(plan, r, "input", 1), strided(plan, r, "extern", -1)
    plan.call("oxyfuel::packed_convolution", [*(plan.view(i) for i in ids), [1, 1], [1, 1], [1, 1], groups, activation,
                                              plan.view(res) if with_residual else None], [out])
    plan.output(plan.view(out), "value", -1)
    kept = r.clone()
    got = plan.executable([packed, b]).run([x, r])[0]
    assert got.is_contiguous(memory_format=torch.channels_last) and torch.equal(r, kept)
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)


def test_packing_decisions():
    assert rt.should_pack_linear(8, 768, 768, False)[0]
    assert not rt.should_pack_linear(512, 768, 768, False)[0]
    assert rt.should_pack_linear(512, 768, 768, True)[0]
    assert not rt.should_pack_linear(1, 768, 768, False)[0]


def test_packed_bytes():
    w = torch.randn(768, 768)
    assert rt.tensor_bytes(rt.pack_linear(w, 8)) >= w.nbytes and rt.tensor_bytes(w) == w.nbytes
