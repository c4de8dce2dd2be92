"""Verdicts on models with a known truth: nothing right is called wrong, and nothing wrong a match."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fakes import numerics_models as m
from torch import nn

from compilescope.domain.config import Config
from compilescope.domain.events import Numerics
from compilescope.worker.check import Call, Checker, perform
from compilescope.worker.compiling import compiled_side
from compilescope.worker.entries import seed_all
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.verdicts import WORST_FIRST, Judge

Backend = str | m.Backend


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A model, what compiles it, and the verdicts that are true of it."""

    model: Callable[[], nn.Module]
    backend: Backend = "aot_eager"
    truth: tuple[str, ...] = ("match",)
    subject: str | None = None
    shape: tuple[int, ...] = (64, 16)
    dtype: torch.dtype = torch.float32
    training: bool = False
    precision: str = "fp32"
    other_optimizer: Callable[[Any], torch.optim.Optimizer] | None = None
    needs_grad: bool = False
    sizes: tuple[tuple[int, ...], ...] = ()


RIGHT, WRONG = ("match",), ("differ",)
# where rounding is all there is to see, a judge may also say that it cannot tell
NOT_WRONG = ("match", "not_checked", "nondeterministic")


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3)


def other_adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1.01e-3)


def half(model: Callable[[torch.dtype], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: model(torch.float16)


RIGHT_CASES = {
    "compiled as it is": Case(model=m.Mlp),
    "fp32": Case(model=m.Mlp, backend=m.rounds),
    "bf16 by autocast": Case(model=m.Mlp, backend=m.rounds, precision="bf16"),
    "fp16 by its weights": Case(model=half(m.Mlp), backend=m.rounds, dtype=torch.float16),
    "bf16 by its weights": Case(model=lambda: m.Mlp(torch.bfloat16), backend=m.rounds, dtype=torch.bfloat16),
    "fp64": Case(model=lambda: m.Mlp(torch.float64), backend=m.rounds, dtype=torch.float64),
    "2 ulp everywhere": Case(model=m.Mlp, backend=m.changes(lambda y: y * (1 + 2 * 2**-23))),
    "refuses double precision": Case(model=m.Asserting, backend=m.rounds),
    "a step in fp32": Case(model=m.Mlp, backend=m.rounds, training=True),
    "a step in bf16": Case(model=m.Mlp, backend=m.rounds, training=True, precision="bf16"),
    "a step in fp16": Case(model=m.Mlp, backend=m.rounds, training=True, precision="fp16"),
    "a step with batch norm": Case(model=m.Normed, backend=m.rounds, training=True, shape=(8, 3, 8, 8)),
    "a step with tiny gradients": Case(model=m.Scaled, backend=m.rounds, training=True),
    "a step with gradients of inputs": Case(model=m.Mlp, backend=m.rounds, training=True, needs_grad=True),
    "routing in fp32": Case(model=m.Routed, backend=m.rounds, shape=(256, 16)),
    "routing in bf16": Case(model=m.Routed, backend=m.rounds, shape=(256, 16), precision="bf16"),
    "routing in bf16, no double": Case(
        model=lambda: m.Routed(asserts=True), backend=m.rounds, shape=(256, 16), precision="bf16"
    ),
    "a step with routing in bf16": Case(
        model=m.Routed, backend=m.rounds, shape=(256, 16), precision="bf16", training=True, truth=NOT_WRONG
    ),
    "argmax in fp32": Case(model=lambda: m.Choosing(lambda y: y.argmax(-1)), backend=m.rounds, shape=(256, 16)),
    "argmax in bf16": Case(
        model=lambda: m.Choosing(lambda y: y.argmax(-1)),
        backend=m.rounds,
        shape=(256, 16),
        precision="bf16",
        truth=NOT_WRONG,
    ),
    "sort": Case(model=lambda: m.Choosing(lambda y: y.sort(-1)), backend=m.rounds, truth=NOT_WRONG),
    "sort in bf16": Case(
        model=lambda: m.Choosing(lambda y: y.sort(-1).indices), backend=m.rounds, precision="bf16", truth=NOT_WRONG
    ),
    "threshold": Case(
        model=lambda: m.Choosing(lambda y: torch.where(y > 0, 1.0, -1.0)), backend=m.rounds, truth=NOT_WRONG
    ),
    "threshold in bf16": Case(
        model=lambda: m.Choosing(lambda y: y > 0), backend=m.rounds, precision="bf16", truth=NOT_WRONG
    ),
    "rounding to int8": Case(model=m.Int8, backend=m.rounds, shape=(64, 32), truth=NOT_WRONG),
    "ill-conditioned": Case(model=m.IllConditioned, backend=m.rounds, shape=(64, 5), truth=NOT_WRONG),
    "cancellation": Case(model=m.Cancelling, backend=m.rounds, truth=NOT_WRONG),
    "a long sum": Case(model=m.Summing, backend=m.rounds, shape=(4, 100_000)),
    "dropout": Case(model=m.Dropping, backend=m.rounds),
    "a generator of its own": Case(model=m.OwnGenerator, backend=m.rounds),
    "random beyond any seed": Case(model=m.Noisy, truth=("nondeterministic",)),
    "counts in a tensor": Case(model=m.Counting, backend=m.rounds),
    "counts in a number": Case(model=m.CountingPlainly, backend=m.rounds),
    "averages in a buffer": Case(model=m.Averaging, backend=m.rounds),
    "a cache that grows": Case(model=m.Remembering, backend=m.rounds),
    "returns nothing, stores": Case(model=m.Storing, backend=m.rounds, subject="state"),
    "returns and stores nothing": Case(model=m.Empty, truth=("not_checked",)),
    "three sizes": Case(model=m.Mlp, backend=m.rounds, sizes=((32, 16), (5, 16))),
    "counts, and has three sizes": Case(model=m.CountingPlainly, backend=m.rounds, sizes=((32, 16), (5, 16))),
}

WRONG_CASES = {
    "one element": Case(model=m.Mlp, backend=m.at_one(1e-2)),
    "one element in bf16": Case(model=m.Mlp, backend=m.at_one(0.3), precision="bf16"),
    "one element of routing": Case(model=m.Routed, backend=m.at_one(1e-2), shape=(256, 16)),
    "one element of routing in bf16": Case(
        model=m.Routed, backend=m.at_one(0.3), shape=(256, 16), precision="bf16", truth=("differ", "not_checked")
    ),
    "one element, no double": Case(model=m.Asserting, backend=m.at_one(1e-2)),
    "one element of rounding to int8": Case(model=m.Int8, backend=m.at_one(0.5), shape=(64, 32)),
    "small values": Case(model=m.Scaled, backend=m.changes(lambda y: y * 1.01)),
    "1 percent": Case(model=m.Mlp, backend=m.changes(lambda y: y * 1.01)),
    "1e-6 in fp64": Case(
        model=lambda: m.Mlp(torch.float64), backend=m.changes(lambda y: y * (1 + 1e-6)), dtype=torch.float64
    ),
    "a NaN": Case(model=m.Mlp, backend=m.at_one(float("nan"))),
    "one index": Case(
        model=lambda: m.Choosing(lambda y: y.argmax(-1)),
        backend=m.changes(lambda y: (y + (torch.arange(64) == 3)) % 16),
    ),
    "two experts swapped": Case(model=m.Routed, backend=m.swaps_experts, shape=(256, 16)),
    "two experts swapped in bf16": Case(model=m.Routed, backend=m.swaps_experts, shape=(256, 16), precision="bf16"),
    "two experts swapped, no double": Case(
        model=lambda: m.Routed(asserts=True), backend=m.swaps_experts, shape=(256, 16), precision="bf16"
    ),
    "gradients": Case(model=m.Mlp, backend=m.in_backward(lambda g: g * 1.02), training=True, subject="gradients"),
    "tiny gradients": Case(
        model=m.Scaled, backend=m.in_backward(lambda g: g * 1.05), training=True, subject="gradients"
    ),
    "gradients of inputs": Case(
        model=m.Mlp,
        backend=m.in_backward(lambda g: g * 1.02 if g.shape == (64, 16) else g),
        training=True,
        needs_grad=True,
        subject="input gradients",
    ),
    "the optimizer's update": Case(model=m.Mlp, training=True, other_optimizer=other_adam, subject="update"),
    "a buffer": Case(model=m.Averaging, backend=m.writes_wrongly, subject="buffers"),
    "an attribute": Case(model=m.Counting, backend=m.writes_wrongly, subject="state"),
    "what is stored": Case(model=m.Storing, backend=m.changes(lambda y: y + 1e-2), subject="state"),
    "one size": Case(
        model=m.Mlp,
        backend=m.changes(lambda y: y + (1e-2 if y.shape[0] == 5 else 0.0)),
        sizes=((32, 16), (5, 16)),
    ),
}


def judged(case: Case) -> list[Numerics]:
    """What the worker says, after calls of another number on each side, as a timing makes them."""
    torch._dynamo.reset()
    recipe = Recipe(
        training=case.training,
        precision=case.precision,
        device=torch.device("cpu"),
        loss=mean_square,
        optimizer=adam,
    )
    models = []
    for _ in range(2):
        seed_all(0)
        models.append(case.model().train(case.training))
    config = Config(backend=case.backend)  # type: ignore[arg-type]
    eager = Side("eager", models[0], models[0], recipe)
    other = dataclasses.replace(recipe, optimizer=case.other_optimizer or adam)
    compiled = compiled_side(models[1], config, other)
    seed_all(1)

    def make(shape: tuple[int, ...] = case.shape) -> dict[str, Inputs]:
        x = torch.randn(shape).to(case.dtype).requires_grad_(case.needs_grad)
        return dict.fromkeys(("eager", "compiled"), Inputs(args=(x,)))

    first = make()
    checker = Checker(eager, compiled, make, seed=0, first="compiled")
    call = Call(inputs=first, seed=7)
    checker.begin(call, {side.name: perform(side, call) for side in (compiled, eager)})
    checker.run(first["eager"])
    for number, shape in enumerate(case.sizes, 1):
        timed(eager, first["eager"], 2), timed(compiled, first["compiled"], 3)
        checker.add(make(shape), number)
    timed(eager, first["eager"], 4), timed(compiled, first["compiled"], 2)
    return list(Judge(eager, compiled, config, contextlib.nullcontext).verdicts(checker, may_compile=True))


def timed(side: Side, inputs: Inputs, calls: int) -> None:
    work = side.bound(side.take(inputs))
    with side.ready():
        for _ in range(calls):
            work()


def told(rows: list[Numerics]) -> str:
    return "\n".join(f"{row.shape} {row.subject} {row.backend} {row.verdict}: {row.detail}" for row in rows)


@pytest.mark.parametrize("case", RIGHT_CASES.values(), ids=RIGHT_CASES.keys())
def test_that_nothing_right_is_called_wrong(case: Case) -> None:
    rows = judged(case)

    worst = min((row.verdict for row in rows), key=WORST_FIRST.index)
    assert worst in case.truth, told(rows)
    assert case.subject is None or case.subject in {row.subject for row in rows}


@pytest.mark.parametrize("case", WRONG_CASES.values(), ids=WRONG_CASES.keys())
def test_that_nothing_wrong_is_called_a_match(case: Case) -> None:
    rows = judged(case)

    own = [row for row in rows if not isinstance(row.backend, str) or row.backend == case.backend]
    worst = min((row.verdict for row in own), key=WORST_FIRST.index)
    assert worst in (WRONG if case.truth == RIGHT else case.truth), told(rows)
    if case.subject is not None:
        assert ("differ", case.subject) in {(row.verdict, row.subject) for row in own}, told(rows)
    if case.sizes:
        assert {row.shape for row in own if row.verdict == "differ"} == {len(case.sizes)}, told(rows)
