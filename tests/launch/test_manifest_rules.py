"""What Kubernetes objects, charts' values and Compose files say of a launch, by the rules of each."""

from typing import Any

import pytest

from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import plain
from glm_kvplan.launch.compose import is_compose, read_compose
from glm_kvplan.launch.launch import Container, Launch
from glm_kvplan.launch.manifest import data_of, is_manifest, read_manifest

SERVE = ["sglang", "serve", "m"]


def pod(**spec: Any) -> dict[str, Any]:
    """A pod of one container that starts a server; `spec` is the pod's, `container` adds to the container."""
    container = {"name": "server", "command": SERVE, **spec.pop("container", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "glm"}, "spec": {"containers": [container], **spec}}


def read(*documents: Any, **given: str) -> list[Launch]:
    return list(read_manifest(documents, "m.yaml", SERVERS, Surroundings(given=given)).launches)


def around(*documents: Any) -> Container:
    (launch,) = read(*documents)
    assert launch.container is not None
    return launch.container


def words(launch: Launch) -> str:
    return " ".join(f"?{word.text}" if word.mark else word.text for word in launch.words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apiVersion: v1\nkind: Pod\n", True), ("kind: Pod\napiVersion: v1\n", True), ("kind: Pod\n", False),
        ("apiVersion: v1\n", False), (" apiVersion: v1\nkind: Pod\n", False),
    ],
)  # fmt: skip
def test_is_manifest(text: str, expected: bool) -> None:
    assert is_manifest(text) is expected


def test_text_that_is_no_yaml() -> None:
    assert data_of("a: 1\n---\n---\nb: 2\n", "m.yaml") == [{"a": 1}, {"b": 2}]
    with pytest.raises(InputError, match=r"^m\.yaml:2: not YAML: (?!.*helm)"):
        data_of("a: 1\nb: ]\n", "m.yaml")
    with pytest.raises(InputError, match=r"^m\.yaml:\d: not YAML: .*; render the template first \(helm template\)$"):
        data_of("a: 1\nb: {{ .Values.x }}\n", "m.yaml")
    with pytest.raises(InputError, match=r"^m\.yaml: not YAML: "):
        data_of("a: \ud800", "m.yaml")


@pytest.mark.parametrize(
    ("document", "label", "names"),
    [
        (pod(), "glm/server", ("glm", "server")),
        (pod(container={"name": 3}), "glm", ("glm",)),
        ({"spec": pod()["spec"]}, "server", ("server",)),
        ({"command": SERVE}, "unnamed", ()),
        ({"metadata": {"name": "glm"}, "name": "x", "command": SERVE}, "glm", ("glm",)),
        ({"metadata": "x", "name": "y", "command": SERVE}, "y", ("y",)),
        # Dynamo keys its services by name
        ({"worker": {"extraPodSpec": {"mainContainer": {"command": SERVE}}}}, "worker", ("worker",)),
        ({"worker": {"spec": {"mainContainer": {"command": SERVE}}}}, "unnamed", ()),
    ],
)
def test_what_a_container_is_called(document: Any, label: str, names: tuple[str, ...]) -> None:
    found = around(document)
    assert (found.label, found.names) == (label, names)
    (launch,) = read(document)
    assert launch.within == f"m.yaml: container {label}"
    assert all(launch.called(name) for name in (label, *names)) and not launch.called("other")


def test_containers_are_found_in_their_order() -> None:
    one = {"name": "a", "command": [*SERVE, "--tp", "1"]}
    two = {"name": "b", "args": ["vllm", "serve", "m"]}
    assert [launch.label for launch in read({"x": [one, two], "y": {"name": "c", "command": SERVE}})] == ["a", "b", "c"]
    assert [launch.label for launch in read({"x": [one]}, two)] == ["a", "b"]
    inner = {"name": "a", "command": SERVE, "more": [{"command": SERVE}]}
    assert len(read(inner)) == 1  # what stands in a container is none


