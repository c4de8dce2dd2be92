"""The machine and its software, as far as it tells. Everything is asked for carefully: a part may lack any of it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from compilescope.domain.events import Environment

T = TypeVar("T")

# torch's version since which a fact can be told
_SINCE: tuple[tuple[str, tuple[int, int]], ...] = (
    ("structured_trace", (2, 6)),
    ("stance", (2, 6)),
    ("guard_latency", (2, 7)),
    ("aot_autograd_cache", (2, 7)),
    ("graph_break_kinds", (2, 7)),
    ("compile_triggers", (2, 8)),
    ("graph_break_ids", (2, 9)),
    ("kernel_provenance", (2, 9)),
    ("graph_break_chains", (2, 11)),
)
OLDEST_TORCH = (2, 6)


def attempt(ask: Callable[[], T], default: T) -> T:
    """What `ask` returns, or the default where this torch or machine cannot tell."""
    try:
        return ask()
    except Exception:
        return default


def torch_version() -> str | None:
    """The installed torch, without the seconds that importing it takes."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def parse_version(version: str | None) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(match[1]), int(match[2])) if match else (0, 0)


def capabilities(version: str | None) -> tuple[str, ...]:
    """Names of what this version of torch can tell."""
    number = parse_version(version)
    return tuple(name for name, since in _SINCE if number >= since)


def cache_is_empty() -> bool | None:
    """Whether the chosen folder of compiler caches holds nothing; None where none was chosen."""
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if not folder:
        return None
    try:
        return not any(Path(folder).iterdir())
    except FileNotFoundError:
        return True
    except OSError:
        return None


def bare() -> Environment:
    """What can be said without torch."""
    return Environment(
        python=platform.python_version(),
        cpu=cpu_name(),
        os=os_name(),
        compiler=attempt(cpp_compiler, None),
        missing=(f"torch is not installed for {sys.executable}.",),
    )


def collect(device: str | None, *, choices: bool) -> Environment:
    """Everything about this process's torch and the device that the run uses.

    `choices`: also the modes and backends, for which the compiler is imported.
    """
    import torch

    cuda = attempt(torch.cuda.is_available, False)
    index = _cuda_index(device) if cuda else None
    compiler = attempt(cpp_compiler, None)
    triton = attempt(lambda: importlib.metadata.version("triton"), None)
    return Environment(
        torch=str(torch.__version__),
        python=platform.python_version(),
        triton=triton,
        device=torch.cuda.get_device_name(index) if index is not None else "cpu",
        device_capability=attempt(lambda: _capability(index), None),
        driver=attempt(driver_version, None) if cuda else None,
        cuda=torch.version.cuda or getattr(torch.version, "hip", None),
        cpu=cpu_name(),
        os=os_name(),
        compiler=compiler,
        threads=torch.get_num_threads(),
        devices=_devices(cuda),
        modes=attempt(_modes, {}) if choices else {},
        backends=attempt(_backends, ()) if choices else (),
        missing=tuple(_missing(cuda=cuda, compiler=compiler, triton=triton)),
    )


def _cuda_index(device: str | None) -> int | None:
    if device is None:
        return 0
    if not device.startswith("cuda"):
        return None
    return int(device.partition(":")[2] or 0)


def _capability(index: int | None) -> str | None:
    import torch

    if index is None:
        return None
    major, minor = torch.cuda.get_device_capability(index)
    return f"{major}.{minor}"


def _devices(cuda: bool) -> tuple[dict[str, Any], ...]:
    import torch

    found: list[dict[str, Any]] = []
    for index in range(attempt(torch.cuda.device_count, 0) if cuda else 0):
        properties = torch.cuda.get_device_properties(index)
        found.append({"id": f"cuda:{index}", "name": properties.name, "memory_bytes": int(properties.total_memory)})
    found.append({"id": "cpu", "name": cpu_name() or "CPU"})
    return tuple(found)


def _modes() -> dict[str, Any]:
    import torch._inductor

    modes = torch._inductor.list_mode_options()
    return {str(name): dict(options) for name, options in modes.items()}


def _backends() -> tuple[str, ...]:
    import torch

    listed = [str(name) for name in torch.compiler.list_backends()]
    first = [name for name in ("inductor", "cudagraphs") if name in listed]
    rest = [name for name in listed if name not in first]
    return tuple(dict.fromkeys([*first, *rest, "aot_eager", "eager"]))


def _missing(*, cuda: bool, compiler: str | None, triton: str | None) -> list[str]:
    import torch

    sentences = []
    if not cuda:
        built = torch.version.cuda or getattr(torch.version, "hip", None)
        sentences.append(
            "No CUDA device was found, although this torch is built for one."
            if built
            else "This torch is built for the CPU only, so there is no CUDA device and there are no CUDA graphs."
        )
    elif triton is None:
        sentences.append("Triton is not installed, so Inductor cannot build GPU kernels.")
    if compiler is None:
        sentences.append("No C++ compiler was found, so Inductor cannot build code for the CPU.")
    return sentences


def cpp_compiler() -> str | None:
    """The C++ compiler that Inductor would take, with its version."""
    names = [os.environ.get("CXX", ""), "g++", "clang++", "c++", "cl"]
    for name in filter(None, names):
        if path := shutil.which(name):
            if name == "cl":
                return path
            told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
            return (told.stdout.splitlines() or [path])[0].strip()
    return None


def driver_version() -> str | None:
    """The NVIDIA driver, from the kernel module, else from nvidia-smi."""
    proc = Path("/proc/driver/nvidia/version")
    if proc.exists() and (match := re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", proc.read_text())):
        return match[1]
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    command = [smi, "--query-gpu=driver_version", "--format=csv,noheader"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return told.stdout.split("\n")[0].strip() or None


def cpu_name() -> str | None:
    """The processor's model."""
    info = Path("/proc/cpuinfo")
    if info.exists() and (match := re.search(r"model name\s*:\s*(.+)", attempt(info.read_text, ""))):
        return match[1].strip()
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        told = attempt(lambda: subprocess.run(command, capture_output=True, text=True, check=False).stdout, "")
        return told.strip() or platform.machine()
    return platform.processor() or platform.machine() or None


def os_name() -> str:
    """The system with its version: "Ubuntu 24.04 (Linux 6.8)"."""
    kernel = f"{platform.system()} {platform.release()}"
    pretty = attempt(lambda: platform.freedesktop_os_release().get("PRETTY_NAME"), None)
    return f"{pretty} ({kernel})" if pretty else kernel
