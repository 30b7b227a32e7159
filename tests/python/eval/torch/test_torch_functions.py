"""The functions of torch, torch.nn.functional, torch.special, torch.linalg and torch.fft, with arguments that fit and others."""

import itertools

import oxyfuel
import pytest
import torch
import torch.nn.functional as F
from eager_comparison import assert_reasons_are_readable
from test_tensor_methods import TENSORS, is_close, seen

ARGUMENTS = (
    "o | o, p | o, p, p | [o, p] | (o, p), 1 | [o, p], dim=-1 | o, 0 | o, 1 | o, -1 | o, 2, 1 | o, (1, 1) | o, [2, 3] | o, dim=0 | o, dim=(0, 1) |"
    "o, dim=-1, keepdim=True | o > 0, o, p | o, 0, torch.tensor([0, 1]) | o, 0, torch.tensor([[0, 1, 1]]) | 2, o | o, 2.0 | *o | o, p.t() | o, p, dim=1 |"
    "o, torch.tensor([1, 0]) | 3, 2 | (2, 3), 1.5 | o, p, reduction='none' | o, out=p | o, None | 'ij,ik->jk', o, p | o.abs(), 2, o.mean() | o, scale_factor=2 |"
    "o, kernel_size=2 | o, dtype=torch.float64 | o, torch.ones(2, 2, 2, 2) | o, torch.rand(1, 3) * 0 + 0.5"
).split("|")
SPACES = {"torch": torch, "F": F, "torch.special": torch.special, "torch.linalg": torch.linalg, "torch.fft": torch.fft}
# What gives random numbers or memory that nobody has written, takes functions or files, or asks or changes torch itself.
LEFT_OUT = set(
    "manual_seed seed initial_seed get_rng_state rand randn randint randperm normal bernoulli multinomial poisson empty empty_like empty_strided "
    "empty_permuted rand_like randn_like randint_like dropout dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout "
    "feature_alpha_dropout_ dropout1d dropout2d dropout3d native_dropout rrelu rrelu_ binomial fractional_max_pool2d fractional_max_pool3d "
    "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices gumbel_softmax save load compile from_file wait fork use_deterministic_algorithms "
    "inference_mode resize_as_ resize_as_sparse_ frombuffer from_dlpack to_dlpack handle_torch_function boolean_dispatch index lobpcg pca_lowrank svd_lowrank "
    "vmap cond while_loop import_ir_module prepare_multiprocessing_environment init_num_threads clear_autocast_cache sym_int typename "
    "autocast_increment_nesting autocast_decrement_nesting vitals_enabled read_vitals get_num_threads get_num_interop_threads has_torch_function "
    "has_torch_function_unary has_torch_function_variadic nested_tensor unify_type_list parse_ir parse_schema "
    "merge_type_from_type_comment get_device_module get_file_path get_default_device".split()
)
# docs/limits.md: a function, and the kind of tensors or the arguments of which it is one.
KNOWN = (
    ("torch.trapz(", "bfloat16"), ("torch.trapezoid(", "bfloat16"), ("torch.cumulative_trapezoid(", "bfloat16"),
    ("F.multilabel_soft_margin_loss(", "bfloat16"),
)  # fmt: skip


def functions():
    for space, module in SPACES.items():
        for name in sorted(dir(module)):
            function = getattr(module, name)
            home = str(getattr(function, "__module__", ""))
            if name.startswith(("_", "set_", "fbgemm", "quantized", "mkldnn", "miopen", "cudnn")) or name in LEFT_OUT or isinstance(function, type):
                continue
            if callable(function) and not (space == "torch" and home.startswith(("torch._C._", "typing", "torch._jit", "torch.jit"))):
                yield f"{space}.{name}"


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("part", range(8))
@pytest.mark.filterwarnings("ignore")
def test_what_functions_do(part, backend):
    """The calls are shared out: each is made with one backend and one kind of tensors."""
    kinds = itertools.cycle(TENSORS)
    calls = (f"{name}({arguments.strip()})" for name in functions() for arguments in ARGUMENTS)
    for call in itertools.islice(calls, part + (0 if backend == "eager" else 8), None, 16):
        namespace = {}
        exec(f"def f(o, p):\n  return {call}", globals(), namespace)
        kind = next(kinds)
        if any(call.startswith(start) and kind == limited for start, limited in KNOWN):
            continue
        oxyfuel.reset()
        compiled = oxyfuel.compile(namespace["f"], backend=backend)
        for number in (1, 2):
            wanted = seen(namespace["f"], kind, number)
            found = seen(compiled, kind, number)
            tolerance = (0.05, 0.005) if kind == "bfloat16" else (1e-3, 1e-6)
            assert is_close(found, wanted, *tolerance), (call, kind, number, found, wanted)
        assert_reasons_are_readable((call, kind))
