"""Flags of the engines that mean the same thing: what to write instead of another engine's flag."""

# sglang's spellings, vllm's. A word after the flag says how its value differs.
_TWINS = (
    (("--tp-size", "--tp"), "--tensor-parallel-size"),
    (("--dp-size", "--dp"), "--data-parallel-size"),
    (("--pp-size",), "--pipeline-parallel-size"),
    (("--ep-size", "--ep"), "--enable-expert-parallel"),
    (("--dcp-size",), "--decode-context-parallel-size"),
    (("--mem-fraction-static",), "--gpu-memory-utilization"),
    (("--context-length",), "--max-model-len"),
    (("--max-running-requests",), "--max-num-seqs"),
    (("--chunked-prefill-size",), "--max-num-batched-tokens"),
    (("--disable-radix-cache",), "--no-enable-prefix-caching"),
    (("--mamba-ssm-dtype",), "--mamba-ssm-cache-dtype"),
    (("--page-size",), "--block-size"),
    (("--max-total-tokens",), "--num-gpu-blocks-override or --kv-cache-memory-bytes"),
    (("--speculative-algorithm", "--speculative-algo"), '--speculative-config \'{"method": "mtp", ...}\''),
    (("--speculative-num-steps", "--speculative-num-draft-tokens"), "num_speculative_tokens of --speculative-config"),
    (("--speculative-eagle-topk",), "--speculative-config, which drafts one chain"),
    (("--moe-a2a-backend",), "--all2all-backend"),
    (("--language-only",), "--language-model-only"),
    (("--model-path",), "--model"),
    (("--disable-cuda-graph",), "--enforce-eager"),
    (("--cuda-graph-max-bs",), "--max-cudagraph-capture-size"),
)


def twin_in_vllm(option: str) -> str | None:
    """What vLLM calls a flag of SGLang; None where it is none that is known."""
    return next((theirs for ours, theirs in _TWINS if option in ours), None)


def twin_in_sglang(option: str) -> str | None:
    """What SGLang calls a flag of vLLM; None where it is none that is known."""
    return next((ours[0] for ours, theirs in _TWINS if option == theirs.partition(" ")[0]), None)


def twin_of(option: str, engine: str) -> str | None:
    """What `engine` calls a flag of the other engine; None where it is none that is known."""
    return twin_in_vllm(option) if engine == "vllm" else twin_in_sglang(option)


def twin_in(engine: str, option: str) -> str | None:
    """What an engine calls a flag of the other one; None where it is none that is known."""
    return {"sglang": twin_in_sglang, "vllm": twin_in_vllm}[engine](option)
