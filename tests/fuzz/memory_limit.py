"""A limit to the memory that random programs take: with other sizes, broadcasting may ask for a hundred gigabytes."""

import contextlib
import os
import resource
from pathlib import Path

MOST_BYTES = 1 << 29


def _mapped_bytes():
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def limited_memory():
    """What runs inside raises if it asks for more than MOST_BYTES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [limit for limit in (soft, hard, _mapped_bytes() + MOST_BYTES) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def ran_out_of_memory(raised):
    """Whether an exception, as its type and text, says so."""
    return raised is not None and (raised[0] in ("MemoryError", "OutOfMemoryError") or any(text in raised[1] for text in ("can't allocate memory", "std::bad_alloc")))
