"""Special functions, Fourier transforms, linear algebra, bags of embeddings and recurrent layers take symbols: one compilation for
all sizes, forward and backward. Those that do not are listed, so that none is compiled with numbers in silence."""

import pytest
import torch
import torch.nn.functional as F
from size_checks import compiles, same

import oxyfuel

S, L = torch.special, torch.linalg
HANN = torch.hann_window(16)


def rows(n):
    return torch.rand(n, 6) + 0.1


def matrix(n):
    made = torch.randn(n, n)
    return made @ made.T + n * torch.eye(n)


def matrices(n):
    made = torch.randn(n, 3, 3)
    return made @ made.mT + 3 * torch.eye(3)


def waves(n):
    return torch.randn(2, 40 + n)


def words(n):
    return torch.arange(3 * n).view(n, 3) % 20


UNARY = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0
 i0e i1 i1e log1p log_ndtr logit ndtr ndtri psi round sinc"""
POLYNOMIALS = """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
 hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t"""
TRANSFORMS = "fft fft2 ifft2 fftn ifftn irfft irfft2 irfftn fftshift ifftshift"

FORWARD = {
    **{f"special.{name}": (lambda x, f=getattr(S, name): f(x), rows) for name in UNARY.split()},
    **{f"special.{name}": (lambda x, f=getattr(S, name): f(x, 2), rows) for name in POLYNOMIALS.split()},
    "polygamma": (lambda x: S.polygamma(1, x), rows),
    "zeta": (lambda x: S.zeta(x + 2, x + 1), rows),
    "gammainc": (lambda x: (S.gammainc(x, x + 1), S.gammaincc(x, x + 1)), rows),
    "stft": (lambda x: torch.stft(x, 16, 4, window=HANN, return_complex=True), waves),
    "stft of one": (lambda x: torch.stft(x[0], 16, win_length=10, window=HANN[:10], return_complex=True, normalized=True), waves),
    "stft that is not centred": (lambda x: torch.stft(x, 16, center=False, window=HANN, return_complex=True, onesided=False), waves),
    "istft": (lambda x: torch.istft(torch.stft(x, 16, window=HANN, return_complex=True), 16, window=HANN), waves),
    "istft of one": (lambda x: torch.istft(torch.stft(x[0], 16, 4, 10, HANN[:10], return_complex=True, normalized=True), 16, 4, 10, HANN[:10], normalized=True), waves),
    "rfft": (lambda x: (torch.fft.rfft(x), torch.fft.rfft2(x), torch.fft.rfftn(x, norm="ortho").abs(), torch.fft.rfft(x, dim=0)), rows),
    "eig": (lambda x: L.eigvals(x).real.sort().values, matrix),
    "lu": (lambda x: (*L.lu(x), *L.lu_factor(x)), matrix),
    "ldl": (lambda x: L.ldl_factor(x), matrix),
    "qr": (lambda x: L.qr(x), matrices),
    "grid": (lambda x: F.affine_grid(x[:, :6].view(-1, 2, 3), (x.size(0), 1, 3, 4), align_corners=False), rows),
    "qr of all modes": (lambda x: (*L.qr(x, "complete"), L.qr(x, "r")[1]), rows),
    "svd of all": (lambda x: L.svd(x)[1], rows),
    "geqrf": (lambda x: L.householder_product(*torch.geqrf(x)), matrix),
    "ormqr": (lambda x: torch.ormqr(*torch.geqrf(x), x), matrix),
    "matrix_exp": (lambda x: L.matrix_exp(x / 100), matrix),
    "matrix_rank": (lambda x: (L.matrix_rank(x), L.matrix_rank(x, hermitian=True), L.matrix_rank(x, atol=1e-3), L.matrix_rank(x, rtol=1e-3)), matrix),
    "matrix_rank with a tensor": (lambda x: (L.matrix_rank(x, atol=x[0, 0] * 0), L.matrix_rank(x, atol=0.0), L.matrix_rank(x, 1e-3)), matrix),
    "matrix_rank of rectangles": (lambda x: (L.matrix_rank(x), L.matrix_rank(x[None])), rows),
    "lstsq of all results": (lambda x: (*L.lstsq(x, x[:, :2]), *L.lstsq(x.T, x.T[:, 0], driver="gelsy")), rows),
    "lstsq of batches": (lambda x: L.lstsq(x, x[..., 0]), matrices),
    "histogram": (lambda x: torch.histogram(x, 5).hist, rows),
    "one_hot": (lambda x: F.one_hot(x, 20), words),
    "one_hot of as many as there are": (lambda x: F.one_hot(x), words),
    "norms": (lambda x: (L.matrix_norm(x), L.matrix_norm(x, 1), L.matrix_norm(x, 2), L.matrix_norm(x, "nuc"), L.cond(x)), matrix),
}
TRAINED = {
    **{f"fft.{name}": (lambda x, f=getattr(torch.fft, name): torch.view_as_real(f(x) + 0j), rows) for name in TRANSFORMS.split()},
    "fft of a length": (lambda x: torch.fft.fft(x, n=16, dim=0).abs(), rows),
    "stft": (lambda x: torch.stft(x, 16, 4, window=HANN, return_complex=True, onesided=False).abs(), waves),
    "inv": (L.inv, matrix),
    "det": (lambda x: (L.det(x), *L.slogdet(x), torch.logdet(x)), matrix),
    "solve": (lambda x: (L.solve(x, x[:, :2]), L.solve(x, x[0])), matrix),
    "solve of batches": (lambda x: L.solve(x, x[..., 0]), matrices),
    "cholesky": (lambda x: torch.cholesky_solve(x[:, :2], L.cholesky(x)), matrix),
    "cholesky_inverse": (lambda x: torch.cholesky_inverse(L.cholesky(x)), matrix),
    "svdvals": (lambda x: L.svdvals(x[:, :3]), rows),
    "eigvalsh": (L.eigvalsh, matrix),
    "eigh": (lambda x: L.eigh(x)[0], matrix),
    "solve_triangular": (lambda x: L.solve_triangular(x.tril(), x, upper=False), matrix),
    "lu_solve": (lambda x: L.lu_solve(*L.lu_factor(x), x[:, :2]), matrix),
    "pinv": (L.pinv, matrix),
    "cross": (lambda x: L.cross(x[:, :3], x[:, 3:]), rows),
    "matrix_power": (lambda x: L.matrix_power(x / 10, 3), matrix),
    "cov": (lambda x: (torch.cov(x.T), torch.cov(x[:, 0]), torch.cov(x, correction=0)), rows),
    "corrcoef": (lambda x: torch.corrcoef(x.T), rows),
    "renorm": (lambda x: x.renorm(2, 0, 1), rows),
    "distances": (lambda x: (torch.cdist(x, x + 1), torch.cdist(x, x + 1, p=1), F.pdist(x)), rows),
    "take_along_dim": (lambda x: x.take_along_dim(x.argsort(0), 0), rows),
    "a size to a power": (lambda x: x.size(0) ** x, rows),
    "mvlgamma": (lambda x: (torch.mvlgamma(x + 2, 2), S.multigammaln(x.T + 1, 1)), rows),
    "bilinear": (lambda x: F.bilinear(x, x + 1, torch.ones(3, 6, 6), torch.ones(3)), rows),
    "bilinear of batches": (lambda x: F.bilinear(x[None], x[None] + 1, x[:, :, None] * x[:, None]), rows),
    "kron": (lambda x: (torch.kron(x, x + 1), torch.kron(x, x[0]), torch.kron(x[:, 0], x[:, 1]), torch.kron(x, x[0, 0]), torch.kron(x.T, x.T)), rows),
    "multi_dot": (lambda x: (L.multi_dot([x, x.T]), L.multi_dot([x, x.T, x, x.T]), L.multi_dot([x[0], x.T, x]), L.multi_dot([x[0], x.T, x[:, 0]])), rows),
    "triangular_solve": (lambda x: torch.triangular_solve(x[:, :2], x)[0], matrix),
    "solve_triangular at the right": (lambda x: L.solve_triangular(x.triu(), x, upper=True, left=False), matrix),
    "combinations": (lambda x: (torch.combinations(x[:, 0]), torch.combinations(x[:, 1], 3, True), torch.combinations(x[:, 2], 1)), rows),
    "lstsq": (lambda x: (L.lstsq(x, x[:, :2]).solution, L.lstsq(x + torch.eye(x.size(0)), x[0])[0]), matrix),
    "qr": (lambda x: L.qr(x), matrices),
    "qr of tall ones": (lambda x: L.qr(torch.cat([x + 0.1 * x.size(0), torch.eye(6)])), rows),
    "svd": (lambda x: tuple(part.abs() for part in L.svd(x)), matrix),
    "svd of all": (lambda x: L.svd(x[:, :3].T @ x[:, :3] + torch.diag(torch.arange(3.0)), full_matrices=True)[1], rows),
    "rfft": (lambda x: (torch.fft.rfft(x).abs(), torch.fft.rfft2(x).abs(), torch.fft.rfftn(x, norm="ortho").abs(), torch.fft.rfft(x, dim=0).abs()), rows),
    "matrix_exp": (lambda x: (L.matrix_exp(x / 100), L.matrix_exp(x[None] / 50)), matrix),
}

# With the operator that has no rule, or the reason.
WITH_NUMBERS = {
    "chain_matmul": (lambda x: torch.chain_matmul(x, x, x), matrix),  # it warns when it is called
}


def calls(function, make, gradient):
    compiled = oxyfuel.compile(function, dynamic=True, fullgraph=True)
    for n in (5, 4, 7):
        x = make(n)
        if not gradient:
            same(compiled(x), function(x))
            continue
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, expected = compiled(a), function(b)
        same(got, expected)
        for results in (got, expected):
            results = results if isinstance(results, tuple) else (results,)
            sum(result.square().sum() for result in results if result.requires_grad).backward()
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", FORWARD)
def test_forward(name):
    assert compiles(lambda: calls(*FORWARD[name], False)) <= 2  # one of them may read data


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", TRAINED)
def test_forward_and_backward(name, gradient):
    assert compiles(lambda: calls(*TRAINED[name], gradient)) == 1


FEW = {name: TRAINED[name] for name in ("mvlgamma", "bilinear", "kron", "combinations")}
FEW["multi_dot"] = (lambda x: (L.multi_dot([x, x.T, x]), L.multi_dot([x.T, x])), rows)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", FEW)
def test_few_elements_and_none(name, gradient):
    function, make = FEW[name]
    compiled = oxyfuel.compile(function, dynamic=True, fullgraph=True)
    for n in (3, 1, 2):
        x = make(n)
        a, b = x.clone().requires_grad_(gradient), x.clone().requires_grad_(gradient)
        got, expected = compiled(a), function(b)
        same(got, expected)
        if gradient:
            for results in (got, expected):
                sum(result.square().sum() for result in (results if isinstance(results, tuple) else (results,))).backward()
            torch.testing.assert_close(a.grad, b.grad)
    try:
        expected = function(make(0))
    except IndexError:  # of a first row
        return
    same(compiled(make(0)), expected)


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_compiled_with_numbers(name):
    """A rule that makes one of these pass belongs above."""
    assert compiles(lambda: calls(*WITH_NUMBERS[name], False)) == 3


BAGS = {
    "mean": torch.nn.EmbeddingBag(20, 5),
    "max": torch.nn.EmbeddingBag(20, 5, mode="max"),
    "sum": torch.nn.EmbeddingBag(20, 5, mode="sum", padding_idx=3),
}


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("mode", BAGS)
def test_bags(mode, trained):
    bag = BAGS[mode]
    compiled = oxyfuel.compile(bag, dynamic=True, fullgraph=True)

    def calls():
        for n in (5, 4, 7):
            with torch.set_grad_enabled(trained):
                got, expected = compiled(words(n)), bag(words(n))
            same(got, expected)
            if trained:
                for result in (got, expected):
                    bag.weight.grad = None
                    result.square().sum().backward()
                    if result is got:
                        ours = bag.weight.grad
                torch.testing.assert_close(ours, bag.weight.grad)

    assert compiles(calls) == 1


RECURRENT = {
    "LSTM": torch.nn.LSTM(6, 5, num_layers=2),
    "LSTM both ways": torch.nn.LSTM(6, 5, bidirectional=True, batch_first=True),
    "LSTM with projection": torch.nn.LSTM(6, 5, proj_size=3),
    "GRU": torch.nn.GRU(6, 5, batch_first=True),
    "GRU both ways": torch.nn.GRU(6, 5, num_layers=2, bidirectional=True),
    "RNN": torch.nn.RNN(6, 5),
    "RNN with relu": torch.nn.RNN(6, 5, nonlinearity="relu", bias=False),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers(name):
    """Without gradients they are one call, whatever the length and the batch."""
    layer = RECURRENT[name]
    compiled = oxyfuel.compile(layer, dynamic=True, fullgraph=True)

    def calls():
        with torch.no_grad():
            for length, batch in ((5, 3), (4, 3), (7, 2), (3, 1), (1, 4)):
                x = torch.randn(length, batch, 6)
                same(compiled(x), layer(x))
            same(compiled(torch.randn(4, 2, 6), None)[0].shape, layer(torch.randn(4, 2, 6))[0].shape)

    assert compiles(calls) <= 3


ERRORS = {
    "kron of rows that lie apart": (lambda x: torch.kron(x, x.T), torch.rand(3, 6)),
    "multi_dot that does not fit": (lambda x: L.multi_dot([x, x, x]), torch.rand(3, 6)),
    "multi_dot of one": (lambda x: L.multi_dot([x]), torch.rand(3, 6)),
    "bilinear that does not fit": (lambda x: F.bilinear(x, x, torch.ones(3, 6, 5)), torch.rand(3, 6)),
    "mvlgamma of no order": (lambda x: torch.mvlgamma(x, 0), torch.rand(3, 6)),
    "combinations of a matrix": (lambda x: torch.combinations(x), torch.rand(3, 6)),
    "lstsq of no matrix": (lambda x: L.lstsq(x[0], x[0]), torch.rand(3, 6)),
    "singular": (lambda x: L.inv(x), torch.zeros(3, 3)),
    "not positive definite": (lambda x: L.cholesky(x), -torch.eye(3)),
    "unsolvable": (lambda x: L.solve(x, x), torch.zeros(3, 3)),
    "class out of range": (lambda x: F.one_hot(x, 2), torch.tensor([0, 5])),
    "negative class": (lambda x: F.one_hot(x), torch.tensor([0, -1])),
    "windows with gaps": (lambda x: torch.istft(torch.stft(x, 16, 16, window=HANN, return_complex=True), 16, 16, window=HANN), torch.ones(64)),
    "no square": (lambda x: L.inv(x), torch.ones(2, 3)),
    "short signal": (lambda x: torch.stft(x, 16, center=False, return_complex=True, window=HANN), torch.ones(10)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_eager(name):
    function, x = ERRORS[name]
    with pytest.raises(Exception) as expected:
        function(x)
    compiled = oxyfuel.compile(function, dynamic=True)
    with pytest.raises(type(expected.value)) as raised:
        compiled(x)
    assert str(raised.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_sizes_that_only_data_tell():
    def program(x):
        chosen = x[x[:, 0] > 0.5]
        return torch.cdist(chosen, chosen), F.one_hot(chosen.argmax(1), 6), torch.fft.rfft(chosen), S.bessel_j0(chosen), L.svdvals(chosen[:, :3].T @ chosen[:, :3])

    compiled = oxyfuel.compile(program, fullgraph=True)
    for seed in range(4):
        x = torch.rand(20, 6, generator=torch.Generator().manual_seed(seed))
        same(compiled(x), program(x))
