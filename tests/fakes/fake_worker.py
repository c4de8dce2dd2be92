"""Behaves like a worker, well or badly: standard library only, so that it starts in a few milliseconds.

As a worker it is started with a job on stdin; the job's script names the mode: a JSON file {"mode": …, …}. By hand:
`fake_worker.py --rate-events 5000 --rate-lines 20000 --seconds 5` sends events on stdout and lines on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

BEGAN = time.monotonic()
MODES: dict[str, Any] = {}


def mode(function: Any) -> Any:
    MODES[function.__name__] = function
    return function


def tell(kind: str, /, **fields: Any) -> None:
    line = json.dumps({"type": kind, "at": round(time.monotonic() - BEGAN, 6), **fields}, separators=(",", ":"))
    os.write(1, line.encode() + b"\n")


def say(text: str) -> None:
    os.write(2, text.encode() + b"\n")


def stage(name: str, seconds: float = 0.0) -> None:
    tell("stage", name=name, state="begin")
    time.sleep(seconds)
    tell("stage", name=name, state="end", duration_s=seconds)


@mode
def ok(options: dict[str, Any]) -> None:
    """A short run, as a real worker tells it."""
    pause = float(options.get("pause", 0.01))
    for name in ("start", "load"):
        stage(name, pause)
    tell(
        "environment",
        torch="2.13.0",
        python="3.11.9",
        cpu="A processor",
        os="Linux",
        device="cpu",
        devices=[{"id": "cpu", "name": "A processor"}],
        modes={"default": {}},
        backends=["inductor", "eager"],
    )
    tell(
        "workload",
        entries=[{"name": "Model", "kind": "model class", "line": 4}],
        entry="Model",
        phase="inference",
        precision="fp32",
        device="cpu",
        inputs=[{"name": "x", "shape": [8, 128], "dtype": "float32"}],
        copies="loaded_twice",
        parameters=1000,
        parameter_bytes=4000,
    )
    stage("eager", pause)
    tell("first_call", side="eager", direction="forward", duration_s=0.002)
    compile_story(pause)
    stage("check", pause)
    tell("numerics", subject="outputs", backend="inductor", verdict="match", max_abs_error=1e-6)
    stage("warm_up", pause)
    tell("stage", name="measure", state="begin")
    eager_s, compiled_s = float(options.get("eager_s", 2e-3)), float(options.get("compiled_s", 1e-3))
    for block in range(int(options.get("blocks", 30))):
        tell("samples", side="eager", block=block, clock="wall", seconds=[eager_s + 1e-5 * (block % 7)])
        tell("samples", side="compiled", block=block, clock="wall", seconds=[compiled_s + 1e-5 * (block % 5)])
        time.sleep(pause / 10)
    tell("measured", shape=0, stop="interval")
    tell("stage", name="measure", state="end", duration_s=pause * 3)
    stage("done")


def compile_story(pause: float) -> None:
    tell("stage", name="compile", state="begin")
    place = {"file": "/script.py", "line": 7, "function": "forward"}
    tell("compile", compile_id="0/0", state="begin", **place)
    tell("phase", name="entire_frame_compile", group="dynamo", state="begin", compile_id="0/0")
    tell("graph_break", id="GB0170", kind="Data-dependent branching", reason="if on a tensor", **place)
    tell("compile", compile_id="0/0", state="captured", graphs=1, ops=12, **place)
    time.sleep(pause)
    tell("phase", name="entire_frame_compile", group="dynamo", state="end", duration_s=pause, compile_id="0/0")
    tell("cache", cache="fx_graph", state="miss", key="abc")
    tell("compile", compile_id="0/0", state="end", guards=5, duration_s=pause, **place)
    tell("first_call", side="compiled", direction="forward", duration_s=pause, capture_s=0.001)
    tell("stage", name="compile", state="end", duration_s=pause)


@mode
def recorded(options: dict[str, Any]) -> None:
    """Tells recorded `events`, whose texts point into a copy of `trace`."""
    shutil.copyfile(options["trace"], options["own_trace"])
    say(f"begins to tell of the {options['start']} start")
    time.sleep(0.2)
    for line in Path(options["events"]).read_text().splitlines():
        os.write(1, line.replace("OWN_TRACE", options["own_trace"]).encode() + b"\n")
    say("has told it")
    stage("done")


@mode
def fail(_: dict[str, Any]) -> None:
    tell("stage", name="load", state="begin")
    say("about to fail")
    tell("failure", error={"stage": "load", "type": "ValueError", "message": "no such thing", "hint": "Try another."})
    os._exit(1)


@mode
def exit_code(options: dict[str, Any]) -> None:
    tell("stage", name="eager", state="begin")
    say("last words")
    os._exit(int(options.get("code", 3)))


@mode
def crash(options: dict[str, Any]) -> None:
    tell("stage", name="eager", state="begin")
    for number in range(100):
        say(f"line {number}")
    os.kill(os.getpid(), getattr(signal, options.get("signal", "SIGSEGV")))


@mode
def hang(_: dict[str, Any]) -> None:
    tell("stage", name="compile", state="begin")
    time.sleep(3600)


@mode
def hang_stubbornly(options: dict[str, Any]) -> None:
    """Does not obey SIGINT and, unless told not to, ignores SIGTERM."""
    signal.signal(signal.SIGINT, lambda *_: say("heard it"))
    if options.get("sigterm", True):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang(options)


@mode
def hang_with_the_interpreter_locked(_: dict[str, Any]) -> None:
    """Native code that keeps every Python thread and signal handler from running."""
    tell("stage", name="eager", state="begin")
    sum(range(10**15))


@mode
def hang_before_hello(_: dict[str, Any]) -> None:
    time.sleep(3600)


@mode
def interrupted_with_a_failure(options: dict[str, Any]) -> None:
    """Tells the interrupt as a failure of its own."""
    try:
        hang(options)
    except KeyboardInterrupt:
        tell("failure", error={"stage": "compile", "type": "KeyboardInterrupt", "message": ""})
        os._exit(1)


@mode
def linger(_: dict[str, Any]) -> None:
    stage("done")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(3600)


@mode
def daemons(options: dict[str, Any]) -> None:
    """Leaves children behind: one in the group, one in a session of its own, one that forked twice besides."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    subprocess.Popen(["setsid", "sleep", "3600"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(3600)
        os._exit(0)
    time.sleep(0.2)
    then(options)


