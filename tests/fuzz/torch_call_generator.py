"""Random calls of torch's functions and of the methods of tensors, with arguments that fit and others, from a seed: programs as
those of program_generator.py, for the same runner."""

import random

import torch

from program_generator import Program

# What sets the state of the process, reads or writes files, gives memory that nobody has written or an address, or runs programs.
LEFT_OUT = set("""compile load save seed manual_seed initial_seed get_rng_state set_rng_state set_default_dtype set_default_device
set_default_tensor_type set_num_threads get_num_threads set_num_interop_threads get_num_interop_threads init_num_threads set_printoptions
use_deterministic_algorithms set_deterministic_debug_mode set_flush_denormal set_warn_always set_float32_matmul_precision set_grad_enabled
set_anomaly_enabled set_autocast_enabled set_autocast_cpu_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_dtype
set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled clear_autocast_cache
autocast_increment_nesting autocast_decrement_nesting is_autocast_enabled set_vital read_vitals import_ir_module
import_ir_module_from_buffer parse_ir parse_schema unify_type_list merge_type_from_type_comment fork wait vmap cond while_loop classproperty
export from_file from_dlpack to_dlpack from_numpy empty empty_like empty_strided empty_permuted empty_quantized new new_empty
new_empty_strided resize_ resize_as_ resize_as_sparse_ set_ data_ptr const_data_ptr mutable_data_ptr storage untyped_storage share_memory_
share_memory pin_memory cuda xpu ipu mtia hpu register_hook register_post_accumulate_grad_hook apply_ map_ map2_ module_load backward
retain_grad reinforce has_torch_function has_torch_function_unary has_torch_function_variadic handle_torch_function boolean_dispatch""".split())

TENSORS = ["x", "y", "b", "h", "i", "c"]
ARGUMENTS = [*TENSORS, *"""x y h x[0] x[:,1] x.t() y[:1] [x,x] (x,y) [x] 0 1 2 -1 -2 3 5 0.5 2.5 1e9 1j True False None 'mean' 'sum' 'ij,jk->ik'
(0,1) [0,1] (2,3) (3,2) (1,) () [] slice(0,1) float('inf') float('nan') torch.float32 torch.int64 torch.bool dim=0 dim=1 dim=-1 keepdim=True
dtype=torch.float64 dtype=torch.int32 out=None alpha=2 inplace=True training=False p=0.0 generator=None requires_grad=True
memory_format=torch.contiguous_format""".split()]  # fmt: skip
CALLS = ["(torch.arange(6.0).reshape(2, 3) - 2, torch.tensor([[1.0, 2.0, 0.5], [3.0, -1.0, 2.0]]), torch.tensor([[True, False, True], "
         "[False, True, True]]), torch.randn(2, 3, 4).double(), torch.tensor([0, 1]), torch.tensor(1.5))"] * 2  # fmt: skip


def names_of(owner):
    return sorted(name for name in dir(owner) if name[0].islower() and name not in LEFT_OUT and callable(getattr(owner, name)))


FUNCTIONS = [f"torch.{name}" for name in names_of(torch)] + [f"torch.nn.functional.{name}" for name in names_of(torch.nn.functional)]
METHODS = names_of(torch.Tensor)


def call(draw):
    is_method = draw.random() < 0.5
    count = draw.choice([0, 1, 1, 2, 2, 3])
    arguments = [draw.choice(ARGUMENTS) for _ in range(count)]
    if not is_method and draw.random() < 0.8:
        arguments.insert(0, draw.choice(TENSORS))
    words = {word.split("=")[0]: word for word in arguments if "=" in word}
    arguments = [word for word in arguments if "=" not in word] + list(words.values())
    function = f"{draw.choice(TENSORS)}.{draw.choice(METHODS)}" if is_method else draw.choice(FUNCTIONS)
    return f"{function}({', '.join(arguments)})"


def generate(seed):
    """The program of a seed."""
    draw = random.Random(seed)
    source = "@compile\ndef f(x, y, b, h, i, c):\n    r = []\n    z = x + 1\n"
    for _ in range(draw.randint(1, 3)):
        source += f"    try:\n        r.append({call(draw)})\n    except Exception as error:\n        r.append((type(error).__name__, str(error)))\n"
    return Program(seed, source + "    return r, z * 2\n", CALLS)
