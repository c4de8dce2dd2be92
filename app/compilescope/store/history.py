"""Every comparison that was ever made, kept as its events arrive."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from compilescope import paths
from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.estimate import Earlier
from compilescope.domain.keyhistory import StoredKey, stored_keys, with_parts
from compilescope.domain.run import Run
from compilescope.domain.workload import Measurement
from compilescope.store import exchange, keys, statements
from compilescope.store.database import Database, own_file
from compilescope.store.earlier import earlier as find_earlier
from compilescope.store.exchange import HistoryError, UnknownComparisonError
from compilescope.store.importing import take_in
from compilescope.store.recorder import Recorder, recorded_lines
from compilescope.store.records import (
    ComparisonRow,
    Request,
    RunRow,
    Unfinished,
    folded,
    stored_comparison,
    stored_request,
    summary_of,
    unfinished,
)
from compilescope.store.session import Session

Result = TypeVar("Result")
TAIL_CHARACTERS = 64 * 1024


class History:
    """The stored comparisons. Every method may be called from any thread.

    Changes are queued and written by the recorder's thread within 100 ms, in the order of the calls; reading uses a
    connection of its own. `notice` says what was wrong with the file when it was opened, `problem` what is wrong now.
    """

    def __init__(self, path: Path | None = None) -> None:
        file = path or own_file()
        self._traces = file.parent / paths.RUNS
        self._database = Database(file)
        self._session = Session()
        self.notice = self._database.problem
        self._recorder = Recorder(self._database, self._session)
        self._recorder.submit(self._find_interrupted)
        self._recorder.flush()

    @property
    def path(self) -> Path | None:
        """The file; None where the history is kept in memory only."""
        return self._database.path

    @property
    def problem(self) -> str:
        """A sentence while nothing can be written, else empty."""
        return self._recorder.problem

    def close(self) -> None:
        """Write what is queued and end the recorder's thread."""
        self._recorder.submit(self._session.end)
        self._recorder.close()
        self._database.close()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all changes are written; False where they are not in time."""
        return self._recorder.flush(timeout)

    # recording

    def start_comparison(self, comparison: Comparison, requests: Sequence[Request], *, title: str = "") -> None:
        """Note a comparison and the runs it is going to make, so that a killed application can resume it."""
        first = next((request.workload for request in requests if request.workload), None)
        script = first.script if first else ""
        row = {
            "id": comparison.id,
            "created": comparison.created,
            "noise_floor": comparison.noise_floor,
            "title": title or Path(script).name,
            "script": script,
        }
        labels = {run.id: run.label for run in comparison.runs}
        runs = [
            statements.run_values(comparison.id, request, labels.get(request.id, ""), self._session)
            for request in requests
        ]
        source = statements.source_of(script)
        self._recorder.submit(lambda connection: statements.insert_comparison(connection, row, runs, source))

    def add_run(self, comparison_id: str, request: Request, label: str = "") -> None:
        """Note one more run of a comparison, after those it has."""
        values = statements.run_values(comparison_id, request, label, self._session)
        self._recorder.submit(lambda connection: statements.append_run(connection, values))

    def arrange(self, comparison_id: str, run_ids: Sequence[str]) -> None:
        """Keep the runs of a comparison in this order; those that wait are resumed in it."""
        self._recorder.submit(lambda connection: statements.arrange(connection, comparison_id, run_ids))

    def start_run(self, run_id: str) -> None:
        """The run begins, perhaps anew: what an interrupted attempt told is dropped."""
        began = time.time()
        self._recorder.submit(lambda connection: statements.begin_run(connection, run_id, self._session.id, began))

    def append(self, run_id: str, events: Sequence[e.Event]) -> None:
        """Keep events of a run, in order."""
        self._recorder.put(run_id, [e.encode(event) for event in events])

    def finish_run(self, run: Run, *, log_tail: str = "", noise_floor: float | None = None) -> None:
        """The run is over and all its events were appended: fill its row and seal its recording."""
        own = {"label": run.label, "log_tail": log_tail[-TAIL_CHARACTERS:], "state": "over", "ended": time.time()}
        values, found = summary_of(run, noise_floor) | own, with_parts(stored_keys(run))
        self._recorder.submit(lambda connection: statements.end_run(connection, run.id, values, found))

    # reading

    def comparisons(self, search: str = "", limit: int = 500) -> list[ComparisonRow]:
        """Comparisons, newest first, that hold every word of `search` in their title, script, tags, notes, labels …
        The limit is what a list shows at once; more of ten thousand would only cost time at every keystroke."""
        words = search.casefold().split()
        query = statements.LIST.format(search="AND instr(words, ?) " * len(words))
        return [ComparisonRow._make(row) for row in self._rows(query, *words, limit)]

    def count(self) -> int:
        """How many comparisons there are."""
        return int(self._rows("SELECT count(*) FROM comparisons WHERE deleted_at IS NULL")[0][0])

    def runs(self, comparison_id: str | None = None, limit: int = 10_000) -> list[RunRow]:
        """Stored runs: of one comparison in its order, or of all, newest comparison first."""
        where = "c.deleted_at IS NULL" if comparison_id is None else "c.id = ?"
        given = () if comparison_id is None else (comparison_id,)
        return [RunRow._make(row) for row in self._rows(statements.RUNS.format(where=where), *given, limit)]

    def load(self, comparison_id: str) -> Comparison:
        """The comparison as it was, its runs folded from their stored events."""
        runs = [
            folded(stored_request(row), row["label"], lines, self._traces / row["id"])
            for row, lines in self._recordings(comparison_id)
        ]
        return stored_comparison(self._comparison(comparison_id), runs)

    def find(self, name: str) -> str:
        """The id that a person means by an id, the start of one, or "last"."""
        if name == "last":
            rows = self._rows("SELECT id FROM comparisons WHERE deleted_at IS NULL ORDER BY created DESC LIMIT 1")
        else:
            pattern = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            rows = self._rows(
                "SELECT id FROM comparisons WHERE deleted_at IS NULL AND id LIKE ? ESCAPE '\\' "
                "ORDER BY id != ? LIMIT 2", pattern, name,
            )  # fmt: skip
        if not rows or not name:
            raise UnknownComparisonError(
                f"The history has no comparison {name!r}.", hint="`compilescope history` lists them."
            )
        if len(rows) > 1 and rows[0]["id"] != name:
            raise UnknownComparisonError(f"Several comparisons begin with {name!r}.", hint="Give more of the name.")
        return str(rows[0]["id"])

    def source(self, comparison_id: str) -> str | None:
        """The script's text as it was when the comparison began."""
        rows = self._rows("SELECT text FROM sources WHERE comparison_id = ?", comparison_id)
        return str(rows[0][0]) if rows else None

    def measurement(self, comparison_id: str) -> Measurement | None:
        """How long each run of the comparison was to be measured."""
        rows = self._rows("SELECT * FROM runs WHERE comparison_id = ? ORDER BY position LIMIT 1", comparison_id)
        return stored_request(rows[0]).measurement if rows else None

    def log_tail(self, run_id: str) -> str:
        rows = self._rows("SELECT log_tail FROM runs WHERE id = ?", run_id)
        return str(rows[0][0]) if rows else ""

    def run_ids(self) -> set[str]:
        """The runs of all comparisons, deleted ones among them, since they may come back."""
        return {row[0] for row in self._rows("SELECT id FROM runs")}

    def same_key(self, asked: StoredKey) -> StoredKey | None:
        """The newest lookup of an earlier run that asked a cache for the very key."""
        return self._read(lambda connection: keys.same_key(connection, asked))

    def nearest_key(self, asked: StoredKey) -> StoredKey | None:
        """The key of an earlier run that differs in the fewest parts, with them. May take a quarter of a second."""
        return self._read(lambda connection: keys.nearest_key(connection, asked))

    def earlier(self, script: str) -> list[Earlier]:
        """How long runs of a script took, the newest first. May take a quarter of a second."""
        return self._read(lambda connection: find_earlier(connection, script))

    def unfinished(self) -> list[Unfinished]:
        """Comparisons whose application ended before they did, and the runs that would complete them."""
        return unfinished(self._rows(statements.UNFINISHED))

    # changing

    def rename(self, comparison_id: str, title: str) -> None:
        self._change(comparison_id, {"title": title})

    def set_tags(self, comparison_id: str, tags: Sequence[str]) -> None:
        kept = list(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
        self._change(comparison_id, {"tags": json.dumps(kept, ensure_ascii=False)})

    def set_notes(self, comparison_id: str, notes: str) -> None:
        self._change(comparison_id, {"notes": notes})

    def set_noise_floor(self, comparison_id: str, noise_floor: float) -> None:
        self._change(comparison_id, {"noise_floor": noise_floor})

    def set_play_offs(self, comparison: Comparison) -> None:
        self._change(comparison.id, {"play_offs": json.dumps([row.to_json() for row in comparison.play_offs])})

    def delete(self, comparison_id: str) -> None:
        """Take a comparison off the list; `undo_delete` brings it back until `purge`."""
        self._change(comparison_id, {"deleted_at": time.time()})

    def undo_delete(self, comparison_id: str) -> None:
        self._change(comparison_id, {"deleted_at": None})

    def purge(self, older_than_s: float = 7 * 86400.0) -> None:
        """Remove for good what was deleted so long ago."""
        before = time.time() - older_than_s
        self._recorder.submit(lambda connection: statements.purge(connection, before))

    def dismiss_unfinished(self, comparison_id: str) -> None:
        """The comparison stays as it is: its interrupted runs are not offered again."""
        self._recorder.submit(lambda connection: statements.dismiss_unfinished(connection, comparison_id))

    def export(self, comparison_id: str, file: Path) -> None:
        """Write one comparison as a file that `import_` reads, here or elsewhere. It holds the script's source."""
        found = self._comparison(comparison_id)
        exchange.write(file, found, self.source(comparison_id), self._recordings(comparison_id), self._traces)

    def import_(self, file: Path) -> str:
        """Add the comparison in a file; its id here. Nothing in the file is executed; its traces become files."""
        archive = exchange.read(file)
        comparison_id = exchange.new_id() if self._knows(archive.id) else archive.id
        found = take_in(file, archive, self._traces, is_known=comparison_id != archive.id)
        self._recorder.submit(lambda connection: statements.insert_archive(connection, comparison_id, archive, found))
        if not self.flush() or not self._knows(comparison_id):
            raise HistoryError("The imported comparison could not be stored.", hint=self.problem or "Try again.")
        return comparison_id

    # inner

    def _find_interrupted(self, connection: sqlite3.Connection) -> None:
        living = {self._session.id} | self._session.others(connection)
        statements.mark_interrupted(connection, living, self._traces)

    def _change(self, comparison_id: str, values: Mapping[str, object]) -> None:
        def change(connection: sqlite3.Connection) -> None:
            statements.update(connection, "comparisons", comparison_id, values)
            statements.summarise(connection, comparison_id)

        self._recorder.submit(change)

    def _knows(self, comparison_id: str) -> bool:
        return bool(self._rows("SELECT 1 FROM comparisons WHERE id = ?", comparison_id))

    def _comparison(self, comparison_id: str) -> sqlite3.Row:
        rows = self._rows("SELECT * FROM comparisons WHERE id = ?", comparison_id)
        if not rows:
            raise HistoryError(
                f"The history has no comparison {comparison_id!r}.", hint="`compilescope history` lists them."
            )
        return rows[0]

    def _recordings(self, comparison_id: str) -> list[tuple[sqlite3.Row, list[str]]]:
        """The runs of a comparison that have told anything, or are about to."""
        rows = self._rows("SELECT * FROM runs WHERE comparison_id = ? ORDER BY position", comparison_id)
        found = [(row, self._lines(row["id"])) for row in rows]
        return [(row, lines) for row, lines in found if lines or row["state"] == "running"]

    def _lines(self, run_id: str) -> list[str]:
        try:
            with self._database.reading() as connection:
                return recorded_lines(connection, run_id)
        except (sqlite3.DatabaseError, zlib.error, UnicodeDecodeError) as error:
            raise HistoryError(
                f"The record of run {run_id} cannot be read ({error}).", hint="The other comparisons are not affected."
            ) from error

    def _rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        return self._read(lambda connection: connection.execute(query, values).fetchall())

    def _read(self, read: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            with self._database.reading() as connection:
                return read(connection)
        except sqlite3.DatabaseError as error:
            raise HistoryError(
                f"The history cannot be read ({error}).",
                hint="Close other programs that use it; if it is damaged, the next start sets it aside.",
            ) from error
