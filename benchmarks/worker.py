"""Measures one model in this process and prints one line of JSON. Started by run.py.

time: eager, oxyfuel and torch.compile side by side, one call each in turn, after each one's first call was timed.
memory: one backend alone, under memory_hook.c.
"""

import argparse
import copy
import ctypes
import gc
import json
import os
import time

import accuracy
import torch
from models import Case

EAGER, OXYFUEL, PEER = "eager", "oxyfuel", "torch.compile"
CAPTURE, PEER_CAPTURE = "oxyfuel capture", "torch.compile capture"  # with backend="eager"


def compiled(model, backend, options):
    if backend == EAGER:
        return model
    if backend in (OXYFUEL, CAPTURE):
        import oxyfuel

        name = "eager" if backend == CAPTURE else "native"
        return oxyfuel.compile(model, backend=name, options=options.get(OXYFUEL) or None)
    torch._dynamo.reset()
    return torch.compile(model, backend="eager" if backend == PEER_CAPTURE else "inductor")


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure_time(case, backends, seconds, least_rounds, options):
    model, inputs = case.build(), case.inputs()
    result = {"case": vars(case), "threads": torch.get_num_threads(), "backends": {}}
    with case.grad_mode():
        wide_model, wide_inputs = accuracy.widened(model, inputs)
        first = copy.deepcopy(model) if case.mode == "whole_step" else model
        expected = case.step(first, case.program(first), inputs)
        del first
        drawn = torch.get_rng_state()
        # A step with dropout draws other numbers in float64: it is held against eager's, which draws ours.
        has_dropout = case.trains and not torch.equal(drawn, torch.manual_seed(0).get_state())
        reference = expected if has_dropout else case.step(wide_model, case.program(wide_model), wide_inputs)
        del wide_model, wide_inputs
        calls = {}
        for backend in backends:
            record = result["backends"][backend] = {"seconds": []}
            # torch.compile's kernels take the weights' addresses at every call, which ends the freezing of weights that
            # it shares with oxyfuel. A whole step changes its model.
            alone = backend in (PEER, PEER_CAPTURE) or case.mode == "whole_step"
            own = copy.deepcopy(model) if alone else model
            function = compiled(case.program(own), backend, options)
            calls[backend] = lambda own=own, function=function: case.step(own, function, inputs)
            record["first_call"], output = timed(calls[backend])
            if not case.trains or backend != PEER:  # which has a random stream of its own
                verdict = accuracy.compare(output, expected, reference)
                record["accurate"], record["problems"] = verdict.ok, verdict.problems
                record["error"], record["eager_error"] = verdict.error, verdict.eager_error
            del output
            if backend in (OXYFUEL, CAPTURE):
                import oxyfuel

                record["metrics"] = oxyfuel.metrics()
        del reference, expected
        gc.collect()
        for _ in range(2):
            for call in calls.values():
                call()
        start = time.perf_counter()
        rounds = 0
        while rounds < least_rounds or time.perf_counter() - start < seconds:
            # Another order each round: who comes after whom must not matter.
            order = list(calls)
            order = order[rounds % len(order) :] + order[: rounds % len(order)]
            for backend in order:
                result["backends"][backend]["seconds"].append(timed(calls[backend])[0])
            rounds += 1
    return result


def measure_memory(case, backend, options):
    hook = ctypes.CDLL(os.environ["LD_PRELOAD"])
    for name in ("large_bytes_live", "large_bytes_peak"):
        getattr(hook, name).restype = ctypes.c_longlong
    gc.collect()
    before = hook.large_bytes_live()
    model, inputs = case.build(), case.inputs()
    with case.grad_mode():
        call = compiled(case.program(model), backend, options)
        for _ in range(3):
            case.step(model, call, inputs)
        gc.collect()
        held = hook.large_bytes_live() - before
        hook.large_bytes_reset_peak()
        for _ in range(3):
            case.step(model, call, inputs)
        peak = hook.large_bytes_peak() - before
    weights = sum(p.numel() * p.element_size() for p in [*model.parameters(), *model.buffers()])
    return {"backend": backend, "peak_bytes": peak, "held_bytes": held, "weight_bytes": weights}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["time", "memory"])
    parser.add_argument("--case", required=True, help="a Case as JSON")
    parser.add_argument("--backends", required=True, help="comma-separated")
    parser.add_argument("--seconds", type=float, default=10.0, help="of interleaved rounds")
    parser.add_argument("--rounds", type=int, default=15, help="at least")
    parser.add_argument("--options", default="{}", help="options of a backend, as JSON")
    arguments = parser.parse_args()
    case = Case(**json.loads(arguments.case))
    backends = arguments.backends.split(",")
    options = json.loads(arguments.options)
    if arguments.what == "time":
        result = measure_time(case, backends, arguments.seconds, arguments.rounds, options)
    else:
        result = measure_memory(case, backends[0], options)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
