"""What an option comes to on a device: it is offered all the same, with the reason beside it."""

from __future__ import annotations


def mode_note(mode: str, device: str | None) -> str:
    """Why a mode does not do here what it is for; empty where it does."""
    if device is None or not is_cpu(device):
        return ""
    if mode == "reduce-overhead":
        return "No CUDA graphs on a CPU: compiles as default does."
    if mode == "max-autotune":
        return "No CUDA graphs on a CPU, and fewer choices to tune."
    return ""


def precision_note(precision: str, device: str | None, capability: str | None = None) -> str:
    """What to know about a precision on a device."""
    if device is None:
        return ""
    if is_cpu(device):
        notes = {
            "tf32": "TF32 is a format of NVIDIA GPUs: on a CPU this is fp32.",
            "fp16": "Few CPUs compute in fp16; expect it to be slow.",
        }
        return notes.get(precision, "")
    if precision in ("tf32", "bf16") and capability and float(capability) < 8.0:
        return f"Needs compute capability 8.0 or newer; this GPU has {capability}."
    return ""


def backend_note(backend: str, device: str | None) -> str:
    """What a backend is for, where it is not the one to ship."""
    notes = {
        "eager": "Captures graphs and runs them as they are: shows what Dynamo does.",
        "aot_eager": "Captures forward and backward and runs them as they are: shows what AOTAutograd does.",
    }
    if backend == "cudagraphs" and device is not None and is_cpu(device):
        return "CUDA graphs need an NVIDIA GPU."
    return notes.get(backend, "")


def l2_flush_note(device: str | None) -> str:
    """Why the L2 cache is not flushed on a device; empty where it can be."""
    if device is None or not is_cpu(device):
        return ""
    return "Not on a CPU: calls are timed back to back, with nothing between them."


def is_cpu(device: str) -> bool:
    return device == "cpu" or device.startswith("cpu:")
