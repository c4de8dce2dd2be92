"""What an export becomes here: ids of its own, traces in folders, and cache keys to compare with."""

from __future__ import annotations

from pathlib import Path

from compilescope.domain.keyhistory import StoredKey, stored_keys, with_parts
from compilescope.domain.run import Run
from compilescope.store import exchange
from compilescope.store.exchange import Archive, ArchivedRun
from compilescope.store.records import folded, stored_request


def take_in(file: Path, archive: Archive, folder: Path, *, is_known: bool) -> dict[str, list[StoredKey]]:
    """Write an export's traces under `folder`. The ids that its runs get, in order, with the cache keys of each.

    `is_known`: the comparison is here already, so this one is another.
    """
    ids = [str(run.values["id"]) for run in archive.runs]
    if is_known or len(set(ids)) < len(ids) or any((folder / run_id).exists() for run_id in ids):
        ids = [exchange.new_id() for _ in ids]
    exchange.unpack_traces(file, {number: folder / run_id for number, run_id in enumerate(ids)})
    return {
        run_id: with_parts(stored_keys(_run(run, run_id, folder / run_id)))
        for run, run_id in zip(archive.runs, ids, strict=True)
    }


def _run(run: ArchivedRun, run_id: str, folder: Path) -> Run:
    return folded(stored_request(dict(run.values) | {"id": run_id}), run.values["label"], run.lines, folder)
