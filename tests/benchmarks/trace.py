"""A saved trace of 200 MB: how long the window takes until every pane shows its final counts, against tlparse.

Both read the same file in turns. tlparse is wanted by this benchmark alone: `pip install tlparse`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, median, report

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = ROOT / "tests" / "transcripts" / "h200"
RECORDED = ("graph_break_and_recompile", "training_step_bf16", "mlp_max_autotune", "cudagraph_dynamic_shapes")
SIZE = 200_000_000
RATIO = 0.25
MEMORY = 300_000_000
# frames of one recording are numbered below this
FRAMES = 100

_FRAME = re.compile(rb'"frame_id": (\d+)')
_STAMP = re.compile(rb"^V(\d{4}) (\d\d):(\d\d):(\d\d)(\.\d+)")
_TS = re.compile(rb'"ts": ([\d.]+)')
_CHECKSUM = re.compile(rb'"has_payload": "\w{32}"')

# in a process of its own, so that its memory is what opening took
WINDOW = """
import json, resource, sys, time
from pathlib import Path
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication
from compilescope.main import WindowApp
from compilescope.settings import Settings

app = QApplication([])
parts = WindowApp(app, Settings(scheme="light"))
parts.window.show()

def until(condition):
    loop = QEventLoop()
    timer = QTimer()
    timer.timeout.connect(lambda: loop.quit() if condition() else None)
    timer.start(10)
    loop.exec()

settled = []
parts.settled.connect(lambda: settled.append(True))
until(lambda: settled and parts.state.environment is not None)

# how long the window does not get to anything while it reads
beats = []
beat = QTimer()
beat.timeout.connect(lambda: beats.append(time.perf_counter()))
beat.start(10)
began = time.perf_counter()
parts.window.traces.open(Path(sys.argv[1]))
until(lambda: bool(parts.state.runs))
read = time.perf_counter() - began
tabs = parts.window.workspace.tabs
for index in range(tabs.count()):
    if tabs.isTabVisible(index):
        tabs.setCurrentIndex(index)
        app.processEvents()
guards = parts.window.workspace.compiler.guards.pane
until(lambda: guards.view.topLevelItemCount() > 0)
took = time.perf_counter() - began
story = parts.state.runs[0].story
print(json.dumps({
    "seconds": took,
    "read": read,
    "stall": max(b - a for a, b in zip(beats, beats[1:])),
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "counts": [len(story.phases), story.graphs, len(story.cache), len(story.texts), len(story.kernels)],
}), flush=True)
parts.close()
import os
os._exit(0)
"""


def write_log(path: Path) -> None:
    """Recorded traces again and again, each time with other frames and later, as a long job would write them."""
    recorded = [gzip.decompress((TRANSCRIPTS / f"{name}.log.gz").read_bytes()) for name in RECORDED]
    written, number, offset_s = 0, 0, 0.0
    with path.open("wb") as file:
        while written < SIZE:
            text = recorded[number % len(recorded)]
            for record in _records(text):
                written += file.write(_moved(record, number * FRAMES, offset_s) + b"\n")
            number += 1
            offset_s += 30.0


def _records(text: bytes) -> Iterator[bytes]:
    start = 0
    for match in re.finditer(rb"\n(?=V\d)", text):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:].rstrip(b"\n")


def _moved(record: bytes, frames: int, offset_s: float) -> bytes:
    head, newline, payload = record.partition(b"\n")
    head = _FRAME.sub(lambda m: b'"frame_id": %d' % (int(m[1]) + frames), head)
    head = _STAMP.sub(lambda m: _later(m, offset_s), head)
    if b'"chromium_event"' in head:
        payload = _TS.sub(lambda m: b'"ts": %.1f' % (float(m[1]) + offset_s * 1e6), payload)
        plain = payload[1:].replace(b"\n\t", b"\n")
        head = _CHECKSUM.sub(b'"has_payload": "%s"' % hashlib.md5(plain).hexdigest().encode(), head)
    return head + newline + payload


def _later(match: re.Match[bytes], offset_s: float) -> bytes:
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4]) + int(offset_s)
    day = int(match[1]) + seconds // 86400
    hours, rest = divmod(seconds % 86400, 3600)
    return b"V%04d %02d:%02d:%02d" % (day, hours, rest // 60, rest % 60) + match[5]


def tlparse(program: str, log: Path, folder: Path) -> float:
    """Seconds that tlparse takes to convert the log."""
    shutil.rmtree(folder, ignore_errors=True)
    began = time.perf_counter()
    subprocess.run(
        [program, str(log), "-o", str(folder), "--no-browser"], check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - began


def window(log: Path, home: str) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "app"), "COMPILESCOPE_HOME": home}
    environment.setdefault("QT_QPA_PLATFORM", "offscreen")
    done = subprocess.run(
        [sys.executable, "-c", WINDOW, str(log)], env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tlparse", default=shutil.which("tlparse"), help="the tlparse program")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not arguments.tlparse:
        print("tlparse is not there: pip install tlparse, or give it with --tlparse.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "dedicated_log_torch_trace_large.log"
        write_log(log)
        log.read_bytes()  # into memory, for both alike
        theirs, ours = [], []
        for _ in range(arguments.rounds):
            ours.append(window(log, folder))
            theirs.append(tlparse(arguments.tlparse, log, Path(folder) / "tlparse"))
        size = log.stat().st_size
    print(f"{size / 1e6:.0f} MB; phases, graphs, lookups, texts, kernels: {ours[0]['counts']}")
    opened, converted = median([found["seconds"] for found in ours]), median(theirs)
    figures = [
        Figure(name="tlparse converts it, median", value=converted, unit="s"),
        Figure(name="the window shows its final counts, median", value=opened, unit="s"),
        Figure(name="of it until the file is read", value=median([found["read"] for found in ours]), unit="s"),
        Figure(name="ratio of the medians", value=opened / converted, unit="", most=RATIO),
        Figure(name="memory at its peak", value=max(f["memory"] for f in ours) / 1e6, unit="MB", most=MEMORY / 1e6),
        Figure(name="longest wait of the window meanwhile", value=max(f["stall"] for f in ours) * 1e3, unit="ms"),
    ]
    return report(f"Opening a saved trace, {arguments.rounds} rounds", figures)


if __name__ == "__main__":
    sys.exit(main())
