"""Starts the server on Modal."""
import os
import subprocess

MODEL = "zai-org/GLM-5.3-Flash"
N_GPU = 4
os.environ["SGLANG_MAMBA_CONV_DTYPE"] = "float32"


def serve():
    cmd = ["sglang", "serve", MODEL, f"--tp={N_GPU}", "--context-length", str(131072)]
    subprocess.run(" ".join(cmd), shell=True)
