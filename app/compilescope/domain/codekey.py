"""Which code a run's calls go through, so that configurations that compile to the same are known as such."""

from __future__ import annotations

import hashlib
import json

from compilescope.domain.run import ProcessStory, Run


def code_key(run: Run) -> str | None:
    """The same for runs of one workload that call the same generated code; None where that is not known.

    It stands for the texts of Inductor's modules, whether CUDA graphs replay them, and the options that they are built
    with. Code of other backends is not seen, and neither is what a call runs past the recompile limit.
    """
    story = run.story
    if story is None or run.config.backend != "inductor" or story.failed_compiles or story.recompile_limits:
        return None
    digests, graphs = _digests(story), _cudagraphs(run, story)
    if digests is None or graphs is None:
        return None
    parts = [digests, graphs, run.config.scope, dict(run.config.options or {})]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _digests(story: ProcessStory) -> list[str] | None:
    """Of all modules; None where the code of any graph was not told."""
    texts = [text for text in story.texts if text.kind == "output_code"]
    told = {text.compile_id for text in texts}
    if not texts or not all(text.digest for text in texts):
        return None
    captured = [name for name, row in story.compiles.items() if row.graphs]
    return sorted(text.digest for text in texts) if told.issuperset(captured) else None


def _cudagraphs(run: Run, story: ProcessStory) -> list[object] | None:
    """Whether any is replayed, and what is left out; None where torch began to make some and tells no more."""
    if run.is_on_cpu:
        return []
    is_recorded = any(row.state == "recorded" for row in story.cudagraphs)
    skips = sorted(row.reason or "" for row in story.skipped_cudagraphs)
    if not is_recorded and not skips and (run.config.wants_cudagraphs or story.asked_for_cudagraphs):
        return None
    return [is_recorded, skips]
