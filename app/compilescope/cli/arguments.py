"""The command line's words and what they mean. Bad usage is one sentence and a hint."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import shutil
from collections.abc import Sequence
from typing import Any, NoReturn

import compilescope
from compilescope.domain.config import SCOPES, Choices, OptionValue
from compilescope.domain.errors import UsageError
from compilescope.domain.matrix import Row, matrix
from compilescope.domain.workload import GRAD_MODES, PHASES, PRECISIONS, Measurement, Phase, Precision, Workload
from compilescope.engine.request import default_python

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
COMMANDS = ("bench", "calibrate", "doctor", "history", "report", "trace")
PAGES = ("A4", "Letter")
FILES = ("json", "csv", "markdown", "pdf")
SWITCHES: dict[str, bool | None] = {"auto": None, "on": True, "off": False}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are sentences, not a dump of the usage."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})

    def error(self, message: str) -> NoReturn:
        raise UsageError(_sentence(message), hint=f"`{self.prog} --help` lists what can be given.")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line; `command` is None for the window."""
    if argv and argv[0] in COMMANDS:
        return _parser().parse_args(_with_joined_words(argv))
    return _window_parser().parse_args(argv, argparse.Namespace(command=None))


def choices(arguments: argparse.Namespace) -> Choices:
    """The sets of options whose product is compared."""
    for mode in arguments.mode or ():
        # another torch may know other modes, so only what looks like a slip is refused here
        near = difflib.get_close_matches(mode, MODES, n=1, cutoff=0.75)
        if mode not in MODES and near:
            raise UsageError(f"There is no mode {mode}.", hint=f"Did you mean {near[0]}?")
    if arguments.mode and arguments.option:
        raise UsageError("--mode and --option exclude each other, as they do in torch.compile.", hint="Give one.")
    deaf = [backend for backend in arguments.backend or () if backend != "inductor"]
    if arguments.option and deaf:
        raise UsageError(f"--option is for the backend inductor; {deaf[0]} has no options.", hint="Leave one out.")
    if "step" in (arguments.scope or ()) and "training" not in (arguments.phase or ()):
        raise UsageError("--scope step compiles a training step; inference has none.", hint="Add --phase training.")
    return Choices(
        modes=tuple(arguments.mode or ("default",)),
        dynamics=tuple(SWITCHES[word] for word in arguments.dynamic or ("auto",)),
        fullgraphs=tuple(bool(SWITCHES[word]) for word in arguments.fullgraph or ("off",)),
        backends=tuple(arguments.backend or ("inductor",)),
        options=dict(arguments.option) if arguments.option else None,
        scopes=tuple(arguments.scope or ("model",)),
    )


def rows(arguments: argparse.Namespace, script: str) -> list[Row]:
    """Every configuration in every phase and precision."""
    devices = arguments.device or ()
    common = Workload(
        script=script,
        entry=arguments.entry,
        device="cuda" if len(devices) > 1 else next(iter(devices), None),
        train_mode=arguments.train_mode,
        arguments=tuple(arguments.arg or ()),
        inputs=dict(arguments.inputs) if arguments.inputs else None,
        grad_mode=arguments.grad_mode,
        threads=arguments.threads,
    )
    phases: list[Phase] = arguments.phase or ["inference"]
    precisions: list[Precision] = arguments.precision or ["fp32"]
    return matrix(choices(arguments).product(), common, dict.fromkeys(phases), dict.fromkeys(precisions))