@pytest.mark.parametrize(
    ("resources", "gpus", "memory"),
    [
        ({"limits": {"nvidia.com/gpu": 8}}, 8, None),
        ({"limits": {"nvidia.com/gpu": "8", "memory": "1Gi"}}, 8, 1 << 30),
        ({"limits": {"amd.com/gpu": 4}}, 4, None),
        ({"limits": {"gpu": "2"}}, 2, None),
        ({"limits": {"nvidia.com/gpu": "x"}}, None, None),
        ({"limits": {"nvidia.com/gpu": 99999}}, 99999, None),
        ({"limits": {"nvidia.com/gpu": 123456}}, None, None),
        ({"limits": {"nvidia.com/gpu": 0}}, 0, None),
        ({"limits": {"cpu": 8}}, None, None),
        ({"requests": {"nvidia.com/gpu": 8}}, 8, None),
        ({"limits": {"nvidia.com/gpu": 4}, "requests": {"nvidia.com/gpu": 8}}, 4, None),
        ({"limits": {"memory": "64 Gi"}}, None, None),
        ({"limits": {"memory": "64gi"}}, None, None),
        ({"limits": {"memory": 4096}}, None, 4096),
        ({"limits": {"memory": "1000000m"}}, None, 1000),
        ({"limits": "none"}, None, None),
        ("none", None, None),
    ],
)
def test_limits(resources: Any, gpus: int | None, memory: int | None) -> None:
    found = around(pod(container={"resources": resources}))
    assert (found.gpus, found.memory_bytes) == (gpus, memory)


def test_what_is_nearer_outranks_what_is_further_out() -> None:
    here = {"resources": {"limits": {"gpu": 4}}, "image": "a", "env": [{"name": "A", "value": "1"}]}
    outside = {
        "resources": {"limits": {"gpu": 8, "memory": "1Ki"}},
        "image": "b",
        "nodeSelector": {"nvidia.com/gpu.product": "H200"},
        "envs": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}],
    }
    (launch,) = read({**outside, "x": {"command": SERVE, **here}})
    found = launch.container
    assert found is not None
    assert (found.gpus, found.memory_bytes, found.image, found.gpu) == (4, None, "a", "H200")
    assert {name: word.text for name, word in launch.environment.items()} == {"A": "1", "B": "3"}
    (launch,) = read({**outside, "x": {"command": SERVE}})
    found = launch.container
    assert found is not None
    assert (found.gpus, found.memory_bytes, found.image, found.gpu) == (8, 1024, "b", "H200")


def expression(*values: Any, key: str = "nvidia.com/gpu.product", operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def affinity(*terms: Any) -> dict[str, Any]:
    """Terms of which one must hold, each a list of expressions that all must."""
    of_nodes = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": of_nodes}}}


@pytest.mark.parametrize(
    ("spec", "card"),
    [
        ({"nodeSelector": {"nvidia.com/gpu.product": "H200"}}, "H200"),
        ({"nodeSelector": {"amd.com/gpu.product-name": "MI300X"}}, "MI300X"),
        ({"nodeSelector": {"zone": "H200"}}, ""),
        ({"nodeSelector": "H200"}, ""),
        (affinity([expression("H200")]), "H200"),
        (affinity([expression("MI300X", key="amd.com/gpu.product-name")]), "MI300X"),
        (affinity([expression("a", key="zone"), expression("H200")]), "H200"),
        (affinity([expression("H200")], [expression("H200")]), "H200"),
        ({**affinity([expression("H200")]), "nodeSelector": {"zone": "a"}}, "H200"),
        (affinity([expression("H200", "B200")]), ""),
        (affinity([expression("H200")], [expression("B200")]), ""),
        (affinity([expression("H200")], [expression("a", key="zone")]), ""),
        (affinity([expression("H200", operator="NotIn")]), ""),
        (affinity([expression("a", key="zone")]), ""),
        (affinity(), ""),
        (affinity(None), ""),
        (affinity(["x", {"key": "nvidia.com/gpu.product", "operator": "In", "values": "H200"}]), ""),
        ({"affinity": {"nodeAffinity": "x"}}, ""),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "x"}}}, ""),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}, ""),
    ],
)  # fmt: skip
def test_the_one_card_that_a_node_must_have(spec: dict[str, Any], card: str) -> None:
    assert around(pod(**spec)).gpu == card


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # Kubernetes: $(NAME) of the container's env, $$ for a dollar; what is not there stays as it is
        ("$(A)", "1"), ("x$(A)y$(B)z", "x1y12z"), ("$$(A)", "$(A)"), ("$$$(A)", "$1"), ("$A", "$A"), ("a$", "a$"),
        ("$(N)", "?$(N)"), ("$(G)", "9"), ("$(SECRET)", "?$(SECRET)"), ("$(1)", "$(1)"), ("$(U)", "?$(N)"),
        (8, "8"), ("$(F)", "False"),
    ],
)  # fmt: skip
def test_references(word: Any, expected: str) -> None:
    env = [
        {"name": "A", "value": 1},
        {"name": "B", "value": "$(A)2"},
        {"name": "U", "value": "$(N)"},
        {"name": "F", "value": False},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {}}},
        {"name": 3, "value": "x"},
        "x",
    ]
    (launch,) = read(pod(container={"env": env, "args": ["--x", word]}), G="9")
    assert words(launch) == f"m --x {expected}"
    assert launch.words[2].place == "word 5"
    assert set(launch.environment) == {"A", "B", "U", "F"}
    assert {word.place for word in launch.environment.values()} == {"env"}


