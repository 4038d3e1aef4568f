"""Encodings of segments: how fast each is decoded, and single rows by their ordinals. No server takes part."""
import json
import pathlib
import subprocess

import oltp

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Together with the server, so that libraries are compiled as for it.
COMMAND = ["cargo", "bench", "-q", "-p", "basalt", "-p", "basalt-cold", "--bench", "encodings"]


def decoded(options, engines):
    """GB/s of decoded bytes on one and on two threads; `failed` if a bar was missed."""
    finished = subprocess.run(COMMAND, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=oltp.build_environment())
    lines = finished.stdout.splitlines()
    if not lines:
        raise RuntimeError("the benchmark of encodings did not run")
    missed = {"failed": "a bar was missed"} if finished.returncode else {}
    return json.loads(lines[-1]) | missed
