"""Constructors that take sizes or data in the same place: Tensor.new(), torch.Tensor() and torch.LongTensor() and its like."""

import pytest
import torch

import oxyfuel
from eager_comparison import assert_reasons_are_readable, outcome, program
from test_tensor_methods import LEFT_OUT

SIZES = [(), (2, 3), (0,), (4,), (torch.Size([3, 2]),), (torch.Size([]),)]
DATA = [([1, 2, 3],), ((1.5, 2),), ([[1, 2], [3, 4]],), ([],), ([True, False],), ([7.75, -0.0],)]
OTHERS = [
    (-1,), (2.5,), ("ab",), (True,), (None,), (2, 2.0), ([1, "a"],), ([[1], [2, 3]],), ([1j],), (range(3),), (torch.ones(2),), (torch.ones(2).storage(),), ([2**70],), ({},), ([1], 2),
]  # fmt: skip
MAKERS = {
    "new": lambda x, *a, **k: x.new(*a, **k),
    "new of a result": lambda x, *a, **k: (x * 2).new(*a, **k),
    "new of integers": lambda x, *a, **k: x.long().new(*a, **k),
    "unbound": lambda x, *a, **k: torch.Tensor.new(x, *a, **k),
    "Tensor": lambda x, *a, **k: torch.Tensor(*a, **k),
    "FloatTensor": lambda x, *a, **k: torch.FloatTensor(*a, **k),
    "LongTensor": lambda x, *a, **k: torch.LongTensor(*a, **k),
    "BoolTensor": lambda x, *a, **k: torch.BoolTensor(*a, **k),
    "HalfTensor": lambda x, *a, **k: torch.HalfTensor(*a, **k),
}
X = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("device", [{}, {"device": "cpu"}, {"device": torch.device("cpu")}])
@pytest.mark.parametrize("maker", MAKERS)
@program(whole=True)
def test_sizes(compile, maker, device):
    @compile
    def f(x, sizes):
        return MAKERS[maker](x, *sizes, **device).zero_() + x.sum()

    return [f(X, sizes) for sizes in SIZES]


@pytest.mark.parametrize("maker", MAKERS)
@program(whole=True)
def test_data(compile, maker):
    @compile
    def f(x, data):
        made = MAKERS[maker](x, *data)
        return made, made + x.sum()

    return [f(X, data) for data in DATA]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("place", range(len(OTHERS)))
@program()
def test_what_eager_refuses_and_what_is_not_captured(compile, maker, place):
    @compile
    def f(x, given):
        made = MAKERS[maker](x, *given)
        return x + made.shape[0]

    return outcome(f, X, OTHERS[place])


@program()
def test_further_arguments(compile):
    @compile
    def f(x, kind, extra):
        return x + kind(x, extra).sum()

    kinds = [
        lambda x, extra: x.new([x[0, 0], x[1, 1]]),
        lambda x, extra: x.new([1, 2], **extra),
        lambda x, extra: x.new(data=[1]),
        lambda x, extra: x.new(size=(2,)).zero_(),
        lambda x, extra: torch.Tensor.new(),
        lambda x, extra: torch.Tensor.new(3),
        lambda x, extra: torch.Tensor.new_tensor(x, [1, 2]),
        lambda x, extra: torch.Tensor.new_tensor([1, 2]),
        lambda x, extra: torch.cuda.FloatTensor(2),
        lambda x, extra: torch.sparse.FloatTensor(2),
    ]
    return [outcome(f, X, kind, extra)[:3] for kind in kinds for extra in ({"device": "meta"}, {"device": "cpu"}, {"dtype": torch.float64})]


@program(whole=True)
def test_default_types(compile):
    @compile
    def f(x):
        return torch.Tensor([1, 2]), x.new([1, 2]), torch.FloatTensor([1])

    results = [f(X)]
    torch.set_default_dtype(torch.float64)
    try:
        results.append(f(X))
    finally:
        torch.set_default_dtype(torch.float32)
    return results


