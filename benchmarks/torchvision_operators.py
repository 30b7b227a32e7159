"""Makes torchvision importable beside a torch that it was not built for.

The registry has torchvision for CUDA only. Its compiled operators then cannot be loaded, and importing it fails
where it attaches shape functions to them. timm and transformers only use its Python parts, so it is enough that the
operators exist. Import this module before timm or transformers.
"""

import importlib.util

import torch

_BOX_POOLING = "SymInt pooled_height, SymInt pooled_width"
_INPUT_SIZE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONVOLUTION = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)


def _tensors(*names):
    return ", ".join(f"Tensor {name}" for name in names)


def _pooling_backward(*tensors, extra=()):
    return ", ".join([_tensors(*tensors), "float spatial_scale", _BOX_POOLING, *extra, _INPUT_SIZE])


# operator: (arguments, number of result tensors)
_OPERATORS = {
    "nms": (_tensors("dets", "scores") + ", float iou_threshold", 1),
    "qnms": (_tensors("dets", "scores") + ", float iou_threshold", 1),
    "roi_pool": (f"{_tensors('input', 'rois')}, float spatial_scale, {_BOX_POOLING}", 2),
    "_roi_pool_backward": (_pooling_backward("grad", "rois", "argmax"), 1),
    "ps_roi_pool": (f"{_tensors('input', 'rois')}, float spatial_scale, {_BOX_POOLING}", 2),
    "_ps_roi_pool_backward": (_pooling_backward("grad", "rois", "channel_mapping"), 1),
    "roi_align": (
        f"{_tensors('input', 'rois')}, float spatial_scale, {_BOX_POOLING}, int sampling_ratio, bool aligned",
        1,
    ),
    "qroi_align": (
        f"{_tensors('input', 'rois')}, float spatial_scale, int pooled_height, int pooled_width, "
        "int sampling_ratio, bool aligned",
        1,
    ),
    "_roi_align_backward": (
        f"{_tensors('grad', 'rois')}, float spatial_scale, {_BOX_POOLING}, {_INPUT_SIZE}, int sampling_ratio, "
        "bool aligned",
        1,
    ),
    "ps_roi_align": (
        f"{_tensors('input', 'rois')}, float spatial_scale, {_BOX_POOLING}, int sampling_ratio",
        2,
    ),
    "_ps_roi_align_backward": (
        _pooling_backward("grad", "rois", "channel_mapping", extra=("int sampling_ratio",)),
        1,
    ),
    "deform_conv2d": (f"{_tensors('input', 'weight', 'offset', 'mask', 'bias')}, {_CONVOLUTION}", 1),
    "_deform_conv2d_backward": (
        f"{_tensors('grad', 'input', 'weight', 'offset', 'mask', 'bias')}, {_CONVOLUTION}",
        5,
    ),
}


def declare():
    """Declares the operators that are missing. Does nothing where torchvision's own library can be loaded."""
    if importlib.util.find_spec("torchvision") is None or torch.version.cuda is not None:
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, (arguments, results) in _OPERATORS.items():
        returned = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
        library.define(f"{name}({arguments}) -> {returned}")
    return library


_library = declare()  # operators live as long as this
