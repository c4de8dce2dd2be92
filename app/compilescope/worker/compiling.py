"""Compiles a model with one configuration, and says beforehand what cannot work here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from compilescope.domain.config import Config, OptionValue
from compilescope.domain.events import Event, Warning
from compilescope.worker import first_use, provenance
from compilescope.worker.steps import Recipe, Side

# torch's own backends that build no code; whatever else there is may ask for Inductor
_WITHOUT_INDUCTOR = ("eager", "aot_eager", "aot_eager_decomp_partition")
TORCHS_OWN = ("inductor", "cudagraphs", *_WITHOUT_INDUCTOR)


def load(backend: str, device: torch.device, emit: Callable[[Event], None], *, notes_kernels: bool) -> None:
    """Bring the compiler into the process now, so that the first call's time is the compiler's work; tells the time
    that each part takes. `notes_kernels`: generated code tells which lines each kernel comes from."""
    with first_use.timed("import of the compiler", emit):
        preload(backend)
    if notes_kernels and uses_inductor(backend):
        provenance.note_kernels()
    if device.type == "cuda" and uses_inductor(backend):
        with first_use.timed("Triton and its driver", emit):
            preload_triton()
    first_use.watch(emit)


def preload(backend: str) -> None:
    import torch._dynamo

    if uses_inductor(backend):
        import torch._inductor.compile_fx
    elif backend != "eager":
        import torch._functorch.aot_autograd  # noqa: F401


def uses_inductor(backend: str) -> bool:
    """Whether a backend may build its code with Inductor."""
    return backend not in _WITHOUT_INDUCTOR


def preload_triton() -> None:
    """What a process does before its first Triton kernel; a torch without Triton has nothing to do."""
    with contextlib.suppress(Exception):
        from triton.runtime import driver

        # the first question to the driver builds its interface with the C compiler
        driver.active.get_current_device()


def compiled_side(
    model: nn.Module,
    config: Config,
    recipe: Recipe,
    extra: Mapping[str, OptionValue] | None = None,
    name: str = "compiled",
) -> Side:
    """The compiled side of a model: the model is compiled, or its whole training step, as the configuration says."""

    def compiled(work: Any) -> Any:
        return compile_callable(work, config, extra)

    if config.scope == "step" and recipe.training:
        return Side(name, model, model, recipe, compile_step=compiled)
    return Side(name, model, compiled(model), recipe)


def compile_callable(work: Any, config: Config, extra: Mapping[str, OptionValue] | None = None) -> Any:
    """The compiled wrapper of a model or function; nothing is compiled before its first call."""
    arguments: dict[str, Any] = {
        "backend": config.backend,
        "dynamic": config.dynamic,
        "fullgraph": config.fullgraph,
    }
    if config.options or extra:
        arguments["options"] = {**_mode_options(config), **(config.options or {}), **(extra or {})}
    elif config.mode is not None:
        arguments["mode"] = config.mode
    return torch.compile(work, **arguments)


def _mode_options(config: Config) -> dict[str, Any]:
    """A mode as options, since torch takes one or the other."""
    if config.mode in (None, "default"):
        return {}
    import torch._inductor

    return dict(torch._inductor.list_mode_options(config.mode, config.dynamic))


def cautions(config: Config, device: torch.device) -> Iterator[Warning]:
    """What this configuration asks for and will not get on this device."""
    options: dict[str, Any] = dict(config.options or {})
    with contextlib.suppress(Exception):
        options = _mode_options(config) | options
    if device.type == "cpu" and (options.get("triton.cudagraphs") or config.backend == "cudagraphs"):
        yield Warning(
            code="cudagraphs_need_cuda",
            message=f"{config.asks_by} records CUDA graphs, which need a CUDA device; on the CPU it does without.",
            hint="Choose a CUDA device, or compare the mode default here.",
        )
    if device.type == "cpu" and options.get("max_autotune"):
        yield Warning(
            code="autotune_on_cpu",
            message=f"{config.asks_by} tunes Triton kernels for a GPU; on the CPU there is little for it to tune.",
            hint="Expect the speed of the mode default, and a longer first call.",
        )
