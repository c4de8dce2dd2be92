"""The run itself: both sides are built, called, compared and timed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import torch

from compilescope.domain.config import Config
from compilescope.domain.events import Entered, FirstCall, Warning, WorkloadReady
from compilescope.domain.workload import MEASURED, Job, Workload
from compilescope.worker import blame, compiling, environment, first_use, memory, noise, provenance, setting, steady
from compilescope.worker.capture import Capture
from compilescope.worker.channel import Channel
from compilescope.worker.check import Call, Checker, Outcome, outcome
from compilescope.worker.clocks import clock_for
from compilescope.worker.effects import Before
from compilescope.worker.entered import Entries
from compilescope.worker.entries import seed_all
from compilescope.worker.errors import WorkerError
from compilescope.worker.instances import Instance
from compilescope.worker.likeness import synchronise
from compilescope.worker.models import storage_bytes
from compilescope.worker.pair import SHARED, Pair, Pairs, belongs
from compilescope.worker.profiling import Profiler
from compilescope.worker.proof import Proof, plain_sides, prove
from compilescope.worker.steady import Steady
from compilescope.worker.steps import Recipe, Side
from compilescope.worker.timing import Plan, Timer
from compilescope.worker.verdicts import Judge

MOST_LATE_COMPILES = 2
EAGER, COMPILED = "eager", "compiled"
STANCE = "force_eager"
StageOf = Callable[[str], contextlib.AbstractContextManager[None]]


class Bench:
    """Eager beside compiled, for one configuration, in one process.

    The cold process is the user's program: the compiled model is called first, and eager after it. In the warm one it
    is the other way round.
    """

    def __init__(self, job: Job, channel: Channel, stage_of: StageOf, is_interrupted: Callable[[], bool]) -> None:
        if job.workload is None:
            raise WorkerError("The job names no script.")
        self._job = job
        self._workload: Workload = job.workload
        self._config = job.config or Config()
        self._seed = job.measurement.seed
        self._emit = channel.emit
        self._stage_of = stage_of
        self._is_interrupted = is_interrupted
        self._capture = Capture(channel.emit, channel.clock, job.trace)
        self._entries = Entries()
        self._device = setting.choose_device(self._workload.device)
        self._first = COMPILED if job.start == "cold" else EAGER
        self._sides: dict[str, Side] = {}

    def load(self, *, both: bool) -> None:
        """Load the script, build its model and inputs, and tell what was taken; for a measurement twice."""
        with self._stage_of("load"):
            if self._device.type == "cuda":
                with first_use.timed("CUDA context", self._emit):
                    torch.zeros(1, device=self._device).item()
            setting.apply(self._workload)
            self._pairs = Pairs(self._workload, device=self._device, seed=self._seed)
            self._sizes = setting.sizes_of(self._workload)
            self._pair = self._pairs.next_pair() or self._pairs.alone() if both else self._pairs.alone()
            self._pair.use_sizes(self._sizes[0])
            self._inputs = self._pair.make_inputs(self._seed)
            # the script may compile functions itself; then only a stance makes a true eager side
            self._script_compiles = "torch._dynamo" in sys.modules
            self._tell_workload(is_pair=both)

    def run(self) -> None:
        try:
            call = Call(inputs=self._inputs, seed=self._seed)
            first = {name: self._first_call(name, call) for name in self._in_order}
            with self._stage_of("check"):
                self._checker = self._new_checker()
                self._checker.begin(call, first)
                del call, first  # with what they hold, unless it is wanted for a second look
                self._checker.run(self._inputs[EAGER])
            with self._stage_of("warm_up"):
                self._warm_up()
            with self._stage_of("measure"):
                self._measure()
            if self._job.task == "run":
                with self._stage_of("profile"):
                    self._profile()
        finally:
            self._capture.finish()

    @property
    def _in_order(self) -> tuple[str, str]:
        return (COMPILED, EAGER) if self._first == COMPILED else (EAGER, COMPILED)

    @property
    def _eager(self) -> Side:
        return self._sides[EAGER]

    @property
    def _compiled(self) -> Side:
        return self._sides[COMPILED]

    # --- what was taken

    def _tell_workload(self, *, is_pair: bool) -> None:
        model = self._pair.eager.model
        self._emit(
            WorkloadReady(
                entries=tuple(self._pairs.entries),
                entry=self._pairs.entry.name,
                phase=self._workload.phase,
                precision=self._workload.precision,
                device=str(self._device),
                inputs=self._pair.eager.source.describe(self._inputs[EAGER]),
                copies=self._pair.copies if is_pair else None,
                copies_reason=(self._pair.reason or None) if is_pair else None,
                parameters=sum(parameter.numel() for parameter in model.parameters()),
                parameter_bytes=storage_bytes(iter(model.parameters())),
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
        yield from setting.own_precision(self._workload, self._pair.eager.model)
        if self._job.task in MEASURED and self._pair.copies == SHARED:
            yield Warning(
                code="shared_model",
                message="Eager and compiled share one model: "
                + (self._pair.reason or "it could be neither loaded twice nor copied."),
                hint="What a call changes is put back between the two.",
            )

    # --- the sides, and their first calls

    def _listen(self) -> None:
        if self._job.task == "run":
            self._load_compiler()
        self._entries.install()
        self._capture.install()
        self._capture.describe(self._pair.compiled.model)

    def _load_compiler(self) -> None:
        for caution in compiling.cautions(self._config, self._device):
            self._emit(caution)
        with first_use.timed("import of the compiler", self._emit):
            compiling.preload(self._config.backend)
        if self._job.kernel_sources and compiling.uses_inductor(self._config.backend):
            provenance.note_kernels()
        if self._device.type == "cuda" and compiling.uses_inductor(self._config.backend):
            with first_use.timed("Triton and its driver", self._emit):
                compiling.preload_triton()
        first_use.watch(self._emit)
        self._emit(environment.collect(self._workload.device, choices=True))

    def _eager_side(self, name: str = EAGER) -> Side:
        """An uncompiled side; by name, also of the model that is to be compiled."""
        instance = self._pair.eager if name == EAGER else self._pair.compiled
        side = Side(name, instance.model, instance.model, self._recipe(instance))
        belongs(side, instance)
        side.stance = STANCE if self._script_compiles else None
        return side

    def _compiled_side(self, recipe: Recipe | None = None) -> Side:
        """What is compiled; to calibrate, the second model as it is."""
        instance = self._pair.compiled
        recipe = recipe or self._recipe(instance)
        if self._job.task == "calibrate":
            return self._eager_side(COMPILED)
        side = compiling.compiled_side(instance.model, self._config, recipe)
        belongs(side, instance)
        return side

    def _recipe(self, instance: Instance) -> Recipe:
        return Recipe.of(self._workload, self._device, instance.module)

    def _first_call(self, name: str, call: Call) -> Outcome:
        with self._stage_of("eager" if name == EAGER else "compile"):
            if name == COMPILED:
                self._listen()
            side = self._sides[name] = self._eager_side() if name == EAGER else self._compiled_side()
            inputs = side.take(call.inputs[name])
            step = side.bound(inputs)
            call.before[name] = Before(side, inputs)
            seed_all(call.seed)
            # what is in use now is foreign: the other model, the script's tensors, the libraries' workspaces
            foreign = memory.all_but(side, inputs)
            if name == COMPILED:
                self._foreign_bytes = foreign
            watch = memory.Watch(side=side, when="first_call", foreign_bytes=foreign)
            try:
                (told, output), peak = watch.over(lambda: self._timed_call(side, step))
            except BaseException as error:  # an exit or an interrupt of the script's own too
                if self._is_interrupted():
                    raise
                self._capture.note_lines(error)
                if name == COMPILED and self._first == COMPILED and self._job.task == "run":
                    raise self._blamed(error, call) from error
                raise
            self._emit(told)
            self._emit(peak)
            left = outcome(side, inputs, output)
        side.release()
        return left

    def _blamed(self, error: BaseException, call: Call) -> BaseException:
        attempt = blame.Attempt(
            eager=self._eager_side(),
            inputs=call.inputs[EAGER],
            seed=call.seed,
            compiled_in=self._compiled_side,
            compiled_inputs=call.inputs[COMPILED],
            paused=self._paused,
            is_interrupted=self._is_interrupted,
        )
        return blame.blamed(error, attempt)

    def _timed_call(self, side: Side, step: Callable[[], Any], shape: int = 0) -> tuple[FirstCall, Any]:
        """The first call of a shape, and what it returned."""
        is_compiled = side.name == COMPILED
        if is_compiled:
            self._capture.begin_call()
        began = perf_counter()
        with side.ready():
            output = step()
        side.synchronize()
        told = FirstCall(
            side=side.name,
            shape=shape,
            direction="step" if side.recipe.training else "forward",
            duration_s=perf_counter() - began,
            capture_s=self._capture.end_call() if is_compiled else None,
        )
        return told, output

    def _new_checker(self) -> Checker:
        return Checker(self._eager, self._compiled, self._pair.make_inputs, seed=self._seed, first=self._first)

    # --- warm-up: what each call changes, then until nothing is compiled any more

    def _warm_up(self) -> None:
        self._steady = {name: Steady(side=side, inputs=side.take(self._inputs[name]), seed=self._seed)
                        for name, side in self._sides.items()}  # fmt: skip
        self._settle()
        self._learn()
        foreign = memory.all_but(self._eager, self._steady[EAGER].inputs)
        self._emit(steady.peaks(self._steady[EAGER], foreign))
        self._eager.release()
        self._warm_up_compiled()
        self._count_entries()
        # foreign is what was there before the compiled side's first call; what its CUDA graphs keep since is its own
        checked = sum(memory.holding(inputs) for call in self._checker.kept for inputs in call.inputs.values())
        foreign = self._foreign_bytes + memory.holding(self._steady[EAGER].inputs) + checked
        self._emit(steady.peaks(self._steady[COMPILED], foreign))

    def _settle(self) -> None:
        """Call on with the same inputs, as a program does, until nothing is compiled any more. That is the end of the
        compile story; both sides then stand where they stood before."""
        row = Steady(side=self._compiled, inputs=self._compiled.take(self._inputs[COMPILED]), seed=self._seed)
        before = Before(self._compiled, row.inputs)
        compiles = row.call_until_quiet(lambda: self._capture.compiles_seen)
        with self._paused():
            before.put_back()
        if compiles > MOST_LATE_COMPILES:
            self._emit(_recompiling(compiles, reached_limit=self._capture.limits_seen > 0))

    def _learn(self) -> None:
        """What each call changes. After the recompile limit nothing is put back: that would compile again."""
        rows = list(self._steady.values())
        if self._capture.limits_seen:
            return
        with self._paused():
            for row in rows:
                row.learn()
        for warning in steady.restored_each_time(rows):
            self._emit(warning)

    @property
    def _undos(self) -> dict[str, Any]:
        return {name: row.undo for name, row in self._steady.items() if row.undo is not None}

    def _warm_up_compiled(self) -> None:
        """The same with what is timed, each call as it will be there; what putting back makes compile is ours."""
        row = self._steady[COMPILED]
        with self._paused() if row.undo else contextlib.nullcontext():
            row.call_until_quiet(lambda: self._capture.compiles_seen)

    def _count_entries(self) -> None:
        """How often one call enters compiled code; the timed calls know nothing of it."""
        if self._job.task != "run":
            return
        step = self._steady[COMPILED].again()
        with self._paused(), self._compiled.ready(), self._entries.counted() as seen:
            step()
        self._compiled.synchronize()
        if seen.entered is not None:
            self._emit(Entered(calls=1, entries=seen.entered))

    # --- timing

    def _measure(self) -> None:
        if (names := steady.lost(list(self._steady.values()))) or not self._is_proven():
            if names:
                self._emit(steady.not_restored(names))
            return
        before = noise.look(self._device)
        self._emit(before)
        block = 0
        how = self._job.measurement
        clock = clock_for(self._device, l2_flush=how.l2_flush, queue=how.queued)
        budget = self._job.measurement.budget_s / len(self._sizes)
        for shape, sizes in enumerate(self._sizes):
            if shape:
                self._take_shape(shape, sizes)
            sides = [(self._sides[name], self._steady[name].inputs) for name in (EAGER, COMPILED)]
            timer = Timer(
                sides,
                self._emit,
                lambda: self._capture.compiles_seen,
                first_block=block,
                clock=clock,
                undos=self._undos,
            )
            timer.run(Plan(budget_s=budget, interval=self._job.measurement.interval, shape=shape))
            block = timer.next_block
        after = noise.look(self._device)
        self._emit(after)
        for doubt in noise.doubts(before, after):
            self._emit(doubt)

    def _is_proven(self) -> bool:
        """Whether the two models, both uncompiled, do the same in the same time; else the next way to build them."""
        if self._job.task != "run" or self._pair.copies == SHARED:
            return True
        proof = self._proof()
        if not proof.is_alike and (pair := self._pairs.next_pair(proof.detail)) is not None:
            self._use(pair, proof)
            proof = self._proof()
        if not proof.is_alike:
            self._emit(
                Warning(
                    code="not_comparable",
                    message=f"The two models are not alike before anything is compiled: {proof.detail} "
                    "So no speedup is told.",
                    hint="What the script keeps outside of its model, or does only the first time, may differ.",
                )
            )
        return proof.is_alike

    def _proof(self) -> Proof:
        pair = self._pair
        # what compiled calls have left is theirs by rounding
        synchronise(pair.eager.roots(), pair.compiled.roots(), pair.eager.follows)
        with self._paused():
            eager, plain = plain_sides(pair, self._recipe(pair.eager))
            inputs = {side.name: side.take(self._inputs[side.name]) for side in (eager, plain)}
            return prove(eager, plain, inputs, seed=self._seed)

    def _use(self, pair: Pair, proof: Proof) -> None:
        """Go on with two models that were built another way; what they compile is told already."""
        self._pair = pair
        pair.use_sizes(self._sizes[0])
        self._inputs = pair.make_inputs()
        self._sides = {EAGER: self._eager_side(), COMPILED: self._compiled_side()}
        self._emit(
            Warning(
                code="pair_rebuilt",
                message=f"The first two models were not alike before anything was compiled: {proof.detail} "
                "What is timed are two that were built another way.",
                hint="",
            )
        )
        with self._paused():
            self._steady = {name: Steady(side=side, inputs=side.take(self._inputs[name]), seed=self._seed)
                            for name, side in self._sides.items()}  # fmt: skip
            for row in self._steady.values():
                row.call()
            # what was kept of the models before is theirs; the two that are timed are the ones to compare
            self._checker = self._new_checker()
            self._checker.run(self._inputs[EAGER])
            for row in self._steady.values():
                row.learn()
            self._warm_up_compiled()

    def _take_shape(self, shape: int, sizes: Any) -> None:
        self._pair.use_sizes(sizes)
        self._inputs = self._pair.make_inputs()
        for name in self._in_order:
            side = self._sides[name]
            self._steady[name] = Steady(side=side, inputs=side.take(self._inputs[name]), seed=self._seed)
            told, _ = self._timed_call(side, side.bound(self._steady[name].inputs), shape)
            self._emit(told)
        self._checker.add(self._pair.make_inputs(), shape)
        for name in self._in_order:
            self._steady[name].inputs = self._sides[name].take(self._inputs[name])
        self._learn()
        self._warm_up_compiled()

    # --- after the timing

    def _profile(self) -> None:
        sides = [(self._sides[name], self._steady[name].inputs) for name in (EAGER, COMPILED)]
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


def _recompiling(compiles: int, *, reached_limit: bool) -> Warning:
    return Warning(
        code="recompiles_every_call",
        message=f"With the same inputs, {compiles} calls in a row were compiled anew: "
        "something that the model changes itself, such as a step counter, is a guard.",
        hint="Keep it in a tensor buffer, or out of forward."
        + (" What is timed is the state after the recompile limit." if reached_limit else ""),
    )
