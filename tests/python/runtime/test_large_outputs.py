"""Outputs of megabytes have memory of their own kind; they behave as any other tensor."""

import io
import threading

import pytest
import torch

import oxyfuel


@pytest.fixture
def x():
    return torch.randn(1024, 1024)


@pytest.fixture
def double():
    oxyfuel.reset()
    yield oxyfuel.compile(lambda x: x * 2, fullgraph=True)
    oxyfuel.reset()


def test_inference_tensors_and_versions(double, x):
    with torch.inference_mode():
        assert double(x).is_inference()
    y = double(x)
    assert not y.is_inference() and y._version == 0
    y.add_(1)
    assert y._version == 1


def test_resizing(double, x):
    y = double(x)
    y.resize_(2048, 2048)
    assert y.untyped_storage().nbytes() == 2048 * 2048 * 4
    torch.testing.assert_close(y.flatten()[: x.numel()], (x * 2).flatten())
    y.untyped_storage().resize_(0)
    assert y.untyped_storage().nbytes() == 0


def test_sharing_saving_and_borrowing(double, x):
    shared = double(x)
    shared.share_memory_()
    torch.testing.assert_close(shared, x * 2)
    file = io.BytesIO()
    torch.save(double(x), file)
    file.seek(0)
    torch.testing.assert_close(torch.load(file), x * 2)
    y = double(x)
    array = y.numpy()
    del y
    assert array[0, 0] == 2 * x[0, 0].item()


def test_freed_on_another_thread(double, x):
    held = [double(x) for _ in range(3)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    torch.testing.assert_close(double(x), x * 2)


@pytest.mark.parametrize("backend", ["native", "eager"])
def test_copies_of_parts_have_memory_of_their_own(x, backend):
    def f(x):
        y = x + 1
        return y[3].clone(), torch.cat([x, y])[5:6].clone(), (x * 2)[2]

    oxyfuel.reset()
    for ours, eager in zip(oxyfuel.compile(f, backend=backend)(x), f(x)):
        torch.testing.assert_close(ours, eager)
        assert ours.storage_offset() == eager.storage_offset()
        assert ours.untyped_storage().nbytes() == eager.untyped_storage().nbytes()
