"""One configuration of torch.compile, and the product of several options."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

OptionValue = str | int | float | bool
Scope = Literal["model", "step"]
SCOPES: tuple[Scope, ...] = ("model", "step")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Arguments of `torch.compile`; `None` leaves an argument at torch's own default.

    `mode` and `options` exclude each other, as in torch itself.
    `dynamic`: None = auto, True = on, False = off.
    `scope`: what is compiled in training: the model, or the step as a whole: forward, loss, backward and optimizer.
    """

    backend: str = "inductor"
    mode: str | None = None
    options: Mapping[str, OptionValue] | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    scope: Scope = "model"

    @property
    def wants_cudagraphs(self) -> bool:
        """Whether CUDA graphs are asked for, by mode, option or backend."""
        by_option = bool((self.options or {}).get("triton.cudagraphs"))
        return self.backend == "cudagraphs" or by_option or self.mode in ("reduce-overhead", "max-autotune")

    @property
    def wants_autotuning(self) -> bool:
        """Whether kernels are searched for, by mode or option."""
        by_option = bool((self.options or {}).get("max_autotune"))
        return by_option or self.mode in ("max-autotune", "max-autotune-no-cudagraphs")

    @property
    def asks_by(self) -> str:
        """What asks for CUDA graphs or tuning, in a sentence: the mode, else the whole name."""
        return self.mode or self.label

    @property
    def label(self) -> str:
        """A short name, unique among the configurations of one comparison."""
        # "eager" alone is what every configuration is compared with
        name = "backend eager" if self.backend == "eager" else self.backend
        parts = [self.mode or "default"] if self.backend == "inductor" else [name]
        if self.backend != "inductor" and self.mode not in (None, "default"):
            parts.append(str(self.mode))
        if self.options:
            parts = [] if self.backend == "inductor" else parts
            parts += [f"{key}={value}" for key, value in self.options.items()]
        if self.dynamic is not None:
            parts.append("dynamic" if self.dynamic else "static")
        if self.fullgraph:
            parts.append("fullgraph")
        if self.scope == "step":
            parts.append("whole step")
        return " · ".join(parts)

    @property
    def snippet(self) -> str:
        """The line of code that makes this configuration."""
        is_step = self.scope == "step"
        arguments = ["step" if is_step else "model"]
        if self.backend != "inductor":
            arguments.append(f"backend={json.dumps(self.backend)}")
        if self.mode not in (None, "default"):
            arguments.append(f"mode={json.dumps(self.mode)}")
        if self.options:
            arguments.append(f"options={dict(self.options)!r}")
        if self.dynamic is not None:
            arguments.append(f"dynamic={self.dynamic}")
        if self.fullgraph:
            arguments.append("fullgraph=True")
        note = "  # forward, loss, backward and optimizer.step() in one function" if is_step else ""
        return f"{arguments[0]} = torch.compile({', '.join(arguments)}){note}"

    def to_json(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "mode": self.mode,
            "options": dict(self.options) if self.options else None,
            "dynamic": self.dynamic,
            "fullgraph": self.fullgraph,
            "scope": self.scope,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Config:
        return cls(
            backend=str(value.get("backend") or "inductor"),
            mode=value.get("mode"),
            options=value.get("options") or None,
            dynamic=value.get("dynamic"),
            fullgraph=bool(value.get("fullgraph", False)),
            scope=value.get("scope") or "model",
        )


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Sets of options; their product is what gets compared."""

    modes: Sequence[str | None] = ("default",)
    dynamics: Sequence[bool | None] = (None,)
    fullgraphs: Sequence[bool] = (False,)
    backends: Sequence[str] = ("inductor",)
    options: Mapping[str, OptionValue] | None = field(default=None)
    scopes: Sequence[Scope] = ("model",)

    def product(self) -> list[Config]:
        """Every configuration once, in the order the options were given."""
        modes: Sequence[str | None] = (None,) if self.options else self.modes
        configs: list[Config] = []
        for backend, mode, dynamic, fullgraph, scope in itertools.product(
            self.backends, modes, self.dynamics, self.fullgraphs, self.scopes
        ):
            # torch accepts modes for inductor only
            config = Config(
                backend=backend,
                mode=mode if backend == "inductor" else None,
                options=self.options,
                dynamic=dynamic,
                fullgraph=fullgraph,
                scope=scope,
            )
            # one name for one thing: a mode that is not given is the default mode
            if config.label not in (known.label for known in configs):
                configs.append(config)
        return configs
