"""The work that is timed: one inference call or one training step, the same for both sides."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

from compilescope.domain.workload import GradMode, Workload
from compilescope.worker.errors import WorkerError
from compilescope.worker.inputs import Inputs, duplicate, leaves
from compilescope.worker.training import Step, training_step, with_loss

Call = Callable[..., Any]
_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What both sides' work is made from."""

    training: bool
    precision: str
    device: torch.device
    loss: Callable[[Any], torch.Tensor]
    # None where a step shall leave the parameters as they are
    optimizer: Callable[[Any], torch.optim.Optimizer] | None
    grad_mode: GradMode = "inference_mode"

    @classmethod
    def of(cls, workload: Workload, device: torch.device, module: ModuleType) -> Recipe:
        return cls(
            training=workload.phase == "training",
            precision=workload.precision,
            device=device,
            loss=getattr(module, "get_loss", mean_square),
            optimizer=getattr(module, "get_optimizer", torch.optim.AdamW),
            grad_mode=workload.grad_mode,
        )

    def without_gradients(self) -> contextlib.AbstractContextManager[Any]:
        """The mode that inference runs in; where it needs gradients itself, one that has them."""
        if self.grad_mode == "enable_grad":
            return torch.enable_grad()
        return torch.no_grad() if self.grad_mode == "no_grad" else torch.inference_mode()

    @property
    def autocast_type(self) -> torch.dtype | None:
        """The type that autocast computes in; None where it is off."""
        return _AUTOCAST.get(self.precision)


class Side:
    """One model with what it needs to run: eager or compiled.

    `call` may be the compiled wrapper of `model`; the state is the model's. `compile_step`: makes the whole training
    step the thing that is compiled. `own`: the globals of its script's modules, by name; `home`: makes those modules
    the ones that Python finds; `follows`: the classes of theirs.
    """

    def __init__(
        self,
        name: str,
        model: nn.Module,
        call: Call,
        recipe: Recipe,
        compile_step: Callable[[Step], Step] | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.call = call
        self.recipe = recipe
        self.optimizer: torch.optim.Optimizer | None = None
        self.scaler: torch.amp.GradScaler | None = None
        self.last_loss: torch.Tensor | None = None
        self.stance: str | None = None
        self.own: dict[str, dict[str, Any]] = {}
        self.home: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
        self.follows: Callable[[type], bool] | None = None
        # device memory that its calls reach, once that was watched
        self.peak_bytes: int | None = None
        if recipe.training:
            self._prepare_training()
            forward = with_loss(call, recipe.loss, recipe.device.type, recipe.autocast_type)
            step = training_step(forward, self.optimizer, self.scaler)
            self._train = compile_step(step) if compile_step else step

    def _prepare_training(self) -> None:
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if parameters and self.recipe.optimizer is not None:
            self.optimizer = self.recipe.optimizer(parameters)
        if self.recipe.precision == "fp16" and self.optimizer is not None:
            self.scaler = torch.amp.GradScaler(self.recipe.device.type)
        # an optimizer of some of the parameters would let the gradients of the others add up from step to step
        groups = getattr(self.optimizer, "param_groups", None) or []
        taken = {id(parameter) for group in groups for parameter in group["params"]}
        self._left_out = [parameter for parameter in parameters if id(parameter) not in taken]

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """Around calls: its own modules, the grad mode of the phase, true eager where the script compiles itself."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.home())
            if self.stance:
                stack.enter_context(torch.compiler.set_stance(self.stance))
            if not self.recipe.training:
                stack.enter_context(self.recipe.without_gradients())
            yield

    def take(self, inputs: Inputs) -> Inputs:
        """Inputs of this side's own, made in the mode of its calls.

        Ordinary tensors among those of inference mode fail a guard: a loop over blocks would compile twice.
        """
        with self.ready():
            return duplicate(inputs)

    def bound(self, inputs: Inputs) -> Callable[[], Any]:
        """One call or step with these inputs, as lean as it can be; returns the model's output."""
        if self.recipe.training:
            return lambda: self._step(inputs)
        call, args, kwargs = self.call, inputs.args, inputs.kwargs
        dtype = self.recipe.autocast_type
        if dtype is None:
            return lambda: call(*args, **kwargs)
        autocast = torch.autocast(self.recipe.device.type, dtype=dtype)

        def cast() -> Any:
            with autocast:
                return call(*args, **kwargs)

        return cast

    def _step(self, inputs: Inputs) -> Any:
        if self.optimizer is not None:
            self.optimizer.zero_grad(set_to_none=True)
        for parameter in self._left_out:
            parameter.grad = None
        output, self.last_loss = self._train(*inputs.args, **inputs.kwargs)
        return output

    def roots(self, inputs: Inputs | None = None) -> dict[str, Any]:
        """All that a call can change, by name, for `State`."""
        roots: dict[str, Any] = {"model": self.model, "globals": self.own}
        named = {"inputs": inputs.tree if inputs else None, "optimizer": self.optimizer, "scaler": self.scaler}
        return roots | {name: value for name, value in named.items() if value is not None}

    def twin(self, recipe: Recipe | None = None) -> Side:
        """Another side of the same model, uncompiled, with an optimizer of its own."""
        other = Side(self.name, self.model, self.model, recipe or self.recipe)
        return other.takes_place_of(self)

    def takes_place_of(self, side: Side) -> Side:
        """Runs where another side runs."""
        self.stance, self.own, self.home, self.follows = side.stance, side.own, side.home, side.follows
        return self

    def gradients(self) -> dict[str, torch.Tensor | None]:
        """The gradients that the last step left."""
        return {name: parameter.grad for name, parameter in self.model.named_parameters()}

    def held(self) -> Iterator[torch.Tensor]:
        """Tensors that this side keeps between calls."""
        for parameter in self.model.parameters():
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
        yield from self.model.buffers()
        if self.optimizer is not None:
            for entry in self.optimizer.state.values():
                yield from (value for value in entry.values() if isinstance(value, torch.Tensor))

    def synchronize(self) -> None:
        if self.recipe.device.type == "cuda":
            torch.cuda.synchronize(self.recipe.device)

    def input_gradients(self, inputs: Inputs) -> dict[str, torch.Tensor | None]:
        """Those of the inputs that ask for one."""
        tensors = [(path, leaf) for path, leaf in leaves(inputs.tree, "") if isinstance(leaf, torch.Tensor)]
        return {path: leaf.grad for path, leaf in tensors if leaf.requires_grad and leaf.is_leaf}

    def release(self) -> None:
        """Let go of gradients, so that the other side's memory can be told alone."""
        self.model.zero_grad(set_to_none=True)
        self.last_loss = None


def mean_square(output: Any) -> torch.Tensor:
    """The default loss: the mean of squares of the floating-point outputs, at least in fp32: fp16 could overflow."""
    # the usual case apart: compilers cannot follow every walk through containers
    found = [output] if isinstance(output, torch.Tensor) else [leaf for _, leaf in leaves(output, "output")]
    parts = [
        _at_least_single(torch.view_as_real(leaf) if leaf.is_complex() else leaf).square().mean()
        for leaf in found
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and (leaf.is_floating_point() or leaf.is_complex())
    ]
    if not parts:
        raise WorkerError(
            "The model's output has no floating-point part with a gradient, so there is nothing to train.",
            hint="Add get_loss(output) to the script, or choose inference.",
        )
    return torch.stack(parts).sum() if len(parts) > 1 else parts[0]


def _at_least_single(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dtype is torch.float64 else tensor.float()
