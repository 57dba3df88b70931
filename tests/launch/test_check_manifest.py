"""Launch commands in Kubernetes manifests, from the shapes that operators write."""

import textwrap

import pytest

from glm_kvplan.engines.planner import read_launch
from glm_kvplan.engines.protocol import Command
from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.launch import Container
from glm_kvplan.launch.manifest import is_manifest

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: glm}
spec:
  containers:
    - name: sidecar
      command: [sleep, infinity]
    - name: server
      env:
        - {name: TP, value: "4"}
        - {name: SGLANG_MAMBA_SSM_DTYPE, value: bfloat16}
        - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
%s
      resources:
        limits: {nvidia.com/gpu: "4", memory: 256Gi}
"""


def read_manifest(text: str, name: str, container: str | None = None) -> tuple[Command, Container]:
    one = read_launch(launches_in(text, SERVERS, name=name), None, container)
    assert one.container is not None
    return one.command, one.container


SHAPES = {
    "words": """
        command: [python3, -m, sglang.launch_server]
        args: [--model-path, zai-org/GLM-5.3-Flash, --tp, "$(TP)", --api-key, "$(KEY)"]
    """,
    "flags of an image's own entrypoint": """
        args: [--model-path=zai-org/GLM-5.3-Flash, --tp=4]
    """,
    "shell": """
        command: [/bin/bash, -c]
        args:
          - |
            ulimit -n 65535
            exec python3 -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash \\
              --tp $TP
    """,
    "shell in the command": """
        command: [sh, -lc, "sglang serve zai-org/GLM-5.3-Flash --tp ${TP}"]
    """,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_container_that_starts_the_engine_is_found(shape: str) -> None:
    text = POD % textwrap.indent(textwrap.dedent(SHAPES[shape]), "      ").strip("\n")
    assert is_manifest(text)
    command, container = read_manifest(text, "pod.yaml")
    assert command.flags == {"tp_size": 4}
    assert command.model == "zai-org/GLM-5.3-Flash"
    assert command.environment == {"SGLANG_MAMBA_SSM_DTYPE": "bfloat16"}
    assert (container.label, container.memory_bytes, container.gpus) == ("glm/server", 256 << 30, 4)


TWO = """\
apiVersion: v1
kind: Service
metadata: {name: front}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: glm}
spec:
  services:
    Frontend: {extraPodSpec: {mainContainer: {args: [python3, -m, dynamo.frontend]}}}
    prefill:
      extraPodSpec:
        mainContainer: {command: [python3, -m, dynamo.sglang], args: [--tp, "4", --disaggregation-mode, prefill]}
    decode:
      extraPodSpec:
        mainContainer: {command: [python3, -m, dynamo.sglang], args: [--tp, "8", --disaggregation-mode, decode]}
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: lws}
spec:
  leaderWorkerTemplate:
    leaderTemplate:
      spec: {containers: [{name: leader, command: [python3, -m, sglang.launch_server, --tp, "16", --nnodes, "2"]}]}
"""


@pytest.mark.parametrize(
    ("name", "tp"), [("prefill", 4), ("decode", 8), ("leader", 16), ("lws", 16), ("glm/decode", 8)]
)
def test_several_launches_need_a_name(name: str, tp: int) -> None:
    assert read_manifest(TWO, "m.yaml", name)[0].flags["tp_size"] == tp


@pytest.mark.parametrize(
    ("text", "container", "says"),
    [
        (TWO, None, "3 containers launch the engine (glm/prefill, glm/decode, lws/leader)"),
        (TWO, "router", "'router' launches the engine; those that do: glm/prefill, glm/decode, lws/leader"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, command: [sleep]}]}\n", None, "no container's"),
        ("apiVersion: v1\nkind: Pod\nx: {{ .Values.x }}\n", None, "helm template"),
        ("apiVersion: v1\nkind: Pod\n" + "a: " + "{a: " * 70 + "1" + "}" * 70, None, "nested too deeply"),
        (POD % "      command: [python3, -m, sglang.launch_server, --tp, four]", None, "container glm/server: word 5"),
    ],
)
def test_what_cannot_be_used(text: str, container: str | None, says: str) -> None:
    with pytest.raises(InputError) as error:
        read_manifest(text, "m.yaml", container)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("quantity", "nbytes"),
    [
        *(("64Ki", 65_536), ("64Mi", 67_108_864), ("1.5Gi", 1_610_612_736), ("2Ti", 2_199_023_255_552)),
        *(("1Pi", 1_125_899_906_842_624), ("64k", 64_000), ("64M", 64_000_000), ("3G", 3_000_000_000)),
        *(("2T", 2_000_000_000_000), ("1P", 1_000_000_000_000_000), ("4096", 4096), ("8000m", 8)),
    ],
)
def test_quantities_of_memory(quantity: str, nbytes: int) -> None:
    """Kubernetes' own suffixes: binary with an i, decimal without, thousandths with m."""
    text = POD.replace("memory: 256Gi", f"memory: {quantity}") % "      args: [--tp=4]"
    assert read_manifest(text, "pod.yaml")[1].memory_bytes == nbytes
