"""How the engines' servers are started: what tells one launch command from another."""

from glm_kvplan.launch.server_commands import Server

SERVERS = (
    Server(
        "sglang",
        "sglang",
        ("sglang.launch_server", "dynamo.sglang", "sglang_router.launch_server"),
        ("sglang/launch_server.py",),
    ),
    Server(
        "vllm",
        "vllm",
        ("vllm.entrypoints.openai.api_server", "dynamo.vllm"),
        ("vllm/entrypoints/openai/api_server.py",),
        ("vllm/vllm-openai",),
    ),
)
