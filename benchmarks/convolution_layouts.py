"""Each convolution of a model alone, contiguous and channels-last, the weight contiguous: what runtime/cpu/packing.cpp decides by.

    python benchmarks/convolution_layouts.py [--models resnet50,mobilenetv3] [--batch 1]

Milliseconds are minima of a few calls. `share`: elements of input and output to elements of the weight.
"""

import argparse
import time

import models
import torch

CALLS = 7


def milliseconds(call):
    call()
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def convolutions(name, batch):
    """{(input sizes, weight sizes, stride, padding, groups): how often it runs}."""
    case = models.Case(name, "base", batch)
    model, found = case.build(), {}

    def note(module, inputs, output):
        key = (inputs[0].shape, module.weight.shape, module.stride, module.padding, module.groups)
        found[key] = found.get(key, 0) + 1

    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(note)
    with torch.no_grad():
        model(**case.inputs())
    return found


def measure(sizes, weight_sizes, stride, padding, groups):
    """(contiguous, channels-last) milliseconds forward, the same backward, and the share."""
    x, weight = torch.randn(sizes), torch.randn(weight_sizes)
    pairs = []
    for form in (torch.contiguous_format, torch.channels_last):
        laid = x.to(memory_format=form)
        out = torch.nn.functional.conv2d(laid, weight, None, stride, padding, 1, groups)
        upstream = torch.ones_like(out).to(memory_format=form)
        pairs.append(
            (
                milliseconds(lambda: torch.nn.functional.conv2d(laid, weight, None, stride, padding, 1, groups)),
                milliseconds(
                    lambda: torch.ops.aten.convolution_backward(
                        upstream, laid, weight, None, stride, padding, (1, 1), False, (0, 0), groups, (True, True, False)
                    )
                ),
            )
        )
    (forward, backward), (forward_last, backward_last) = pairs
    return forward, forward_last, backward, backward_last, (x.numel() + out.numel()) / weight.numel()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="resnet50,mobilenetv3")
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    for name in arguments.models.split(","):
        print(f"{name}, batch {arguments.batch}: share, forward contiguous / channels-last ms, backward the same")
        for key, count in convolutions(name, arguments.batch).items():
            with torch.no_grad():
                forward, forward_last, backward, backward_last, share = measure(*key)
            sizes, weight = ("x".join(map(str, part)) for part in key[:2])
            print(
                f"  {sizes:16} {weight:16} {count:2}x {share:9.2f}  {forward:7.3f} / {forward_last:7.3f} {forward / forward_last:5.2f}"
                f"  {backward:7.3f} / {backward_last:7.3f} {backward / backward_last:5.2f}"
            )


if __name__ == "__main__":
    main()
