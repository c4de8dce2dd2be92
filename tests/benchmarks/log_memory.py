"""What the application takes once 1,000,000 log lines have come through the supervisor, and whether all are found."""

from __future__ import annotations

import sys
import time

import psutil
from figures import Figure, report
from live_window import LiveWindow

from compilescope.domain.log_search import LogFilter, LogSearch

LINES = 1_000_000
RATE = 50_000
MOST_MB = 400


def main() -> int:
    live = LiveWindow()
    process = psutil.Process()
    before = process.memory_info().rss / 1e6
    began = time.monotonic()
    live.run(mode="rate", events=100, lines=RATE, seconds=LINES / RATE + 1, warm={"mode": "ok"})
    live.wait_until(lambda: len(live.log.store) >= LINES)
    took = time.monotonic() - began
    live.wait(0.5)
    rss = process.memory_info().rss / 1e6
    search = LogSearch(live.log.store, LogFilter(text=f"step {LINES - 1000}:"))
    began = time.monotonic()
    while not search.is_current:
        search.advance(0.01)
    figures = [
        Figure(name="application before, resident", value=before, unit="MB"),
        Figure(name="lines taken", value=len(live.log.store), unit=""),
        Figure(name="taken in", value=took, unit="s"),
        Figure(name="application with the lines, resident", value=rss, unit="MB", most=MOST_MB),
        Figure(name="searching all of them", value=time.monotonic() - began, unit="s"),
        Figure(name="lines missed by the search", value=abs(len(search.matches) - 1), unit="", most=0),
    ]
    status = report("Memory with a million log lines", figures)
    live.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
