"""Which PyTorch a Python has, found without importing it: a torch that is unpacked but lacks NVIDIA's libraries will do.

CMake runs this file and reads its lines: the folder of the package, and the release ("2.13.0"). scikit-build-core calls
``dynamic_metadata``, so that a package asks for the release that its extension was built against.
"""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

# Each release that oxyfuel builds against, and the torchvision that was made for it.
RELEASES = {"2.11.0": "0.26.0", "2.12.1": "0.27.1", "2.13.0": "0.28.0", "2.14.1": "0.29.1", "2.15.0": "0.29.2"}


def folder():
    """The folder of the package. ImportError if there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        raise ImportError(f"{sys.executable} has no torch: install torch {supported()} first")
    return Path(spec.origin).parent


def release():
    """The public part of the version: "2.13.0" of "2.13.0+cpu". ImportError if it is not one that oxyfuel builds against."""
    folder()
    version = importlib.metadata.version("torch").split("+")[0]
    if not series(oldest()) <= series(version) <= series(newest()):
        raise ImportError(f"oxyfuel builds against torch {supported()}; {sys.executable} has torch {version}")
    return version


def series(version):
    """(2, 13) of "2.13.0": its patch releases have one C++ interface."""
    return tuple(int(part) for part in version.split(".")[:2])


def oldest():
    return min(RELEASES, key=series)


def newest():
    return max(RELEASES, key=series)


def as_text(numbers):
    return ".".join(map(str, numbers))


def supported():
    """ "2.11 to 2.15" """
    return f"{as_text(series(oldest()))} to {as_text(series(newest()))}"


def dynamic_metadata(settings, project):
    """Called by scikit-build-core; the fields of the project's metadata that depend on what is built against."""
    return {"dependencies": [f"torch=={as_text(series(release()))}.*"]}


if __name__ == "__main__":
    try:
        print(folder(), release(), sep="\n")
    except ImportError as error:
        sys.exit(str(error))
