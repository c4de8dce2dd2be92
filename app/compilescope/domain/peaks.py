"""What a card can do at most, by its makers' data sheets: dense, without sparsity, at the boost clock.

Source: NVIDIA's data sheets of the H100 and H200 Tensor Core GPU, A100, A10, L4, L40S, V100 and T4, and the Ada and
GA102 architecture papers for the GeForce cards. Where a sheet gives a figure with sparsity, half of it stands here;
fp16 and bf16 are with fp32 accumulation, as torch uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SOURCE = "NVIDIA’s data sheet, dense, without sparsity"


@dataclass(frozen=True, kw_only=True)
class Peak:
    """FLOP/s by type of product, and bytes per second of the card's memory."""

    flops: Mapping[str, float]
    bytes_per_s: float


def _peak(bandwidth: float, **tera: float) -> Peak:
    return Peak(flops={name: value * 1e12 for name, value in tera.items()}, bytes_per_s=bandwidth * 1e12)


_PEAKS: dict[str, Peak] = {
    "NVIDIA H200": _peak(4.8, fp32=67, tf32=494.5, bf16=989.5, fp16=989.5),
    "NVIDIA H200 NVL": _peak(4.8, fp32=60, tf32=417.5, bf16=835.5, fp16=835.5),
    "NVIDIA H100 80GB HBM3": _peak(3.35, fp32=67, tf32=494.5, bf16=989.5, fp16=989.5),
    "NVIDIA H100 PCIe": _peak(2.0, fp32=51, tf32=378, bf16=756.5, fp16=756.5),
    "NVIDIA A100-SXM4-80GB": _peak(2.039, fp32=19.5, tf32=156, bf16=312, fp16=312),
    "NVIDIA A100 80GB PCIe": _peak(1.935, fp32=19.5, tf32=156, bf16=312, fp16=312),
    "NVIDIA A100-SXM4-40GB": _peak(1.555, fp32=19.5, tf32=156, bf16=312, fp16=312),
    "NVIDIA A100-PCIE-40GB": _peak(1.555, fp32=19.5, tf32=156, bf16=312, fp16=312),
    "NVIDIA A10": _peak(0.6, fp32=31.2, tf32=62.5, bf16=125, fp16=125),
    "NVIDIA L40S": _peak(0.864, fp32=91.6, tf32=183, bf16=362, fp16=362),
    "NVIDIA L4": _peak(0.3, fp32=30.3, tf32=60, bf16=121, fp16=121),
    "NVIDIA GeForce RTX 4090": _peak(1.008, fp32=82.6, tf32=82.6, bf16=165.2, fp16=165.2),
    "NVIDIA GeForce RTX 3090": _peak(0.936, fp32=35.6, tf32=35.6, bf16=71, fp16=71),
    "Tesla V100-SXM2-16GB": _peak(0.9, fp32=15.7, fp16=125),
    "Tesla V100-SXM2-32GB": _peak(0.9, fp32=15.7, fp16=125),
    "Tesla T4": _peak(0.32, fp32=8.1, fp16=65),
}


def peak_of(device: str | None) -> Peak | None:
    """The card's figures by the name that its driver tells; None for a card that is not in the table."""
    return _PEAKS.get((device or "").strip())