@program(whole=True)
def test_the_source_keeps_its_history(compile):
    @compile
    def f(x):
        made = x.new([2.0, 3.0, 4.0])
        return (x * made).sum()

    leaf = X.clone().requires_grad_()
    with torch.enable_grad():
        f(leaf).backward()
    return leaf.grad


@program(whole=True)
def test_data_of_the_caller_s(compile):
    numbers = [1, 2, 3]

    @compile
    def f(x):
        return x.new(numbers) * x

    first = f(X)
    numbers[0] = 7
    return first, f(X)


@pytest.mark.filterwarnings("ignore")
def test_reasons_are_readable_whatever_is_asked_of_a_tensor():
    """Of what test_tensor_methods.py leaves out, as results are not the same in eager."""
    for name in sorted(LEFT_OUT - {"index"}):
        for arguments in ((), (1,), (X,), (lambda a: a,)):

            def f(x, arguments=arguments, name=name):
                return x + 1, getattr(x, name)(*arguments) if callable(getattr(torch.Tensor, name, None)) else getattr(x, name)

            oxyfuel.reset()
            outcome(oxyfuel.compile(f), X.clone())
            assert_reasons_are_readable((name, arguments))
            whole = outcome(oxyfuel.compile(f, fullgraph=True), X.clone())
            if whole[0] == "raised" and whole[1] is oxyfuel.Unsupported:
                assert_reasons_are_readable((name, arguments))


OPERATIONS = {
    "type": lambda x: (x.type(), x.type("torch.DoubleTensor"), x.type(torch.LongTensor), x.type(torch.float64), x.double().type(x.type())),
    "kinds of tensors": lambda x: (x.is_cuda, x.is_meta, x.is_sparse, x.is_quantized, x.is_mkldnn, x.is_nested, x.is_cpu, x.layout, x.device, x.get_device()),
    "typename": lambda x: (torch.typename(x), x.type_as(x.long()), isinstance(x, torch.FloatTensor)),
    "storage": lambda x: (len(x.storage()), x.untyped_storage().nbytes(), x.storage_type().__name__),
    "pointers": lambda x: (x.data_ptr() > 0, (x + 1).data_ptr() > 0, x._cdata > 0),
    "arrays": lambda x: ((x + 1).numpy().tolist(), x.__array__().tolist(), (x + 1).tolist()),
    "texts": lambda x: (repr(x + 1), str(x), f"{x.sum():.2f}"),
    "sparse": lambda x: ((x + 1).to_sparse().to_dense(), torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0]).to_dense()),
    "compressed": lambda x: torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), x[0, :2]).to_dense(),
    "quantised": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize(),
    "not quantised": lambda x: outcome(x.q_scale)[:2],
    "nested": lambda x: torch.nested.nested_tensor([x, x]).to_padded_tensor(0),
    "nested of results": lambda x: torch.nested.as_nested_tensor([x, x + 1]).to_padded_tensor(0),
    "other layouts": lambda x: (x + 1).to_mkldnn().to_dense(),
    "meta": lambda x: (x.to("meta").shape, torch.empty(2, device="meta").device.type),
    "resized": lambda x: ((x + 1).resize(3, 2), (x + 1).resize_as(x.T)),
    "copies of tensors": lambda x: (torch.tensor(x), torch.tensor([x[0, 0], 1]), torch.as_tensor(x), x.new_tensor(x), x.new_tensor([x[0, 0]])),
    "functions of elements": lambda x: ((x + 1).apply_(lambda a: a * 2), (x + 1).map_(x, lambda a, b: a * b)),
    "of other devices": lambda x: outcome(lambda: x.__cuda_array_interface__)[:2],
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.filterwarnings("ignore")
def test_what_looks_at_how_a_tensor_is_kept(name):
    def f(x):
        return x * 2, OPERATIONS[name](x)

    compiled = oxyfuel.compile(f)
    for _ in range(2):
        ours, eager = compiled(X.clone()), f(X.clone())
        assert repr(ours) == repr(eager)
    assert_reasons_are_readable(name)
