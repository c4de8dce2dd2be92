"""How long the report of a large comparison takes, and how large it is. Run: python tests/benchmarks/report.py"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

for folder in ("app", "tests"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from fakes.comparisons import SCRIPT, comparison  # noqa: E402

from compilescope.domain.config import Config  # noqa: E402
from compilescope.domain.results import comparison_json  # noqa: E402
from compilescope.report.pdf import write_pdf  # noqa: E402

LIMIT_S = 5.0
LIMIT_BYTES = 5_000_000


def sixty_configs() -> list[Config]:
    modes = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
    plain = [
        Config(mode=mode, dynamic=dynamic, fullgraph=fullgraph)
        for mode in modes
        for dynamic in (None, True, False)
        for fullgraph in (False, True)
    ]
    return plain + [Config(options={"epilogue_fusion": bool(i % 2), "max_fusion_size": i}) for i in range(36)]


def main() -> int:
    """Print the figures; 1 where one misses its limit."""
    full = comparison(sixty_configs(), speedups=(1.31, 1.84, 1.86, 0.93), samples=500, breaks=5, phases=40)
    start = time.perf_counter()
    comparison_json(full)
    judged = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.pdf"
        write_pdf(full, path, source=SCRIPT)
        written = time.perf_counter()
        size = path.stat().st_size
    print(f"judging 60 runs: {judged - start:.2f} s")
    print(f"writing the report of the judged comparison: {written - judged:.2f} s")
    print(f"both: {written - start:.2f} s (limit {LIMIT_S:.0f} s)")
    print(f"size: {size / 1e6:.2f} MB (limit {LIMIT_BYTES / 1e6:.0f} MB)")
    return int(written - start > LIMIT_S or size > LIMIT_BYTES)


if __name__ == "__main__":
    raise SystemExit(main())
