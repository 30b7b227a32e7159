"""Which PyTorch a Python has, found without importing it: a torch that is unpacked but lacks NVIDIA's libraries will do.

CMake runs this file and reads its lines: the folder of the package, and the release ("2.13.0"). scikit-build-core calls
``dynamic_metadata``, so that a package asks for the release that its extension was built against.
"""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

OLDEST, NEWEST = (2, 11), (2, 15)


def folder():
    """The folder of the package. ImportError if there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        raise ImportError(f"{sys.executable} has no torch: install torch {as_text(OLDEST)} to {as_text(NEWEST)} first")
    return Path(spec.origin).parent


def release():
    """The public part of the version: "2.13.0" of "2.13.0+cpu". ImportError if it is not one that oxyfuel builds against."""
    folder()
    version = importlib.metadata.version("torch").split("+")[0]
    if not OLDEST <= series(version) <= NEWEST:
        raise ImportError(f"oxyfuel builds against torch {as_text(OLDEST)} to {as_text(NEWEST)}; "
                          f"{sys.executable} has torch {version}")
    return version


def series(version):
    """(2, 13) of "2.13.0": its patch releases have one C++ interface."""
    return tuple(int(part) for part in version.split(".")[:2])


def as_text(numbers):
    return ".".join(map(str, numbers))


def dynamic_metadata(settings, project):
    """Called by scikit-build-core; the fields of the project's metadata that depend on what is built against."""
    return {"dependencies": [f"torch=={as_text(series(release()))}.*"]}


if __name__ == "__main__":
    try:
        print(folder(), release(), sep="\n")
    except ImportError as error:
        sys.exit(str(error))