@mode
def stranger(options: dict[str, Any]) -> None:
    """A child that carries no mark, in a session of its own, holds the pipes open."""
    subprocess.Popen(["setsid", "sleep", str(options.get("seconds", 20))], env={"PATH": os.environ["PATH"]})
    time.sleep(0.2)
    then(options)


@mode
def flood(options: dict[str, Any]) -> None:
    """Lines as fast as they go, on the log or among the events."""
    descriptor = 1 if options.get("stdout") else 2
    block = b"".join(b"line %d of a flood that never ends\n" % number for number in range(1000))
    until = time.monotonic() + float(options.get("seconds", 3600))
    tell("stage", name="eager", state="begin")
    while time.monotonic() < until:
        os.write(descriptor, block)
    then({"then": "ok"} | options)


@mode
def garbage(options: dict[str, Any]) -> None:
    """Everything that is no event, among events."""
    os.write(1, b"plain text\n{not json}\n{}\n[1]\n12\nnull\n\n")
    os.write(1, b'{"type":"from_the_future","at":1}\n{"type":["stage"]}\n{"type":"stage","name":"load","new_key":1}\n')
    os.write(1, b'{"type":"ended","outcome":"finished"}\n{"type":"workload","entries":["text"]}\n')
    os.write(1, b"\xff\xfe\x00 not UTF-8\n" + b"[" * 200_000 + b"\n" + b'{"type":"stage","name":"caf\xe9"}\n')
    os.write(2, b"\xff\xfe\x00 not UTF-8\n")
    os.write(2, b"x" * 5_000_000 + b"\n")
    os.write(2, b" 10%\r 50%\r100%\ndone\r\n")
    ok(options)
    os.write(2, b"no line end")
    os.write(1, b"cut in the mid")


