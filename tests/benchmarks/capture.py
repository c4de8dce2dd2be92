"""What listening takes of a cold first call with Inductor: the hooks' own clock, and pairs with and without them.

A cold compile varies by a third from one to the next, so the pairs can only show that no cost hides that the clock
does not see. Run: python tests/benchmarks/capture.py [PAIRS]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import Figure, median, report

APP = Path(__file__).resolve().parents[2] / "app"
MOST_SHARE = 5.0
# one cold first call in a process of its own; with hooks where the first argument says so
CHILD = """
import json, sys, time
sys.path.insert(0, sys.argv[3])
import torch
from torch import nn
from compilescope.worker import compiling
from compilescope.worker.capture import Capture
layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
model, x = nn.Sequential(nn.Linear(32, 64), layer, nn.Linear(64, 8)).eval(), torch.randn(4, 16, 32)
compiling.preload()
capture = Capture(lambda event: None, time.perf_counter, sys.argv[2])
hooked = sys.argv[1] == "hooked"
if hooked:
    capture.install()
    capture.begin_call()
compiled = torch.compile(model)
with torch.inference_mode():
    began = time.perf_counter()
    compiled(x)
    took = time.perf_counter() - began
print(json.dumps([took, capture.end_call() if hooked else 0.0]), flush=True)
import os
os._exit(0)
"""


def first_call(kind: str) -> tuple[float, float]:
    """Seconds of a cold first call, and of it what the hooks took."""
    with tempfile.TemporaryDirectory(prefix="compilescope-capture-", ignore_cleanup_errors=True) as folder:
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "cache")}
        command = [sys.executable, "-c", CHILD, kind, str(Path(folder) / "trace.log"), str(APP)]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    took, capture = json.loads(out.splitlines()[-1])
    return took, capture


def main(pairs: int) -> int:
    shares, ratios = [], []
    for _ in range(pairs):
        plain, _ = first_call("plain")
        hooked, capture = first_call("hooked")
        shares.append(100 * capture / hooked)
        ratios.append(hooked / plain)
    return report(
        f"Listening to a cold first call, {pairs} interleaved pairs",
        [
            Figure(
                name="share of the first call by the hooks' clock, median",
                value=median(shares),
                unit="%",
                most=MOST_SHARE,
            ),
            Figure(name="first call with hooks over without, median", value=median(ratios), unit=""),
            Figure(name="the same, least", value=min(ratios), unit=""),
            Figure(name="the same, most", value=max(ratios), unit=""),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
