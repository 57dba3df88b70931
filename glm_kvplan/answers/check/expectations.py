"""Everything a check can say of a deployment, by the name that `expect.tolerate` knows it under."""

# The expectations of a file, in the order they are reported; `boots` is expected of every file.
EXPECTATIONS = {
    "boots": "the engine starts",
    "min_context": "one request of this many tokens is served",
    "min_concurrency": "this many requests run at once, each min_context tokens long (without it: of any length)",
    "min_total_tokens": "token places of all token pools",
    "max_running_requests": "running requests the engine grants, at least",
    "headroom": "GiB that stay free on every GPU once the pools exist, or 'fits': as much as serving needs",
    "host_memory": "the HiCache host pools fit the host",
}
# What does not fail a check by itself (`--strict` makes it). The HiCache ones are those of sizing/host_hazards.py.
WARNINGS = {
    "tight_headroom": "what stays free may or may not be enough to serve from",
    "estimated_memory": "an expectation does not hold at the lower end of the memory estimate",
    "requests_capped": "fewer running requests are granted than the flags ask for",
    "assumed_gpu": "no GPU is named",
    "gpu_count": "the manifest asks for another number of GPUs than the layout has",
    "launch": "a remark of the launch command's reader, such as an unknown flag",
    "resolve": "the engine accepts a flag that does not do what it seems to",
    "scales_lost": "HiCache: FP8 scales have no host copy",
    "no_transfer": "HiCache: the memory layout has no transfers",
    "index_not_backed_up": "HiCache: the index has no host copy",
    "smaller_than_device": "HiCache: a host pool is no larger than the device's",
    "size_is_per_rank": "HiCache: the size counts per GPU, not per host",
    "pools_checked_alone": "HiCache: pools pass one by one and exceed the host together",
    "pod_limit_unseen": "HiCache: the release does not read the container's limit",
    "replicas_unseen": "HiCache: replicas share a host without knowing of each other",
}
KINDS = {**EXPECTATIONS, **WARNINGS}
