"""How the engines' servers are started: what tells one launch command from another."""

from glm_kvplan.launch.launch import Server

SERVERS = (
    Server(
        "sglang",
        "sglang",
        ("sglang.launch_server", "dynamo.sglang", "sglang_router.launch_server"),
        ("sglang/launch_server.py",),
        wrappers=("dynamo.sglang", "sglang_router.launch_server"),
        flags=(
            *("--model-path", "--tp-size", "--tp", "--dp-size", "--mem-fraction-static", "--context-length"),
            *("--max-running-requests", "--chunked-prefill-size", "--disable-radix-cache", "--mamba-ssm-dtype"),
            *("--max-total-tokens", "--enable-dp-attention", "--disaggregation-mode", "--enable-hierarchical-cache"),
            *("--tensor-parallel-size", "--kv-cache-dtype"),
        ),
    ),
    Server(
        "vllm",
        "vllm",
        ("vllm.entrypoints.openai.api_server", "dynamo.vllm"),
        ("vllm/entrypoints/openai/api_server.py",),
        ("vllm/vllm-openai",),
        wrappers=("dynamo.vllm",),
        flags=(
            *("--max-model-len", "--gpu-memory-utilization", "--max-num-seqs", "--max-num-batched-tokens"),
            *("--enable-expert-parallel", "--enable-prefix-caching", "--no-enable-prefix-caching", "--block-size"),
            *("--speculative-config", "--kv-transfer-config", "--mamba-ssm-cache-dtype", "--kv-cache-memory-bytes"),
            *("--tensor-parallel-size", "--kv-cache-dtype"),
        ),
    ),
)