@mode
def report_surroundings(options: dict[str, Any]) -> None:
    names = ("COMPILESCOPE_RUN", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_COMPILE_JOB_ID")
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    found = sorted(path.name for path in Path(cache).iterdir()) if cache else []
    if cache:
        Path(cache, "left by a process").touch()
    say(json.dumps({"folder": str(Path.cwd()), "cached": found, **{name: os.environ.get(name) for name in names}}))
    ok(options)


def then(options: dict[str, Any]) -> None:
    MODES[options.get("then", "ok")](options)


def send_at_rate(events: float, lines: float, seconds: float) -> None:
    """So many events on stdout and lines on stderr a second, in portions of 5 ms."""
    threads = [
        threading.Thread(target=_portions, args=(1, events, seconds, _event)),
        threading.Thread(target=_portions, args=(2, lines, seconds, _line)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@mode
def rate(options: dict[str, Any]) -> None:
    stage("compile")
    tell("stage", name="measure", state="begin")
    send_at_rate(float(options["events"]), float(options["lines"]), float(options["seconds"]))
    stage("done")


def _portions(descriptor: int, rate: float, seconds: float, text: Any) -> None:
    began = time.monotonic()
    sent = 0
    while (elapsed := time.monotonic() - began) < seconds and rate:
        due = int(elapsed * rate)
        if due > sent:
            data = "".join(text(number) for number in range(sent, due)).encode()
            while data:
                data = data[os.write(descriptor, data) :]
            sent = due
        time.sleep(0.005)


def _event(number: int) -> str:
    """One of a mixture, as it comes while a model compiles and is timed; samples come in chunks."""
    turn = number % 20
    if number % 500 == 19:
        fields = (
            f'"type":"graph_break","id":"GB0170","kind":"Data-dependent branching","file":"/script.py",'
            f'"line":{number // 500 % 12},"function":"forward","reason":"a branch on a tensor","stack":[]'
        )
    elif number % 100 in (18, 58):
        side, seconds = ("eager", 2e-3) if number % 100 == 18 else ("compiled", 1e-3)
        chunk = ",".join(f"{seconds * (1 + (number // 100 * 7 + i) % 13 / 500):.9f}" for i in range(3))
        fields = f'"type":"samples","side":"{side}","block":{number // 100 * 3},"clock":"wall","seconds":[{chunk}]'
    elif turn < 8:
        group, name = PHASES[number // 4 % len(PHASES)]
        name = (f"{group} of frame", name, name, f"{group} of frame")[turn % 4]
        state = ("begin", "begin", "end", "end")[turn % 4]
        fields = f'"type":"phase","name":"{name}","group":"{group}","state":"{state}","thread":1'
    elif turn < 12:
        fields = f'"type":"kernel","name":"triton_poi_fused_add_mul_{number}","kind":"triton","launches":1'
    elif turn < 16:
        fields = f'"type":"text","kind":"output_code","name":"graph {number}","file":"t","offset":{number},"length":9'
    else:
        fields = f'"type":"cache","cache":"fx_graph","state":"miss","key":"{number:08x}","duration_s":0.0012'
    return f'{{{fields},"at":{time.monotonic() - BEGAN:.6f},"compile_id":"{number // 500}/0"}}\n'


PHASES = (
    ("dynamo", "bytecode_tracing"),
    ("guards", "build_guards"),
    ("aot", "create_aot_dispatcher_function"),
    ("inductor", "GraphLowering.run"),
    ("codegen", "Scheduler.codegen"),
    ("kernels", "async_compile.wait"),
)


def _line(number: int) -> str:
    level = ("INFO", "DEBUG", "WARNING")[number % 3]
    return f"{level} step {number}: loss {1 / (number + 1):.6f}, some more text as a training loop prints\n"


def main() -> None:
    if len(sys.argv) > 1:
        parser = argparse.ArgumentParser()
        parser.add_argument("--rate-events", type=float, default=0)
        parser.add_argument("--rate-lines", type=float, default=0)
        parser.add_argument("--seconds", type=float, default=5)
        chosen = parser.parse_args()
        tell("hello", protocol=1, start="cold", time=time.time(), cache_was_empty=True)
        send_at_rate(chosen.rate_events, chosen.rate_lines, chosen.seconds)
        return
    job = json.loads(sys.stdin.buffer.readline())
    options = json.loads(Path(job["workload"]["script"]).read_text()) if job.get("workload") else {"mode": "ok"}
    if job["task"] == "playoff":
        # two that a test does not make differ are alike
        options["eager_s"] = options.get("compiled_s", 1e-3)
        options |= options.get("playoff", {})
    options |= options.get(job["start"], {}) | {"start": job["start"], "own_trace": job.get("trace")}
    if options["mode"] != "hang_before_hello":
        cold, versions = job["start"] == "cold", {"torch": "2.13.0", "python": "3.11.9"}
        tell("hello", protocol=1, start=job["start"], time=time.time(), cache_was_empty=cold, **versions)
    MODES[options["mode"]](options)
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as the worker does
    main()
