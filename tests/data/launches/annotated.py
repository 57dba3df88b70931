"""Names with their types."""
import subprocess

MODEL: str = "zai-org/GLM-5.3-Flash"
GPUS: int = 4
command: list[str] = ["sglang", "serve", MODEL, "--tp", str(GPUS)]
subprocess.run(command)