def cards(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Devices that share the rows; none where one does them all."""
    return arguments.device if len(arguments.device or ()) > 1 else ()


def measurement(arguments: argparse.Namespace) -> Measurement:
    """How every configuration is measured."""
    queued = {None: None, "on": True, "off": False}[arguments.queue]
    return Measurement(budget_s=arguments.budget, l2_flush=arguments.l2_flush, queued=queued)


def _window_parser() -> Parser:
    parser = Parser(
        prog="compilescope",
        description="See what torch.compile did, measure it against eager, and decide.",
        epilog="Without a window: `compilescope bench SCRIPT` runs and compares, `compilescope trace PATH` "
        "reads a saved trace, `compilescope history` and `compilescope report` list and write what is stored, "
        "`compilescope doctor` says what this machine can do, `compilescope calibrate` how noisy it is. Each has its "
        "own --help.",
    )
    parser.add_argument("script", metavar="SCRIPT", nargs="?", help="a model script to open in the window")
    _add_version(parser)
    return parser


def _parser() -> Parser:
    parser = Parser(prog="compilescope")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    bench = commands.add_parser("bench", description="Run and compare, headless: progress on stderr, table on stdout.")
    bench.add_argument("script", metavar="SCRIPT", help="the model script")
    _add_workload(bench)
    _add_configurations(bench)
    _add_measurement(bench)
    _add_files(bench)
    _add_keeping(bench)
    _add_stored(commands)
    calibrate = commands.add_parser(
        "calibrate", description="Find this machine's noise floor: eager beside itself, some times; about two minutes."
    )
    where = "cpu, cuda …; default: the first CUDA device, or cpu"
    calibrate.add_argument("--device", metavar="DEVICE", type=_device, help=where)
    _add_python(calibrate)
    doctor = commands.add_parser("doctor", description="Say what this machine can do, and what is missing.")
    _add_python(doctor)
    trace = commands.add_parser("trace", description="Read a TORCH_TRACE log, or a folder of them: one run a file.")
    trace.add_argument("path", metavar="PATH", help="the log (plain or .gz), or the folder")
    trace.add_argument("--json", metavar="FILE", help="the same JSON as bench writes")
    return parser


def _add_version(parser: Parser) -> None:
    parser.add_argument("--version", action="version", version=f"CompileScope {compilescope.__version__}")


def _add_python(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--python", metavar="PATH", type=_python, default=default_python(), help="the interpreter that has torch"
    )


def _add_workload(parser: Parser) -> None:
    group = parser.add_argument_group("what is measured")
    group.add_argument("--entry", metavar="NAME", help="which of the script's models; default: the first")
    _add_python(group)
    group.add_argument(
        "--device",
        metavar="DEVICE",
        type=_devices,
        help="cpu, cuda, cuda:1 …; default: the first CUDA device, or cpu. cuda:0,cuda:1: these cards share the runs",
    )
    group.add_argument("--phase", choices=PHASES, action="append", help="default: inference; both may be given")
    group.add_argument(
        "--precision",
        choices=PRECISIONS,
        action="append",
        help="default: fp32; several may be given, each against its own eager. bf16 and fp16 by autocast; fp16 "
        "training with a scaler",
    )
    group.add_argument("--train-mode", action="store_true", help="inference with the module in training mode")
    group.add_argument(
        "--grad-mode",
        choices=GRAD_MODES,
        default="inference_mode",
        help="how inference is called: without gradients by one of two ways, or with them",
    )
    group.add_argument("--threads", metavar="NUMBER", type=_count, help="threads on the CPU; default: torch's choice")
    group.add_argument(
        "--inputs", metavar="NAME=8,128[;16,128…]", action="append", type=_inputs, help="sizes; several make a sweep"
    )
    group.add_argument("--arg", metavar="WORD", action="append", help="one word of the script's own command line")


def _add_configurations(parser: Parser) -> None:
    group = parser.add_argument_group("configurations", "Each can be given several times; the product is compared.")
    group.add_argument("--mode", metavar="MODE", action="append", help=", ".join(MODES))
    group.add_argument("--dynamic", choices=tuple(SWITCHES), action="append")
    group.add_argument("--fullgraph", choices=("on", "off"), action="append")
    group.add_argument("--backend", metavar="BACKEND", action="append", help="inductor, aot_eager, eager …")
    group.add_argument(
        "--scope",
        choices=SCOPES,
        action="append",
        help="in training: compile the model (default), or the step: forward, loss, backward and optimizer",
    )
    group.add_argument(
        "--option", metavar="KEY=VALUE", action="append", type=_option, help="torch.compile(options=…), not with --mode"
    )


def _add_measurement(parser: Parser) -> None:
    group = parser.add_argument_group("measurement")
    group.add_argument(
        "--budget", metavar="SECONDS", type=_seconds, default=10.0, help="timed part of each configuration (10)"
    )
    group.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=900.0, help="limit for each configuration (900)"
    )
    group.add_argument(
        "--l2-flush", action="store_true", help="on CUDA: write over the L2 cache before each call, untimed"
    )
    group.add_argument(
        "--queue",
        choices=("on", "off"),
        help="on CUDA: blocks of calls follow each other without a pause, as under steady load (on where it can be), "
        "or the card rests between them",
    )
    group.add_argument(
        "--no-play-off",
        action="store_true",
        help="do not time the configurations that cannot be told apart in turns, once all have run",
    )
    group.add_argument("--cache", choices=("fresh", "mine"), default="fresh", help="compiler caches: fresh, or yours")


def _add_files(parser: Parser) -> None:
    group = parser.add_argument_group("files")
    for kind in FILES:
        group.add_argument(f"--{kind}", metavar="FILE")
    if parser.prog.endswith("bench"):
        group.add_argument("--log", metavar="FILE", help="all that the script and torch print")
    group.add_argument("--page", choices=PAGES, default="A4", help="size of the PDF's pages")


def _add_keeping(parser: Parser) -> None:
    group = parser.add_argument_group("history and baseline")
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help="an earlier --json FILE: status 1 where something has become worse for certain",
    )
    group.add_argument(
        "--strict", action="store_true", help="with --baseline: status 1 also where that cannot be told (inconclusive)"
    )
    group.add_argument("--no-history", action="store_true", help="do not keep the comparison in the history")


def _add_stored(commands: argparse._SubParsersAction[Parser]) -> None:
    history = commands.add_parser("history", description="List the stored comparisons, newest first.")
    history.add_argument("--json", action="store_true", help="as JSON, on stdout")
    history.add_argument("--search", metavar="TEXT", default="", help="only those in which every word of TEXT occurs")
    report = commands.add_parser("report", description="Write a stored comparison as files.")
    report.add_argument("comparison", metavar="COMPARISON", help="its id, the start of that, or: last")
    _add_files(report)


def _with_joined_words(argv: Sequence[str]) -> list[str]:
    """`--arg --epochs` as `--arg=--epochs`: the word after --arg is the script's, dashes and all."""
    result: list[str] = []
    words = iter(argv)
    for word in words:
        following = next(words, None) if word == "--arg" else None
        result.append(word if following is None else f"{word}={following}")
    return result


def _python(text: str) -> str:
    found = shutil.which(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"there is no Python interpreter {text}")
    return found


def _device(text: str) -> str:
    if not re.fullmatch(r"cpu|cuda(:\d+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no device like cpu, cuda or cuda:1")
    return text


def _devices(text: str) -> tuple[str, ...]:
    found = tuple(_device(name) for name in text.split(","))
    if len(found) > 1 and not all(re.fullmatch(r"cuda:\d+", name) and found.count(name) == 1 for name in found):
        raise argparse.ArgumentTypeError(f"{text} is not like cuda:0,cuda:1")
    return found


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no time in seconds")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no number of threads")
    return int(text)


def _inputs(text: str) -> tuple[str, tuple[tuple[int, ...], ...]]:
    name, _, sizes = text.partition("=")
    try:
        shapes = tuple(tuple(int(part) for part in size.split(",")) for size in sizes.split(";"))
    except ValueError:
        shapes = ()
    if not name or not shapes or any(number < 0 for shape in shapes for number in shape):
        raise argparse.ArgumentTypeError(f"{text} is not like x=8,128 or x=8,128;16,128")
    return name, shapes


def _option(text: str) -> tuple[str, OptionValue]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text} is not like max_autotune=true")
    words = {"True": True, "False": False}
    if value in words:
        return key, words[value]
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = value
    return key, parsed if isinstance(parsed, (bool, int, float)) else value


def _sentence(message: str) -> str:
    """argparse's message as a sentence: "argument --mode: expected one argument" is "--mode: expected …"."""
    text = message.removeprefix("argument ")
    text = text[:1].upper() + text[1:] if not text.startswith("-") else text
    return text if text.endswith(".") else f"{text}."
