"""How long the window's event loop stands still while a child sends 5,000 events and 20,000 log lines a second."""

from __future__ import annotations

import argparse
import os
import sys
import time

from figures import Figure, quantile, report
from live_window import Heartbeat, LiveWindow

EVENTS, LINES = 5_000, 20_000
P99_MS, LONGEST_MS = 50, 100
BUSY_MS = 15


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    live = LiveWindow()
    idle = Heartbeat()
    live.wait(3)
    idle_gaps = idle.stop()
    live.run(mode="rate", events=EVENTS, lines=LINES, seconds=seconds + 2, warm={"mode": "ok"})
    live.wait_until(lambda: len(live.log.store) > LINES / 4)
    assert live.log.isVisible() and live.log.height() > 100
    run = live.parts.state.runs[0]
    lines, events, cpu, began = len(live.log.store), run.revision["all"], time.process_time(), time.monotonic()
    beat = Heartbeat()
    live.wait(seconds)
    gaps = beat.stop()
    took = time.monotonic() - began
    figures = [
        Figure(name="idle: 99th percentile of the gaps", value=quantile(idle_gaps, 0.99), unit="ms"),
        Figure(name="idle: longest gap", value=max(idle_gaps), unit="ms"),
        Figure(name="log lines taken in a second", value=(len(live.log.store) - lines) / took, unit="1/s"),
        Figure(name="events taken in a second", value=(run.revision["all"] - events) / took, unit="1/s"),
        Figure(name="one processor's share", value=(time.process_time() - cpu) / took * 100, unit="%"),
        Figure(name="99th percentile of the gaps", value=quantile(gaps, 0.99), unit="ms", most=P99_MS),
        Figure(name="longest gap", value=max(gaps), unit="ms", most=LONGEST_MS),
    ]
    load = os.getloadavg()[0]
    if max(idle_gaps) > BUSY_MS:
        print("The machine is busy with other things: even an idle window stood still. These figures say little.")
    status = report(f"Event loop under {EVENTS} events and {LINES} lines a second (load average {load:.1f})", figures)
    live.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
