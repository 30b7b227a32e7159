"""A process that compiles Triton kernels for oxyfuel: started by src/backend/cuda/compile, never imported.

It reads requests from standard input and writes an answer to each to standard output, a socket both. A message is the
number of its fields, then each field's length and bytes; numbers are of 4 bytes, little-endian.

    request   name, architecture ("90"), "1" if every pointer is a multiple of 16, source
    answer    "ok", machine code, threads, bytes of shared memory, pointers that a launch adds behind the arguments
              "error", text

It ends when its input does, or when nothing has come for a minute. What it shares with nobody: Triton's cache lies in a
folder that goes with it.
"""

import linecache
import os
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import traceback

IDLE_SECONDS = 60


def read_exactly(stream, count):
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def read_message(stream):
    (count,) = struct.unpack("<I", read_exactly(stream, 4))
    return [read_exactly(stream, struct.unpack("<I", read_exactly(stream, 4))[0]) for _ in range(count)]


def write_message(stream, fields):
    stream.write(struct.pack("<I", len(fields)))
    for field in fields:
        data = field if isinstance(field, bytes) else str(field).encode()
        stream.write(struct.pack("<I", len(data)) + data)
    stream.flush()


def load(name, source):
    """The names that the kernel's text defines. Triton reads the text of functions where linecache keeps it."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"__name__": name}
    exec(compile(source, file, "exec"), names)
    return names


def compiled(name, architecture, is_aligned, source):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = load(name, source)
    launch = names[f"{name}_launch"]
    arguments, constants = launch["signature"], launch["constants"]
    aligned = {(k,): [["tt.divisibility", 16]] for k, kind in enumerate(arguments.values()) if is_aligned and kind.startswith("*")}
    text = ASTSource(names[name], {**arguments, **dict.fromkeys(constants, "constexpr")}, constants, aligned)
    kernel = triton.compile(text, target=GPUTarget("cuda", architecture, 32), options=launch["options"])
    entry = re.search(r"\.entry [^(]*\(([^)]*)\)", kernel.asm["ptx"])
    more = entry[1].count(".param") - len(arguments)
    return ["ok", kernel.asm["cubin"], 32 * kernel.metadata.num_warps, kernel.metadata.shared, more]


def serve(requests, answers):
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        try:
            name, architecture, is_aligned, source = read_message(requests)
        except EOFError:
            return
        try:
            answer = compiled(name.decode(), int(architecture), is_aligned == b"1", source.decode())
        except Exception:
            answer = ["error", traceback.format_exc()]
        write_message(answers, answer)


def main():
    del sys.path[0]  # the package's own folder
    requests, answers = os.fdopen(0, "rb", 0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Triton prints is no answer
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # the folder goes then, too
    folder = tempfile.mkdtemp(prefix="oxyfuel-triton-")
    os.environ["TRITON_CACHE_DIR"] = folder
    try:
        serve(requests, answers)
    except BrokenPipeError:
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Python's own end is no place for an exception


if __name__ == "__main__":
    main()
