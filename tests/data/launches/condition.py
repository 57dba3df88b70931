import subprocess
cmd = ["sglang", "serve", "zai-org/GLM-5.3-Flash", "--tp", "8"]
if use_mtp:
    cmd.extend(["--speculative-algorithm", "EAGLE"])
subprocess.run(cmd)
