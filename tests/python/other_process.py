"""Programs in a process with other settings than the one that tests run in. It serves one program after the other, since a process of
its own takes seconds to import PyTorch."""

import atexit
import json
import os
import subprocess
import sys

SERVER = """
import contextlib, io, json, sys, traceback
import torch, oxyfuel
answers = sys.stdout
for line in sys.stdin:
    oxyfuel.reset()
    said, error = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(json.loads(line), "<program>", "exec"), {"__name__": "__main__"})
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([said.getvalue(), error]), file=answers, flush=True)
"""


class OtherProcess:
    """`settings`: environment variables. The process begins with the first program and ends with this one."""

    def __init__(self, **settings):
        self.settings, self.process = settings, None

    def run(self, program):
        """The lines that the program prints. What it raises is an AssertionError here."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([sys.executable, "-c", SERVER], env=dict(os.environ, **self.settings), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
            atexit.register(self.process.kill)
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the process ended with {self.process.wait()}"
        said, error = json.loads(answer)
        assert error is None, error
        return said.splitlines()
