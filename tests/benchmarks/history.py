"""How fast a history of 10,000 runs opens, lists and filters. Run: python tests/benchmarks/history.py"""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
import time
import zlib
from pathlib import Path

for folder in ("app", "tests"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from fakes.comparisons import SCRIPT, run_events  # noqa: E402

from compilescope.domain import events as e  # noqa: E402
from compilescope.domain.cachekeys import Component  # noqa: E402
from compilescope.domain.config import Config  # noqa: E402
from compilescope.domain.keyhistory import StoredKey  # noqa: E402
from compilescope.domain.workload import Workload  # noqa: E402
from compilescope.store.history import History  # noqa: E402
from compilescope.store.keys import insert_keys  # noqa: E402
from compilescope.store.records import StoredRequest  # noqa: E402
from compilescope.store.session import Session  # noqa: E402
from compilescope.store.statements import insert, run_values, summarise  # noqa: E402

COMPARISONS, RUNS_EACH = 10_000, 1
OPEN_LIMIT_S, FILTER_LIMIT_S = 0.300, 0.050
MODES = ("default", "reduce-overhead", "max-autotune", None)


def fill(path: Path) -> None:
    """Write 10,000 finished runs without the recorder, which would fold each."""
    History(path).close()
    events = run_events(Config(), 1.4, samples=200)
    recording = zlib.compress("\n".join(e.encode(event) for event in events).encode())
    rng = random.Random(1)
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        for number in range(COMPARISONS):
            add_comparison(connection, number, recording, rng)


def add_comparison(connection: sqlite3.Connection, number: int, recording: bytes, rng: random.Random) -> None:
    name = f"comparison{number:05}"
    script = f"/home/someone/project{number % 40}/models/encoder_{number}.py"
    row = {"id": name, "created": 1.7e9 + number, "title": f"Encoder {number}", "script": script}
    insert(connection, "comparisons", row)
    insert(connection, "sources", {"comparison_id": name, "text": SCRIPT})
    for position in range(RUNS_EACH):
        config = Config(mode=MODES[position % 4], dynamic=(None, True)[position // 4])
        request = StoredRequest(id=f"{name}-{position}", config=config, workload=Workload(script=script))
        figures = {"position": position, "state": "over", "outcome": "finished", "began": 1.7e9, "ended": 1.7e9 + 60}
        figures |= {"eager_s": 1e-3, "compiled_s": 7e-4, "speedup": rng.uniform(0.9, 2.2), "verdict": "faster"}
        figures |= {"torch": "2.13.0", "device": "NVIDIA H200"}
        insert(connection, "runs", run_values(name, request, "", Session()) | figures)
        insert(connection, "recordings", {"run_id": request.id, "lines": recording})
        insert_keys(connection, request.id, [cache_key(number, script)])
    summarise(connection, name)


def cache_key(number: int, script: str) -> StoredKey:
    """A key as torch makes them: 540 parts, of which a dozen are its own."""
    parts = [Component(digest=f"{part:052}", name=f"inductor_config[{part}]", value="False") for part in range(528)]
    parts += [
        Component(digest=f"{number:040}{part:012}", name=f"example_inputs[{part}]", value="shape=torch.Size([8, 128])")
        for part in range(12)
    ]
    return StoredKey(
        cache="fx_graph", key=f"f{number}", origin="", script=script, graph="0/0", start="cold", parts=tuple(parts)
    )


def main() -> int:
    """Print the figures; 1 where one misses its limit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite3"
        fill(path)
        start = time.perf_counter()
        history = History(path)
        opened = time.perf_counter()
        rows = history.comparisons()
        listed = time.perf_counter()
        runs = history.runs()
        listed_runs = time.perf_counter()
        slowest = max(filter_time(history, "encoder 12"[:length]) for length in range(1, 11))
        loading = time.perf_counter()
        history.load(rows[0].id)
        loaded = time.perf_counter()
        searched = time.perf_counter()
        found = history.nearest_key(cache_key(COMPARISONS, "/a/new/script.py"))
        explained = time.perf_counter()
        count = history.count()
        history.close()
        print(f"{len(runs)} runs in {count} comparisons, {path.stat().st_size / 1e6:.0f} MB")
    print(f"open {1e3 * (opened - start):.0f} ms, list comparisons {1e3 * (listed - opened):.0f} ms, ", end="")
    print(f"list runs {1e3 * (listed_runs - listed):.0f} ms (limit of opening and listing {1e3 * OPEN_LIMIT_S:.0f} ms)")
    print(f"slowest keystroke {1e3 * slowest:.0f} ms (limit {1e3 * FILTER_LIMIT_S:.0f} ms)")
    print(f"load one comparison of {RUNS_EACH} run {1e3 * (loaded - loading):.0f} ms")
    print(f"nearest cache key {1e3 * (explained - searched):.0f} ms, in a thread: {found.origin if found else 'none'}")
    return int(listed - start > OPEN_LIMIT_S or slowest > FILTER_LIMIT_S)


def filter_time(history: History, search: str) -> float:
    start = time.perf_counter()
    history.comparisons(search)
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
