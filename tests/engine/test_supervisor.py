"""Runs of a fake worker through the supervisor: real processes, every kind of end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilescope import paths
from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.playoff import PlayOff, outcome
from compilescope.domain.run import Run
from compilescope.domain.workload import Job, Measurement, Workload
from compilescope.engine.command import job_of
from compilescope.engine.feed import RunEvents, RunStarted
from compilescope.engine.request import play_off_request
from compilescope.engine.supervisor import RunRequest


def test_that_a_run_is_a_cold_process_and_then_a_warm_one(engine: Any) -> None:
    told = engine.run("ok")

    assert told.ended.outcome == "finished"
    assert [hello.start for hello in told.of(e.Hello)] == ["cold", "warm"]
    assert isinstance(told.items[0], RunStarted)


def test_that_the_events_fold_into_a_run(engine: Any) -> None:
    told = engine.run("ok")

    run = Run("a", config=Config(), workload=Workload(script="s.py")).apply_all(told.events)

    assert run.outcome == "finished"
    assert run.cold and run.warm
    assert run.cold.graphs == 1
    assert len(run.cold.series[0, "eager", "back_to_back"].seconds) == 30


def test_that_cold_and_warm_share_a_fresh_cache_that_is_gone_afterwards(engine: Any) -> None:
    before = set(paths.inductor_caches().iterdir())
    told = engine.run("report_surroundings")

    cold, warm = (json.loads(line) for line in told.lines)
    assert cold["cached"] == []
    assert warm["cached"] == ["left by a process"]
    assert cold["TORCHINDUCTOR_CACHE_DIR"] == warm["TORCHINDUCTOR_CACHE_DIR"]
    assert cold["COMPILESCOPE_RUN"] == engine.requests[0].id
    engine.supervisor.close()
    assert not Path(cold["TORCHINDUCTOR_CACHE_DIR"]).exists()
    assert set(paths.inductor_caches().iterdir()) <= before


def test_that_the_users_own_cache_is_used_when_asked_for(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("TORCH_COMPILE_JOB_ID", "job")

    told = engine.run("report_surroundings", request={"cache": "mine"})

    cold = json.loads(told.lines[0])
    assert cold["TORCHINDUCTOR_CACHE_DIR"] is None
    assert cold["TORCH_COMPILE_JOB_ID"] is None


def test_that_the_worker_runs_in_the_scripts_folder(engine: Any, tmp_path: Path) -> None:
    told = engine.run("report_surroundings")

    assert json.loads(told.lines[0])["folder"] == str(tmp_path)


def test_that_a_play_off_is_a_cold_and_a_warm_process_that_know_both_configurations(engine: Any) -> None:
    one = RunRequest(config=Config(mode="reduce-overhead"), measurement=Measurement(budget_s=8.0), cache="mine")
    request = play_off_request(one, RunRequest(config=Config(dynamic=True)))

    job = job_of(request, "cold")
    told = engine.run("ok", request={"task": "playoff", "rival": request.rival})

    assert (job.task, job.config, job.rival) == ("playoff", Config(mode="reduce-overhead"), Config(dynamic=True))
    assert Job.decode(job.encode()) == job
    assert (job.measurement.budget_s, job.trace, request.cache) == (4.0, None, "mine")
    assert told.ended.outcome == "finished"
    assert [hello.start for hello in told.of(e.Hello)] == ["cold", "warm"]


def test_that_a_play_off_that_fails_ends_as_any_run(engine: Any) -> None:
    told = engine.run("ok", request={"task": "playoff", "rival": Config()}, playoff={"mode": "fail"})

    run = Run("p", config=Config(), workload=Workload(script="s.py")).apply_all(told.events)
    one, two = (Run(name, config=Config(), workload=Workload(script="s.py")) for name in ("one", "two"))
    assert told.ended.outcome == "failed"
    assert outcome(run, one, two) == PlayOff(one="one", two="two", problem="no such thing")


def test_that_an_inspection_is_one_process(engine: Any) -> None:
    told = engine.run("ok", request={"task": "inspect"})

    assert told.ended.outcome == "finished"
    assert len(told.of(e.Hello)) == 1
    assert told.of(e.WorkloadReady)[0].entry == "Model"


def test_that_a_failure_the_worker_tells_of_ends_the_run_as_failed(engine: Any) -> None:
    ended = engine.run("fail").ended

    assert ended.outcome == "failed"
    assert (ended.error.stage, ended.error.type, ended.error.hint) == ("load", "ValueError", "Try another.")


def test_that_a_crash_tells_its_signal_stage_and_last_lines(engine: Any) -> None:
    ended = engine.run("crash").ended

    assert (ended.outcome, ended.signal, ended.exit_code) == ("crashed", "SIGSEGV", None)
    assert "segmentation fault" in ended.error.message
    assert ended.error.stage == "eager"
    assert ended.last_lines == tuple(f"line {number}" for number in range(50, 100))


def test_that_a_warm_process_that_crashes_ends_the_run(engine: Any) -> None:
    told = engine.run("ok", warm={"mode": "crash", "signal": "SIGKILL"})

    assert told.ended.outcome == "crashed"
    assert "memory" in told.ended.error.hint


def test_that_leaving_without_a_word_is_a_crash_even_with_status_0(engine: Any) -> None:
    for code in (0, 3):
        ended = engine.run("exit_code", code=code).ended

        assert (ended.outcome, ended.exit_code) == ("crashed", code)
        assert ended.last_lines == ("last words",)


def test_that_a_run_that_takes_too_long_is_stopped_and_says_where(engine: Any) -> None:
    told = engine.run("hang", request={"timeout_s": 0.5})

    assert told.ended.outcome == "timed_out"
    assert told.ended.error.stage == "compile"
    assert "500 ms" in told.ended.error.message


def test_that_an_interrupt_told_as_a_failure_is_still_the_timeout(engine: Any) -> None:
    told = engine.run("interrupted_with_a_failure", request={"timeout_s": 0.5})

    assert told.ended.outcome == "timed_out"


def test_that_the_time_limit_covers_both_processes(engine: Any) -> None:
    told = engine.run("ok", request={"timeout_s": 1.0}, warm={"mode": "hang"})

    assert told.ended.outcome == "timed_out"
    assert len(told.of(e.Hello)) == 2


def test_that_garbage_is_log_and_the_run_goes_on(engine: Any) -> None:
    told = engine.run("garbage")

    assert told.ended.outcome == "finished"
    assert b"plain text" in told.lines
    assert b"{not json}" in told.lines
    assert b"\xff\xfe\x00 not UTF-8" in told.lines
    assert b"100%" in told.lines and b"done" in told.lines
    assert b"no line end" in told.lines
    assert b"cut in the mid" in told.lines
    assert max(map(len, told.lines)) < 40_000
    assert [event.entry for event in told.of(e.WorkloadReady)] == ["Model", "Model"]


def test_that_all_lines_of_a_short_flood_arrive_in_order(engine: Any) -> None:
    told = engine.run("rate", events=0, lines=50_000, seconds=1, warm={"mode": "ok"})

    numbers = [int(line.split()[2][:-1]) for line in told.lines]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 45_000


def test_that_a_flood_does_not_fill_the_memory(engine: Any) -> None:
    engine.submit("flood", seconds=2, warm={"mode": "ok"})

    assert engine.await_standstill() < 70 << 20
    assert engine.await_end(60).ended.outcome == "finished"


def test_that_runs_wait_for_each_other(engine: Any) -> None:
    first, second = engine.submit("ok"), engine.submit("ok")
    items = engine.await_end().items + engine.await_end().items

    order = [item.run_id for item in items]
    assert order == sorted(order, key=[first.id, second.id].index)


def test_that_a_failing_run_does_not_stop_the_next(engine: Any) -> None:
    engine.submit("crash")
    engine.submit("ok")

    assert engine.await_end().ended.outcome == "crashed"
    assert engine.await_end().ended.outcome == "finished"


def test_that_an_interpreter_that_is_not_there_is_a_sentence(engine: Any) -> None:
    ended = engine.run("ok", request={"python": "/no/such/python"}).ended

    assert ended.outcome == "failed"
    assert "/no/such/python could not be started" in ended.error.message
    assert "--python" in ended.error.hint


def test_that_an_interpreter_that_cannot_run_the_worker_tells_its_last_lines(engine: Any, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no such module' >&2\nexit 9\n")
    broken.chmod(0o755)

    ended = engine.run("ok", request={"python": str(broken)}).ended

    assert (ended.outcome, ended.exit_code, ended.last_lines) == ("crashed", 9, ("no such module",))


def test_that_a_script_that_is_gone_is_a_sentence(engine: Any) -> None:
    request = RunRequest(workload=Workload(script="/no/such/script.py"), config=Config())
    engine.supervisor.submit(request)

    ended = engine.await_end().ended
    assert ended.error.message == "There is no file /no/such/script.py."


def test_that_a_worker_that_has_told_its_end_cannot_hold_the_run(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilescope.engine.supervisor.LINGER_S", 0.3)

    told = engine.run("linger", warm={"mode": "ok"})

    assert told.ended.outcome == "finished"


def test_that_the_end_of_a_run_is_the_last_that_is_heard_of_it(engine: Any) -> None:
    engine.run("daemons")
    engine.supervisor.close()

    assert not [item for item in engine.feed.drain() if isinstance(item, RunEvents)]


def test_that_two_cards_run_at_once_and_each_card_one_run_at_a_time(engine: Any) -> None:
    cards = {"devices": ("cuda:0", "cuda:1")}
    requests = [
        engine.submit("crash" if number == 1 else "ok", request=cards, pause=0.05, device="cuda") for number in range(5)
    ]
    items: list[Any] = []
    while len([item for item in items if is_end(item)]) < len(requests):
        items += engine.collect(lambda found: any(map(is_end, found)))

    running: dict[str, str] = {}
    at_once = []
    for item in items:
        if isinstance(item, RunStarted):
            device = item.request.workload.device
            assert device in cards["devices"] and device not in running.values()
            running[item.run_id] = device
        at_once.append(len(running))
        if is_end(item):
            del running[item.run_id]
    # one that fails ends alone
    outcomes = [item.events[-1].outcome for item in items if is_end(item)]
    assert max(at_once) == 2 and sorted(outcomes) == ["crashed"] + ["finished"] * 4


def test_that_stopping_ends_every_card_and_what_waits(engine: Any) -> None:
    requests = [engine.submit("hang", request={"devices": ("cuda:0", "cuda:1")}, device="cuda") for _ in range(3)]
    engine.collect(lambda items: len([item for item in items if isinstance(item, RunStarted)]) == 2)

    engine.supervisor.stop()

    items = engine.collect(lambda items: len([item for item in items if is_end(item)]) == len(requests))
    assert {item.events[-1].outcome for item in items if is_end(item)} == {"stopped"}


def is_end(item: Any) -> bool:
    return isinstance(item, RunEvents) and isinstance(item.events[-1], e.Ended)
