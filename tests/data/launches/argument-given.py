import subprocess
def serve(tp):
    subprocess.run(["vllm", "serve", "zai-org/GLM-5.3-Flash", "--tensor-parallel-size", str(tp)])