def test_a_variable_that_is_not_known_is_called_by_its_name() -> None:
    (launch,) = read(pod(container={"args": ["$(N)"]}))
    mark = launch.words[1].mark
    assert mark is not None and mark.name == "$N"


VLLM, SGLANG = "vllm/vllm-openai:v1", "lmsysorg/sglang:v1"


@pytest.mark.parametrize(
    ("image", "given", "engine", "serve", "wrapped", "expected"),
    [
        # words of an image that starts a server by itself are that server's
        (VLLM, ["m", "--max-num-seqs", "8"], "vllm", True, False, "m --max-num-seqs 8"),
        (VLLM, ["--tp-size", "8"], "vllm", True, False, "--tp-size 8"),
        (VLLM, ["vllm", "serve", "m"], "vllm", True, False, "m"),
        (VLLM, ["python", "-m", "vllm.entrypoints.openai.api_server", "m"], "vllm", False, False, "m"),
        (VLLM, ["m", "x", "--a", "/vllm"], "vllm", True, False, "m x --a /vllm"),
        # flags alone are the server's that has them
        (SGLANG, ["--model-path", "m", "--tp-size=8"], "sglang", False, True, "--model-path m --tp-size=8"),
        (SGLANG, ["--mem_fraction_static=8"], "sglang", False, True, "--mem_fraction_static=8"),
        ("x", ["--max-model-len", "8"], "vllm", False, True, "--max-model-len 8"),
        ("x", ["--max-model-len", "8", "--max-num-seqs", "9", "--tp", "2"], "vllm", False, True, None),
        ("x", ["--kv-cache-dtype", "8"], None, False, False, ""),  # both have it
        ("x", ["--host", "8"], None, False, False, ""),
        ("x", ["m", "--max-model-len", "8"], None, False, False, ""),  # some other program's
        ("x", ["sleep"], None, False, False, ""),
        ("x", ["sh", "-c", "exec sglang serve m"], "sglang", True, False, "m"),
    ],
)
def test_whose_words_a_container_s_are(
    image: str, given: list[str], engine: str | None, serve: bool, wrapped: bool, expected: str | None
) -> None:
    document = {"image": image, "name": "c", "args": given}
    if engine is None:
        with pytest.raises(InputError, match=r"^m\.yaml: no container's command or args start sglang or vllm$"):
            read(document)
        return
    (launch,) = read(document)
    assert (launch.engine, launch.serve, launch.wrapped) == (engine, serve, wrapped)
    assert words(launch) == (" ".join(given) if expected is None else expected)
    assert launch.container is not None and launch.container.image == image


def test_empty_words_and_other_engines() -> None:
    with pytest.raises(InputError, match="no container's"):
        read({"image": VLLM, "command": []})
    with pytest.raises(InputError, match=r"^m\.yaml: container a: .*ollama is another engine"):
        read({"name": "a", "command": ["ollama", "run", "sglang"]}, {"name": "b", "command": ["lmdeploy", "x", "vllm"]})
    assert len(read({"command": ["ollama", "run", "sglang"]}, {"command": SERVE})) == 1


def test_notes_of_a_script_are_the_manifest_s() -> None:
    found = read_manifest([{"command": ["sh", "-c", "sglang serve m\n--x"]}], "m.yaml", SERVERS, Surroundings())
    assert [note[:11] for note in found.notes] == ["word 3: --x"]
    assert found.name == "m.yaml"


def test_a_secret_among_the_variables_is_quoted_in_no_word() -> None:
    env = [{"name": "API_KEY", "value": "topsecret99"}]
    (launch,) = read(pod(container={"env": env, "args": ["--tp", "topsecret99"]}))
    assert "topsecret99" not in repr(launch.words[2].text)


