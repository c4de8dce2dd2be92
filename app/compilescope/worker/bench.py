"""The run itself: both sides are built, called, compared and timed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import torch

from compilescope.domain.config import Config
from compilescope.domain.events import FirstCall, Memory, Warning, WorkloadReady
from compilescope.domain.scan import scan
from compilescope.domain.workload import Job, Workload
from compilescope.worker import compiling, environment, first_use, memory, noise, provenance, setting
from compilescope.worker.capture import Capture
from compilescope.worker.channel import Channel
from compilescope.worker.check import SLOW_CALL_S, Call, Checker, Outcome, outcome
from compilescope.worker.clocks import clock_for
from compilescope.worker.effects import Before
from compilescope.worker.entries import choose, seed_all
from compilescope.worker.errors import WorkerError
from compilescope.worker.inputs import Inputs, Source, duplicate
from compilescope.worker.loader import load
from compilescope.worker.models import SHARED, Builder, Pair, has_lazy_parameters, storage_bytes
from compilescope.worker.profiling import Profiler
from compilescope.worker.steps import Recipe, Side
from compilescope.worker.timing import Plan, Timer
from compilescope.worker.verdicts import Judge

FEWEST_WARM_UPS, MOST_WARM_UPS = 3, 16
MOST_LATE_COMPILES = 2
STANCE = "force_eager"
StageOf = Callable[[str], contextlib.AbstractContextManager[None]]


class Bench:
    """Eager beside compiled, for one configuration, in one process."""

    def __init__(self, job: Job, channel: Channel, stage_of: StageOf) -> None:
        if job.workload is None:
            raise WorkerError("The job names no script.")
        self._job = job
        self._workload: Workload = job.workload
        self._config = job.config or Config()
        self._seed = job.measurement.seed
        self._emit = channel.emit
        self._stage_of = stage_of
        self._capture = Capture(channel.emit, channel.clock, job.trace)
        self._device = setting.choose_device(self._workload.device)
        self._eager: Side
        self._first: Call
        self._outcomes: dict[str, Outcome] = {}

    def load(self) -> None:
        """Import the script, build its model and inputs, and tell what was taken."""
        with self._stage_of("load"):
            if self._device.type == "cuda":
                with first_use.timed("CUDA context", self._emit):
                    torch.zeros(1, device=self._device).item()
            setting.apply(self._workload)
            seed_all(self._seed)
            found = scan(self._workload.script)
            module = load(self._workload.script, self._workload.arguments)
            recipe, entries = choose(module, found, self._workload.entry)
            training = self._workload.phase == "training" or self._workload.train_mode
            builder = Builder(recipe.model, device=self._device, training=training, seed=self._seed)
            model = builder.build()
            self._source = Source(recipe.inputs, self._device)
            self._source.use_names_of(model)
            self._sizes = setting.sizes_of(self._workload)
            self._source.sizes = self._sizes[0]
            seed_all(self._seed)
            self._inputs = self._source.make()
            self._work = Recipe.of(self._workload, self._device, module)
            # the script may compile functions itself; then only a stance makes a true eager side
            self._script_compiles = "torch._dynamo" in sys.modules
            self._pair = self._second_model(builder, model, rebuilds=recipe.rebuilds)
            self._tell_workload(entries, recipe.entry.name)

    def run(self) -> None:
        try:
            self._call_eager()
            self._compile()
            with self._stage_of("check"):
                self._checker = Checker(self._eager, self._compiled, self._make_inputs, seed=self._seed)
                self._checker.begin(self._first, self._outcomes)
                self._first, self._outcomes = Call(inputs={}, seed=0), {}
                self._checker.run(self._inputs)
            with self._stage_of("warm_up"):
                self._warm_up()
            with self._stage_of("measure"):
                self._measure()
            if self._job.task == "run":
                with self._stage_of("profile"):
                    self._profile()
        finally:
            self._capture.finish()

    def _make_inputs(self) -> dict[str, Inputs]:
        inputs = self._source.make()
        return {"eager": inputs, "compiled": inputs}

    def _second_model(self, builder: Builder, model: Any, *, rebuilds: bool) -> Pair:
        if has_lazy_parameters(model):
            with torch.no_grad():
                inputs = duplicate(self._inputs)
                model(*inputs.args, **inputs.kwargs)
        return builder.pair(model, rebuilds=rebuilds)

    def _tell_workload(self, entries: list[Any], entry: str) -> None:
        self._emit(
            WorkloadReady(
                entries=tuple(entries),
                entry=entry,
                phase=self._workload.phase,
                precision=self._workload.precision,
                device=str(self._device),
                inputs=self._source.describe(self._inputs),
                copies=self._pair.copies,
                parameters=sum(parameter.numel() for parameter in self._pair.eager.parameters()),
                parameter_bytes=storage_bytes(iter(self._pair.eager.parameters())),
                float32_matmul_precision=environment.attempt(torch.get_float32_matmul_precision, None),
            )
        )
        for warning in self._doubts():
            self._emit(warning)

    def _doubts(self) -> Iterator[Warning]:
        if self._pair.unwrapped:
            yield Warning(
                code="script_compiles",
                message=f"The script compiles {', '.join(self._pair.unwrapped[:4])} itself. "
                "Here that is undone, and the whole model is compiled.",
                hint="The numbers are those of torch.compile on the whole model.",
            )
        yield from setting.doubts(self._workload, self._job.measurement, self._device)
        yield from setting.own_precision(self._workload, self._pair.eager)
        if self._pair.copies == SHARED:
            yield Warning(
                code="shared_model",
                message="The model could not be copied or built twice, so eager and compiled share one.",
                hint="State that calls change, such as running statistics, is then common to both.",
            )

    def _call_eager(self) -> None:
        with self._stage_of("eager"):
            self._first = Call(inputs={"eager": self._inputs, "compiled": self._inputs}, seed=self._seed)
            self._outcomes = {}
            self._eager = Side("eager", self._pair.eager, self._pair.eager, self._work)
            self._eager.stance = STANCE if self._script_compiles else None
            self._first_call(self._eager)

    def _compile(self) -> None:
        with self._stage_of("compile"):
            if self._job.task == "run":
                self._load_compiler()
            self._capture.install()
            self._capture.describe(self._pair.compiled)
            self._compiled = self._second_side()
            self._eager.release()
            self._first_call(self._compiled)

    def _load_compiler(self) -> None:
        for caution in compiling.cautions(self._config, self._device):
            self._emit(caution)
        with first_use.timed("import of the compiler", self._emit):
            compiling.preload()
        if self._job.kernel_sources:
            provenance.note_kernels()
        if self._device.type == "cuda":
            with first_use.timed("Triton and its driver", self._emit):
                compiling.preload_triton()
        first_use.watch(self._emit)
        self._emit(environment.collect(self._workload.device, choices=True))

    def _second_side(self) -> Side:
        """What is compiled; to calibrate, the second model as it is."""
        model = self._pair.compiled
        if self._job.task == "calibrate":
            return Side("compiled", model, model, self._work)
        return compiling.compiled_side(model, self._config, self._work)

    def _first_call(self, side: Side) -> None:
        inputs = side.take(self._inputs)
        outputs: list[Any] = []
        bound = side.bound(inputs)
        self._first.before[side.name] = Before(side, inputs)
        seed_all(self._seed)
        # what is in use now is foreign: the other model, the script's tensors, the libraries' workspaces
        self._foreign_bytes = memory.all_but(side, inputs)
        watch = memory.Watch(side=side, when="first_call", foreign_bytes=self._foreign_bytes)
        first, peak = watch.over(lambda: self._timed_call(side, lambda: outputs.append(bound())))
        self._outcomes[side.name] = outcome(side, inputs, outputs[0])
        self._emit(first)
        self._emit(peak)

    def _timed_call(self, side: Side, step: Callable[[], Any], shape: int = 0) -> FirstCall:
        """The first call of a shape."""
        is_compiled = side.name == "compiled"
        if is_compiled:
            self._capture.begin_call()
        began = perf_counter()
        with side.ready():
            step()
        side.synchronize()
        return FirstCall(
            side=side.name,
            shape=shape,
            direction="step" if self._work.training else "forward",
            duration_s=perf_counter() - began,
            capture_s=self._capture.end_call() if is_compiled else None,
        )

    def _warm_up(self) -> None:
        """At least three calls a side, and on until nothing is compiled any more; then each side's memory alone."""
        self._fixed = {side.name: side.take(self._inputs) for side in (self._eager, self._compiled)}
        foreign = memory.all_but(self._eager, self._fixed["eager"])
        self._emit(self._steady_memory(self._eager, foreign))
        self._eager.release()
        if (compiles := self._warm_up_compiled()) > MOST_LATE_COMPILES:
            self._emit(_recompiling(compiles))
        # foreign is what was there before the compiled side's first call; what its CUDA graphs keep since is its own
        checked = sum(memory.holding(inputs) for call in self._checker.kept for inputs in call.inputs.values())
        foreign = self._foreign_bytes + memory.holding(self._fixed["eager"]) + checked
        self._emit(self._steady_memory(self._compiled, foreign))

    def _warm_up_compiled(self) -> int:
        """Call until two calls in a row, or a slow one, compile nothing; how many of the calls compiled."""
        step = self._compiled.bound(self._fixed["compiled"])
        quiet = compiles = 0
        with self._compiled.ready():
            for call in range(MOST_WARM_UPS):
                seen, began = self._capture.compiles_seen, perf_counter()
                step()
                if self._capture.compiles_seen == seen:
                    quiet += 1
                else:
                    quiet, compiles = 0, compiles + 1
                is_slow = perf_counter() - began > SLOW_CALL_S
                if quiet and (is_slow or (call + 1 >= FEWEST_WARM_UPS and quiet >= 2)):
                    break
        self._compiled.synchronize()
        return compiles

    def _steady_memory(self, side: Side, foreign: int) -> Memory:
        step = side.bound(self._fixed[side.name])

        def work() -> None:
            with side.ready():
                began = perf_counter()
                step()
                if perf_counter() - began <= SLOW_CALL_S:
                    step()

        peaks = memory.Watch(side=side, when="steady", foreign_bytes=foreign).over(work)[1]
        side.peak_bytes = peaks.allocated_peak_bytes
        return peaks

    def _measure(self) -> None:
        before = noise.look(self._device)
        self._emit(before)
        block = 0
        clock = clock_for(self._device, l2_flush=self._job.measurement.l2_flush)
        budget = self._job.measurement.budget_s / len(self._sizes)
        for shape, sizes in enumerate(self._sizes):
            if shape:
                self._take_shape(shape, sizes)
            sides = [(side, self._fixed[side.name]) for side in (self._eager, self._compiled)]
            timer = Timer(sides, self._emit, lambda: self._capture.compiles_seen, first_block=block, clock=clock)
            timer.run(Plan(budget_s=budget, interval=self._job.measurement.interval, shape=shape))
            block = timer.next_block
        after = noise.look(self._device)
        self._emit(after)
        for doubt in noise.doubts(before, after):
            self._emit(doubt)

    def _take_shape(self, shape: int, sizes: Any) -> None:
        self._source.sizes = sizes
        self._inputs = self._source.make()
        self._fixed = {side.name: side.take(self._inputs) for side in (self._eager, self._compiled)}
        for side in (self._eager, self._compiled):
            self._emit(self._timed_call(side, side.bound(self._fixed[side.name]), shape))
        self._checker.add(self._make_inputs(), shape)
        self._warm_up_compiled()

    def _profile(self) -> None:
        sides = [(side, self._fixed[side.name]) for side in (self._eager, self._compiled)]
        # of a sweep, the last size
        profiler = Profiler(sides, self._emit)
        profiler.watch_gpu()
        # the warm process has the compiled code of the cold one, and what it would compile anew is told already
        judge = Judge(self._eager, self._compiled, self._config, self._paused)
        for verdict in judge.verdicts(self._checker, may_compile=self._job.start == "cold"):
            self._emit(verdict)
        # both processes run the same kernels, so one tells them
        if self._job.start == "cold" and self._job.task == "run":
            with self._paused():
                profiler.tell()

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        """Compiles of the check itself are no part of the compile story."""
        self._capture.pause()
        try:
            yield
        finally:
            self._capture.resume()


def _recompiling(compiles: int) -> Warning:
    return Warning(
        code="recompiles_every_call",
        message=f"With the same inputs, {compiles} calls in a row were compiled anew: "
        "something that the model changes itself, such as a step counter, is a guard.",
        hint="Keep it in a tensor buffer, or out of forward. What is timed is the state after the recompile limit.",
    )
