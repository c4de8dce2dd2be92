"""How long stored runs of a script took, for a forecast of the next ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from compilescope.domain import events as e
from compilescope.domain.estimate import Earlier
from compilescope.store.recorder import recorded_lines
from compilescope.store.records import stored_request

# the newest: each has to be unpacked, and older ones add nothing to what a forecast can know
MOST = 24

FINISHED = """
SELECT r.* FROM runs AS r JOIN comparisons AS c ON c.id = r.comparison_id
WHERE c.script = ? AND r.outcome = 'finished' AND r.began IS NOT NULL AND r.ended > r.began
ORDER BY r.began DESC LIMIT ?
"""


def earlier(connection: sqlite3.Connection, script: str) -> list[Earlier]:
    """Finished runs of the script, the newest first."""
    rows = connection.execute(FINISHED, (script, MOST)).fetchall()
    return [_earlier(row, _timed_s(recorded_lines(connection, row["id"]))) for row in rows]


def _earlier(row: sqlite3.Row, timed_s: float) -> Earlier:
    request = stored_request(row)
    return Earlier(
        config=request.config,
        workload=request.workload,
        whole_s=row["ended"] - row["began"],
        timed_s=timed_s,
        budget_s=request.measurement.budget_s,
    )


def _timed_s(lines: Iterable[str]) -> float:
    """Seconds of both processes' timing."""
    return sum(stage.duration_s or 0.0 for stage in _stages(lines) if stage.name == "measure")


def _stages(lines: Iterable[str]) -> Iterator[e.Stage]:
    for line in lines:
        # decoding all of a long run only for its few stages would take a thousand times as long
        if '"measure"' in line and '"stage"' in line:
            event = e.decode(line)
            if isinstance(event, e.Stage):
                yield event