def test_values_of_a_chart() -> None:
    """Keys beside extraArgs are flags as the chart's templates spell them; the model is the one above them."""
    config = {"tensorParallelSize": 8, "maxModelLen": 65536, "x2Y": True, "list": [1], 3: 4, "dtype": "auto"}
    chart = {"name": "c", "image": "no", "repository": "no", "tag": "no", "extraArgs": ["--a", "$(G)"], **config}
    chart.pop("image"), chart.pop("repository")
    spec = {"name": "glm", "image": {"repository": VLLM, "tag": 1}, "modelURL": "org/m", "vllmConfig": chart}
    (launch,) = read(spec, G="9")
    assert (words(launch), launch.serve, launch.wrapped, launch.engine) == ("org/m --a 9", True, True, "vllm")
    assert launch.words[0].place == "modelURL"
    assert launch.settings is not None
    flags = {"tensor-parallel-size": 8, "max-model-len": 65536, "x2-y": True, "dtype": "auto"}
    assert launch.settings.data == flags
    assert (launch.settings.place, launch.settings.own, launch.within) == ("glm/c", False, "m.yaml: container glm/c")
    (launch,) = read({**spec, "modelURL": None})
    assert words(launch) == "--a ?$(G)"
    # a container's own command or args beside it: no chart's values
    (launch,) = read({"image": VLLM, "extraArgs": ["--a"], "command": ["m"], "maxModelLen": 8})
    assert (words(launch), launch.settings) == ("m --a", None)
    (launch,) = read({"image": VLLM, "extraArgs": ["--a"], "args": ["m"], "maxModelLen": 8})
    assert (words(launch), launch.settings) == ("m --a", None)
    (launch,) = read({"image": VLLM, "extraArgs": ["--a"]})
    assert (words(launch), launch.settings, launch.serve) == ("--a", None, True)
    with pytest.raises(InputError, match="no container's"):
        read({"image": "x", "extraArgs": ["--a"], "maxModelLen": 8})
    (launch,) = read({"repository": VLLM, "extraArgs": ["--a"], "tag": "v1", "maxModelLen": 8})
    assert launch.settings is not None and launch.settings.data == {"max-model-len": 8}
    assert launch.container is not None and launch.container.image == VLLM
    with pytest.raises(InputError, match="no container's"):
        read({"image": {"tag": 1}, "extraArgs": ["--a"]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("services:\n  a: {}\n", True), ("services: # mine\n", True), ("services: {a: {}}\n", True),
        ("version: 3\nservices:  \n", True), ("  services:\n", False), ("services: x\n", False), ("service:\n", False),
    ],
)  # fmt: skip
def test_is_compose(text: str, expected: bool) -> None:
    assert is_compose(text) is expected


def compose(service: Any, files: dict[str, str] | None = None, **given: str) -> Launch:
    outside = Surroundings(given=given, beside=(files or {}).get, environment={"HOME": plain("/h")})
    (launch,) = read_compose([{"services": {"glm": service}}], "c.yaml", SERVERS, outside).launches
    return launch


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # Compose: $X, ${X}, ${X:-default} from .env and what is given, $$ for a dollar; nothing else is a shell's
        ("$A", "1"), ("${A}x", "1x"), ("${N:-2}", "2"), ("${N-2}", "2"), ("${A:-2}", "1"), ("${A:+3}", "3"),
        ("$G", "9"),
        ("$N", "?$N"), ("$$A", "$A"), ("$$$A", "$1"), ("$$$$", "$$"), ("$(A)", "$(A)"), ("`A`", "`A`"), ("`$A`", "`1`"),
        ("a\\b", "a\\b"), ("a\\$A", "a\\1"),
        ("a$", "a$"), ("$-", "$-"), ("${HOME}", "?$HOME"), (8, "8"),
    ],
)  # fmt: skip
def test_interpolation(word: Any, expected: str) -> None:
    launch = compose({"command": [*SERVE, word]}, {".env": "A=1\n"}, G="9")
    assert words(launch) == f"m {expected}"
    assert (launch.words[1].place, launch.within) == ("command", "c.yaml: service glm")
    assert launch.container is not None and launch.container.names == ("glm",)


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ({"command": "sglang serve m 'a b' c"}, "m a b c"),
        ({"command": ["sglang", "serve", "m"], "entrypoint": None}, "m"),
        ({"entrypoint": "sglang serve", "command": ["m", "a b"]}, "m a b"),
        ({"entrypoint": ["sglang", "serve"], "command": "m --x"}, "m --x"),
        ({"image": VLLM, "command": "m --x"}, "m --x"),
        ({"image": VLLM, "command": "--max-model-len 8"}, "--max-model-len 8"),
        ({"image": 5, "command": "sglang serve m"}, "m"),
    ],
)
def test_entrypoint_and_command(service: Any, expected: str) -> None:
    launch = compose(service)
    assert words(launch) == expected
    assert launch.container is not None and launch.container.image == str(service.get("image") or "")


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ({"environment": {"A": 1, "B": True, "C": "$G", "D": "x"}}, "A=1 B=true C=9 D=x"),
        ({"environment": ["A=1", "C=a=b", "D="]}, "A=1 C=a=b D="),
        ({"env_file": "a.env"}, "A=2 X=3"),
        ({"env_file": ["a.env", "b.env"]}, "A=4 X=3"),
        ({"env_file": [{"path": "b.env", "required": False}, {"x": 1}, 5]}, "A=4"),
        ({"env_file": "none.env"}, ""),
        ({"env_file": "a.env", "environment": {"A": 5}}, "A=5 X=3"),
        # without a value: the one where Compose runs
        ({"environment": ["E"]}, "E=7"),
        ({"environment": {"E": None, "G": None, "N": None}}, "E=7 G=9"),
        ({"env_file": "a.env", "environment": {"A": None}}, "X=3"),
        ({"environment": "x"}, ""),
        ({}, ""),
    ],
)
def test_variables_of_a_service(service: Any, expected: str) -> None:
    files = {".env": "E=7\n", "a.env": "A=2\nX=3\n", "b.env": "A=4\n"}
    launch = compose({"command": SERVE, **service}, files, G="9")
    assert " ".join(f"{name}={word.text}" for name, word in sorted(launch.environment.items())) == expected
    assert {word.place for word in launch.environment.values()} <= {"environment"}


