import subprocess, sys
cmd = [
    sys.executable, "-m", "sglang.launch_server",
    "--model-path", "zai-org/GLM-5.3-Flash",
    "--tp-size", "8",
    "--mem-fraction-static", "0.8",
]
cmd += ["--kv-cache-dtype", "fp8_e4m3"]
subprocess.Popen(cmd)
