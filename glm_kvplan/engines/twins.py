"""Flags of the engines that mean the same thing, and guesses at flags: what to write instead."""

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

_MTP = '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 3}\''
# what people guess, sglang's spelling, vllm's
_GUESSED = (
    (("--mtp", "--speculative", "--spec", "--speculation", "--eagle"), "--speculative-algorithm EAGLE", _MTP),
    (("--kv-dtype", "--cache-dtype", "--kv-cache", "--fp8"), "--kv-cache-dtype", "--kv-cache-dtype"),
    (("--state-dtype", "--ssm-dtype", "--mamba-dtype"), "--mamba-ssm-dtype", "--mamba-ssm-cache-dtype"),
    (("--tensor-parallel", "--ranks"), "--tp-size", "--tensor-parallel-size"),
    (("--data-parallel",), "--dp-size", "--data-parallel-size"),
    (("--dp-attention", "--attention-dp"), "--enable-dp-attention", None),
    (("--mem-fraction", "--memory-fraction", "--memory"), "--mem-fraction-static", "--gpu-memory-utilization"),
    (("--max-context", "--max-len", "--max-length", "--max-seq-len"), "--context-length", "--max-model-len"),
    (("--hicache", "--host-cache", "--offload"), "--enable-hierarchical-cache", None),
)


def guessed_in(engine: str, option: str) -> str | None:
    """The flag of an engine that a guess at one means; None where nothing is known of it."""
    at = ("sglang", "vllm").index(engine)
    return next((names[at] for guesses, *names in _GUESSED if option in guesses), None)


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