@pytest.mark.parametrize(
    ("devices", "gpus"),
    [
        ([{"count": 2}], 2), ([{"driver": "x"}, {"count": 4}], 4), ([{"device_ids": ["0", "3", "5"]}], 3),
        ([{"count": "all"}], None), ([{"count": 1, "device_ids": ["0", "1"]}], 1), (["x"], None), ("x", None),
        ([], None),
    ],
)  # fmt: skip
def test_devices_of_a_service(devices: Any, gpus: int | None) -> None:
    launch = compose({"command": SERVE, "deploy": {"resources": {"reservations": {"devices": devices}}}})
    assert launch.container is not None and launch.container.gpus == gpus


@pytest.mark.parametrize(
    ("service", "nbytes"),
    [
        ({"mem_limit": "2g"}, 2 << 30), ({"mem_limit": "512m"}, 512 << 20), ({"mem_limit": "64k"}, 64 << 10),
        ({"mem_limit": "1.5GB"}, 3 << 29), ({"mem_limit": "1tb"}, 1 << 40), ({"mem_limit": "100b"}, 100),
        ({"mem_limit": 4096}, 4096), ({"mem_limit": "${M:-3} g"}, 3 << 30), ({"mem_limit": "${M}"}, None),
        ({"mem_limit": "much"}, None), ({"mem_limit": "${M}2g"}, None), ({}, None),
        ({"deploy": {"resources": {"limits": {"memory": "1g"}}}}, 1 << 30),
        ({"deploy": {"resources": {"limits": {"memory": "1g"}}}, "mem_limit": "2g"}, 1 << 30),
        ({"deploy": {"resources": {"limits": "x"}}, "mem_limit": "2g"}, 2 << 30),
        ({"deploy": {"resources": "x"}, "mem_limit": "2g"}, 2 << 30),
    ],
)  # fmt: skip
def test_memory_of_a_service(service: Any, nbytes: int | None) -> None:
    launch = compose({"command": SERVE, **service})
    assert launch.container is not None and launch.container.memory_bytes == nbytes


@pytest.mark.parametrize(
    ("services", "says"),
    [
        ({"a": {"command": "sleep"}, "b": "x"}, "no service's entrypoint or command starts sglang or vllm"),
        ([], "no service's entrypoint or command starts sglang or vllm"),
        ({"a\nb": {"command": "sglang '"}, "c": {"command": "'"}}, "service a?b: command: a quote is never closed"),
        ({"a": {"entrypoint": "sglang ${X"}}, "service a: ${ is never closed with }"),
        ({"a": {"command": "ollama run sglang"}}, "service a: command: ollama is another engine; "),
    ],
)
def test_services_that_cannot_be_read(services: Any, says: str) -> None:
    with pytest.raises(InputError) as error:
        read_compose([[], {"services": services}], "c.yaml", SERVERS, Surroundings())
    assert str(error.value).startswith(f"c.yaml: {says}")


def test_a_service_that_cannot_be_read_does_not_matter_beside_one_that_can() -> None:
    services = {"a": {"command": "sglang '"}, "b": {"command": "sh -c 'sglang serve m\n--x'"}, "c": {"command": SERVE}}
    found = read_compose([{"services": services}], "c.yaml", SERVERS, Surroundings())
    assert [launch.label for launch in found.launches] == ["b", "c"]
    assert (len(found.notes), found.name) == (1, "c.yaml")
