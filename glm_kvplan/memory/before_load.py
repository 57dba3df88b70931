"""What a card does not show to the process that loads the weights: driver, context and communicators, measured.

The figures are the public boots' of measurements.toml, fitted by benchmarks/public_boots.py: a test holds them to it. A
platform with two servers or more has their mean, and the error is that of one server more (95 %) by the spread of all
servers of the vendor. A platform with fewer has its vendor's mean, and its error is larger by the root of two, for a
mean and a server are unknown. No error is larger than its figure: that of a vendor with a single server is as large.
"""

from typing import NamedTuple

from glm_kvplan.memory.gpu import Gpu


class Taken(NamedTuple):
    """GiB taken before the load on one GPU, and how far the next server may be off."""

    gib: float
    error_gib: float
    evidence: str


OTHER = "other NVIDIA"
PLATFORMS = {8: "Ampere", 9: "Hopper", 10: "SM100", 12: "SM120"}  # by the capability's major number
# A server of several GPUs; a platform that is not here has its vendor's.
SEVERAL_GPUS = {
    "SM100": Taken(2.7, 1.2, "2.7 and 2.8 GiB on two B200 servers of 4 and 8 GPUs"),
    "Hopper": Taken(1.9, 1.2, "1.7 to 2.3 GiB on three servers: 4x H20, 8x H20-3e, 16x H200"),
    "SM120": Taken(1.7, 1.2, "1.6 and 1.7 GiB on two RTX PRO 6000 servers of 4 and 2 GPUs"),
    OTHER: Taken(2.1, 1.7, "1.6 to 2.8 GiB on eight NVIDIA servers, one or none of them of this platform"),
    "ROCm": Taken(11.2, 11.2, "11 GiB on the one ROCm server measured, 8x MI355X"),
}
ONE_GPU = {
    OTHER: Taken(1.4, 1.4, "1.0 GiB on an H100, 1.8 on a GB300; as uncertain as servers of several GPUs"),
    "ROCm": Taken(11.2, 11.2, "no ROCm server of one GPU measured: as on 8x MI355X"),
}
INTEGRATED = Taken(5.6, 5.6, "5.6 GiB in the one public DGX Spark report; the host's use decides it: give --pre-gib")


def platform(gpu: Gpu) -> str:
    """The group of cards whose servers are alike in what they take."""
    if gpu.vendor == "rocm":
        return "ROCm"
    return PLATFORMS.get(gpu.capability[0], OTHER)


def taken_before_load(gpu: Gpu, gpus: int) -> Taken:
    """What is taken on each of an engine's `gpus` before its weights load."""
    if gpu.integrated:
        return INTEGRATED
    table = ONE_GPU if gpus == 1 else SEVERAL_GPUS
    return table.get(platform(gpu), table[OTHER])
