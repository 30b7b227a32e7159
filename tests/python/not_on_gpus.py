"""Files of tests that `pytest --default-device cuda` leaves out, with what of them needs the CPU."""

ASSERTIONS = "indices out of range, which are assertions of the device"
OPERATORS = "operators of its own that have kernels for the CPU alone"
ELEMENTS = "elements of small tensors, which are known on the host alone"
GENERATORS = "threads, which make generators for the CPU"
NUMPY = "arrays of numpy"
ROUNDING = "eager's bits, where its kernels for GPUs round in another way or treat NaN and infinities otherwise"

REASONS = {
    "autograd/test_compiling_ahead.py": "children of a process that has used the device",
    "autograd/test_formulas_read_results.py": "operators that have no gradient in older releases",
    "autograd/test_indices_written_before_backward.py": ASSERTIONS,
    "autograd/test_training.py": ROUNDING,
    "autograd/test_writes_between_passes.py": NUMPY,
    "driver/test_answers.py": ASSERTIONS,
    "driver/test_backends.py": "programs that name the CPU, and " + ASSERTIONS,
    "driver/test_breaks.py": NUMPY,
    "driver/test_eager_until_ready.py": "compilations that end soon",
    "dynamic/data/test_data_dependent.py": GENERATORS,
    "dynamic/data/test_elements_that_vary.py": ELEMENTS,
    "dynamic/data/test_floats_of_data.py": ROUNDING,
    "dynamic/data/test_operators_of_parts.py": "shape rules on symbols that are for the CPU alone",
    "dynamic/data/test_unbacked.py": "a newer release",
    "dynamic/data/test_unlikely_sizes.py": ELEMENTS,
    "dynamic/interface/test_dynamic_shapes.py": ROUNDING,
    "dynamic/sizes/test_elements_with_symbols.py": ELEMENTS,
    "dynamic/sizes/test_float_arguments.py": ROUNDING,
    "dynamic/sizes/test_many_sizes.py": GENERATORS,
    "dynamic/sizes/test_numbers_as_arguments.py": ROUNDING,
    "dynamic/sizes/test_pipeline_on_symbols.py": ASSERTIONS,
    "dynamic/sizes/test_static_variants.py": "static variants, which there are none of on GPUs",
    "dynamic/sizes/test_training_of_one_row.py": ROUNDING,
    "eval/externals/test_effects.py": ASSERTIONS,
    "eval/externals/test_guards.py": NUMPY,
    "eval/externals/test_opaque_values.py": ASSERTIONS,
    "eval/machine/test_code_in_between.py": "a depth of recursion that torch.set_default_device() needs itself",
    "eval/machine/test_exceptions.py": ASSERTIONS,
    "eval/machine/test_variances.py": ROUNDING,
    "eval/numbers/test_known_values.py": ELEMENTS,
    "eval/objects/test_special_methods_in_c.py": ASSERTIONS,
    "eval/objects/test_subclasses_of_builtins.py": ASSERTIONS,
    "eval/torch/test_custom_operator_gradients.py": OPERATORS,
    "eval/torch/test_custom_operators.py": OPERATORS,
    "eval/torch/test_custom_operators_that_write.py": OPERATORS,
    "eval/torch/test_default_device.py": "another default device",
    "eval/torch/test_fused_optimizers.py": "fused optimizers that there are for the CPU alone",
    "eval/torch/test_gradient_scaling.py": "scaling in bfloat16, which eager's kernels for GPUs refuse",
    "eval/torch/test_legacy_tensors.py": "constructors that name the CPU",
    "eval/torch/test_operator_calls.py": OPERATORS,
    "eval/torch/test_refused_by_eager.py": ASSERTIONS,
    "eval/torch/test_tensor_methods.py": ASSERTIONS,
}
