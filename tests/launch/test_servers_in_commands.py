"""Which server a command line starts, with which words and which environment: programs in front, scripts in scripts."""

import re
import shlex

import pytest

from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.launch import Launch
from glm_kvplan.launch.marked_words import Mark, Word
from glm_kvplan.launch.programs_in_front import environment_behind, remote_command


def launches(text: str | list[str]) -> list[Launch]:
    return list(launches_in(text, SERVERS).launches)


def words(text: str | list[str]) -> list[str]:
    return [" ".join(word.text for word in launch.words) for launch in launches(text)]


@pytest.mark.parametrize(
    ("command", "engine", "serve", "wrapped"),
    [
        ("sglang serve m --tp 8", "sglang", True, False),
        ("/opt/bin/sglang serve m --tp 8", "sglang", True, False),
        ("vllm serve m --tp 8", "vllm", True, False),
        ("python -m sglang.launch_server m --tp 8", "sglang", False, False),
        ("python -m dynamo.sglang m --tp 8", "sglang", False, True),
        ("python -m sglang_router.launch_server m --tp 8", "sglang", False, True),
        ("python -m vllm.entrypoints.openai.api_server m --tp 8", "vllm", False, False),
        ("python -m dynamo.vllm m --tp 8", "vllm", False, True),
        ("python /x/sglang/launch_server.py m --tp 8", "sglang", False, False),
        ("python /x/vllm/entrypoints/openai/api_server.py m --tp 8", "vllm", False, False),
        ("docker run vllm/vllm-openai m --tp 8", "vllm", True, False),
        ("docker run r:5000/vllm/vllm-openai:v1@sha256:0 m --tp 8", "vllm", True, False),
        ("docker run vllm/vllm-openai@sha256:0 m --tp 8", "vllm", True, False),
    ],
)
@pytest.mark.parametrize("shell", [True, False])
def test_how_a_server_is_started(command: str, engine: str, serve: bool, wrapped: bool, shell: bool) -> None:
    (launch,) = launches(command if shell else command.split())
    assert [word.text for word in launch.words] == ["m", "--tp", "8"]
    assert (launch.engine, launch.serve, launch.wrapped) == (engine, serve, wrapped)
    assert (launch.environment, launch.deciding, launch.container) == ({}, None, None)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sglang serve", [""]),
        ("docker run sglang", []),  # the program alone serves nothing
        ("sglang bench serve", []),
        ("> log\nsglang serve m", ["m"]),
        ("tool 'sglang serve m --tp 2'", []),  # what a tool does with a line is its own business
        ("bash -x 'sglang serve m'", []),
        ("sh -lc 'sglang serve m'", ["m"]),
        ("tmux new -d 'sglang serve m --tp 2'", ["m --tp 2"]),
        ("screen -dm bash -c 'sglang serve m'", ["m"]),
        ("screen -S x -X stuff 'sglang serve m'", ["m"]),
        ("tmux new -d 'sglang serve m --tp $0' 4", ["m --tp $0"]),  # no arguments there
        ("bash -c 'sglang serve m'; bash -c 'sglang serve n'", ["m", "n"]),
        ("bash -c 'sglang serve a; bash -c \"sglang serve b\"'", ["a", "b"]),
        ("docker run --entrypoint bash vllm/vllm-openai -c 'vllm serve m'", ["m"]),
        ("docker run --entrypoint=bash vllm/vllm-openai m", []),  # the image does not start the server then
        ("echo vllm/vllm-openai m", []),
        ("tool vllm/vllm-openai m", []),
        ("docker pull vllm/vllm-openai-other\nvllm serve m", ["m"]),
        ("podman run -d vllm/vllm-openai m", ["m"]),
        ("nerdctl run vllm/vllm-openai m", ["m"]),
        # what of a broken continuation stands on a line of its own never reaches the engine
        ("sglang serve m\n--tp 8", ["m"]),
        ("sglang serve m\n--tp=8 --dp 2", ["m"]),
        ("bash -c 'sglang serve m $0 $1' x y", ["m x y"]),
        # a loop ends with a round that starts a server, and no other
        (
            "sglang serve a\nN=0; while [ $N -lt 3 ]; do N=$((N+1)); docker pull sglang; done; sglang serve b $N",
            ["a", "b 3"],
        ),
        # ssh(1)
        ("ssh h sglang serve m", ["m"]),
        ("ssh h <<'E'\nsglang serve m\nE", ["m"]),
        ("ssh sglang", []),
        # flags alone are one command
        ("--tp 8 --dp 2", ["--tp 8 --dp 2"]),
        ("A=1\n--tp $A", ["--tp 1"]),
        ("cd /x\n--tp 8", ["--tp 8"]),  # what bash does itself is none
        ("ls\n--tp 8", []),
        ("--tp 8\n--dp 2", []),
        ("-tp 8", []),
    ],
)
def test_what_is_started(script: str, expected: list[str]) -> None:
    assert words(script) == expected


def test_flags_alone_name_no_model() -> None:
    for given in ("--tp 8", ["--tp", "8"]):
        (launch,) = launches(given)
        assert ([word.text for word in launch.words], launch.serve, launch.engine) == (["--tp", "8"], False, "")


def test_a_broken_continuation_is_named() -> None:
    (note,) = launches_in("sglang serve m --dp 2\n  --api-key=secret\n", SERVERS).notes
    assert note.startswith("line 2: --api-key starts a command of its own") and "secret" not in note
    (note,) = launches_in(f"sglang serve m\n--{'x' * 50}\n", SERVERS).notes
    assert note.startswith(f"line 2: --{'x' * 35}... starts")


@pytest.mark.parametrize(("deep", "expected"), [(4, ["m"]), (5, [])])
def test_scripts_in_scripts_are_read_to_a_depth(deep: int, expected: list[str]) -> None:
    text = "sglang serve m"
    for _ in range(deep):
        text = f"bash -c {shlex.quote(text)}"
    assert words(text) == expected


def test_what_xargs_adds_is_asked_about() -> None:
    with pytest.raises(InputError, match="line 1: what xargs adds"):
        words("cat f | /usr/bin/xargs sglang serve m")
    assert words("cat f | xargs rm\nsglang serve m") == ["m"]


@pytest.mark.parametrize(
    "program",
    [
        *("echo", "printf", "cat", "pkill", "kill", "pgrep", "grep", "which", "pip", "pip3", "apt", "apt-get", "git"),
        *("curl", "wget"),
    ],
)
def test_programs_that_only_talk(program: str) -> None:
    assert words(f"{program} sglang serve m\n/usr/bin/{program} sglang serve m") == []
    assert words([program, "sglang", "serve", "m"]) == []


@pytest.mark.parametrize(
    ("command", "named"),
    [
        *(
            (f"{program} serve m", program)
            for program in (
                *("trtllm-serve", "ollama", "llama-server", "llama-cli", "lmdeploy", "mlc_llm", "aphrodite"),
                *("text-generation-launcher", "tritonserver", "koboldcpp"),
            )
        ),
        *(
            (f"python -m {module} m", module)
            for module in (
                *("tensorrt_llm.commands.serve", "lmdeploy.serve", "mlc_llm.serve", "mlx_lm.server"),
                *("llama_cpp.server", "dynamo.trtllm"),
            )
        ),
        ("docker run image /usr/bin/ollama serve m", "ollama"),
        ("bash -c 'echo sglang; ollama run m'", "ollama"),
        ("ssh h 'echo sglang; ollama run m'", "ollama"),
        ("ollama run m; lmdeploy serve m", "ollama"),  # the first
        ("ollama serve", "ollama"),
    ],
)
def test_other_engines_are_named(command: str, named: str) -> None:
    says = re.escape(f": {named} is another engine; sglang and vllm are planned here")
    for form in (command, shlex.split(command)):
        if ";" not in form:
            with pytest.raises(InputError, match=says):
                launches(form)
    assert words(f"{command}\nsglang serve m") == ["m"]  # beside a launch it does not matter


@pytest.mark.parametrize("command", ["ls ollama", "tool -m mlx", "tool mlx_lm x", "ls -l", "x-ollama run m"])
def test_what_is_no_other_engine(command: str) -> None:
    assert words(command) == words(command.split()) == []


def test_what_decides_whether_a_server_starts() -> None:
    def names(script: str) -> list[str | None]:
        return [None if one.deciding is None else one.deciding.name for one in launches(script)]

    assert names("[ -n $A ] && sglang serve m\nsglang serve n") == ["$A", None]
    assert names("[ -n $A ] && bash -c '[ -n $B ] && sglang serve m'") == ["$B"]
    assert names("[ -n $A ] && bash -c 'sglang serve m'") == ["$A"]


def test_a_loop_starts_a_server_once() -> None:
    """It runs until it is stopped; another round would start it again."""
    assert words("while true; do sglang serve m --tp 2; done\nsglang serve n") == ["m --tp 2", "n"]
    assert words("for T in 2 4; do sglang serve m --tp $T; break; done") == ["m --tp 2"]
    assert words('for T in 2 4; do bash -c "sglang serve m --tp $T"; done') == ["m --tp 2", "m --tp 4"]


@pytest.mark.parametrize(
    ("command", "image"),
    [
        ("docker run lmsysorg/sglang:v1 sglang serve m", "lmsysorg/sglang:v1"),
        ("docker run vllm/vllm-openai:v0.30.0 m", "vllm/vllm-openai:v0.30.0"),
        ("docker run -v /sglang:/x a/sglang:v2 sglang serve m", "a/sglang:v2"),
        ("docker run a/other:v2 sglang serve m", ""),
        ("docker run a/sglang sglang serve m", ""),  # no tag, no release
        ("tool a/sglang:v2 sglang serve m", ""),
        ("docker run vllm/vllm-openai /models/vllm:v3", ""),
        ("docker exec c sglang serve m --served-model-name sglang:v3", ""),
    ],
)
def test_the_image_that_a_container_is_of(command: str, image: str) -> None:
    (launch,) = launches(command)
    assert launch.image == image


@pytest.mark.parametrize(
    ("options", "given"),
    [
        # bash(1): its arguments are what follows -s, or the script's name; standard input is read without either
        ("", ""), ("-", ""), ("--", ""), ("-s", ""), ("-s a b", "a b"), ("-s -- -a b", "-a b"), ("-xs a", "a"),
        ("-x -s a", "a"), ("-s -x a", "a"), ("+x -s a", "a"), ("-o pipefail -s a", "a"), ("-eo pipefail -s a", "a"),
        ("+O extglob -s a", "a"), ("/dev/stdin a b", "a b"), ("-x /dev/stdin a", "a"), ("-o pipefail", ""),
        ("- /dev/stdin a", "a"),
        ("run.sh a", None), ("-x run.sh", None), ("-- run.sh", None), ("-c true", None), ("-xc true a", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["bash", "sh", "/bin/bash", "zsh", "dash"])
def test_a_shell_that_reads_its_standard_input(options: str, given: str | None, shell: str) -> None:
    found = words(f"{shell} {options} <<'E'\nsglang serve \"$@\"\nE\n")
    assert found == ([] if given is None else [given])


def test_a_batch_script_s_arguments_are_not_sbatch_s() -> None:
    assert words("sbatch -N 2 --wrap x <<'E'\nsglang serve m $#\nE") == ["m 0"]
    assert words("tool <<'E'\nsglang serve m\nE") == []
    assert words("bash <<'E'\nsglang serve $0\nE") == ["bash"]
    assert words("sudo bash -s x <<'E'\nsglang serve $0 $1\nE") == ["bash x"]
    assert words("bash <<'E'\nbash <<'F'\nsglang serve m\nF\nE") == ["m"]
    assert words("bash -s <<'E'\nbash\nsglang serve m\nE") == ["m"]


A, B, S = "A=1", "B=2", "SECRET=3"


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("nice", "A=1 B=2"), ("nohup x", "A=1 B=2"), ("C=3 nice", "A=1 B=2 C=3"), ("A=4", "A=4 B=2"),
        ("C=", "A=1 B=2 C="), ("C+=3", "A=1 B=2"),
        # env(1)
        ("env C=3", "A=1 B=2 C=3"), ("env -i", ""), ("env -i C=3", "C=3"), ("env - C=3", "C=3"), ("env -", ""),
        ("env -u A", "B=2"), ("env -uA", "B=2"), ("env --unset A", "B=2"), ("env --unset=A", "B=2"),
        ("env -u A -u B C=3", "C=3"), ("env -u A A=5", "A=5 B=2"), ("env -vu A", "B=2"), ("env -viu A", ""),
        ("env -C /d -u A", "B=2"), ("env --chdir /d -i", ""), ("env -C /d nice -i", "A=1 B=2"),
        ("env nice -u A", "A=1 B=2"), ("env C=3 nice -i", "A=1 B=2 C=3"), ("env -u A nice -u B", "B=2"),
        ("env --ignore-environment C=3", "C=3"), ("env --ignore-e", ""), ("/usr/bin/env -i", ""),
        ("nice -i", "A=1 B=2"),
        ("env env -u A", "B=2"), ("env nice env -u A", "B=2"),
        # docker(1), kubectl(1): nothing but what -e hands on
        ("docker run", ""), ("docker run -e A", "A=1"), ("docker run --env A", "A=1"), ("docker run -eA", "A=1"),
        ("docker run --env=A", "A=1"), ("docker run -e A=5 -e C=3", "A=5 C=3"), ("docker run -eA=5", "A=5"),
        ("docker run --env=A=5", "A=5"), ("docker run -e Z", ""), ("docker run -v A", ""), ("docker run A -e B", "B=2"),
        ("docker run -e A bash B", "A=1"), ("docker exec -e A c", "A=1"), ("/usr/bin/docker run -e A", "A=1"),
        ("podman run -e A", "A=1"), ("nerdctl run -e A", "A=1"), ("kubectl run --env=A=5", "A=5"), ("podman run", ""),
        ("nerdctl run", ""), ("kubectl exec p --", ""), ("C=3 docker run -e C", "C=3"),
        ("docker run -e A=x,B=y", "A=x,B=y"),
        ("sudo docker run -e A", ""), ("sudo -E docker run -e A", "A=1"), ("env -u A docker run -e A -e B", "B=2"),
        # ssh(1)
        ("ssh h", ""), ("ssh h C=3", "C=3"),
        # sudo(8): -E and --preserve-env keep what was there
        ("sudo", ""), ("sudo -E", "A=1 B=2"), ("sudo -nEH", "A=1 B=2"), ("sudo --preserve-env", "A=1 B=2"),
        ("sudo --preserve-env=A", "A=1"), ("sudo --preserve-env=B,A", "A=1 B=2"), ("sudo --preserve-env=Z", ""),
        ("sudo -n", ""), ("sudo C=3", "C=3"), ("sudo -E C=3", "A=1 B=2 C=3"), ("sudo -E A=5", "A=5 B=2"),
        ("nice -E", "A=1 B=2"), ("sudo -u glm", ""), ("sudo --preserve-environment", ""),
        # su(1), runuser(1)
        ("su glm -c", "A=1 B=2"), ("su - glm -c", ""), ("su -l glm", ""), ("su --login glm", ""),
        ("runuser -u glm", "A=1 B=2"),
        ("runuser -l glm", ""), ("runuser - glm", ""), ("runuser --login", ""), ("su -x", "A=1 B=2"),
        ("nice -l", "A=1 B=2"),
        # srun(1), sbatch(1): --export without ALL hands on what it lists
        ("srun", "A=1 B=2"), ("srun --export=ALL", "A=1 B=2"), ("srun --export=NONE", ""), ("srun --export=A", "A=1"),
        ("srun --export A", "A=1"), ("srun --export=A,C=3", "A=1 C=3"), ("srun --export=ALL,A=5", "A=5 B=2"),
        ("srun --export ALL,C=3", "A=1 B=2 C=3"), ("srun --export=", ""), ("sbatch --export=A", "A=1"),
        ("sbatch --export=NONE", ""), ("srun -n 2 --export=B", "B=2"), ("srun --export=A nice B", "A=1"),
        ("nice --export A", "A=1 B=2"), ("docker run --export A", ""),
    ],
)  # fmt: skip
def test_what_programs_in_front_hand_on(front: str, expected: str) -> None:
    outer = {pair[0]: Word(pair[2:], "") for pair in (A, B)}
    found = environment_behind([Word(text, "") for text in front.split()], outer)
    assert " ".join(f"{name}={word.text}" for name, word in sorted(found.items())) == expected


@pytest.mark.parametrize(
    ("front", "open_names"),
    [
        ("MAYBE-docker", "AB"), ("MAYBE-sudo", "AB"), ("env -u MAYBE-A", "A"), ("env MAYBE--uA", "A"),
        ("env MAYBE--i", "AB"),
        ("srun MAYBE---export=B", "A"), ("su MAYBE--", "AB"), ("nice MAYBE-x", ""),
    ],
)  # fmt: skip
def test_what_a_word_takes_that_may_not_be_there_is_open(front: str, open_names: str) -> None:
    outer = {pair[0]: Word(pair[2:], "") for pair in (A, B)}
    mark = Mark("$X")
    given = [Word(one.removeprefix("MAYBE-"), "", mark if one.startswith("MAYBE-") else None) for one in front.split()]
    found = environment_behind(given, outer)
    assert sorted(found) == ["A", "B"]
    assert "".join(name for name, word in sorted(found.items()) if word.mark is not None) == open_names


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("ssh h cmd a", "cmd a"), ("ssh -p 22 h cmd", "cmd"), ("ssh -p22 h cmd", "cmd"), ("ssh h -p 22 cmd", "cmd"),
        ("ssh -tt h cmd", "cmd"), ("ssh -ti key h cmd", "cmd"), ("ssh -oX=y -J a h cmd", "cmd"),
        ("ssh -- h cmd", "cmd"),
        ("ssh h -t -- cmd", "cmd"), ("ssh h", ""), ("ssh", ""), ("ssh -p", ""), ("sudo -n ssh h cmd", "cmd"),
        ("/usr/bin/ssh h cmd", "cmd"), ("x y ssh h cmd", "cmd"), ("ssh -p ?P h cmd", "cmd"), ("ssh ?U@h cmd", "cmd"),
        ("ssh h ssh k", "ssh k"), ("ssh -v h cmd -v", "cmd -v"), ("-x ssh h cmd", "cmd"), ("--x=y ssh h cmd", "cmd"),
        ("ssh -4 h sglang", "sglang"), ("ssh h cmd sglang", "cmd sglang"), ("ssh ?U@?H -t cmd", "cmd"),
        # where the host cannot be told: from the word that names a server on, or what ssh reads
        ("ssh ?O h cmd", ""), ("ssh ?O h cmd sglang x", "sglang x"), ("ssh h ?X cmd", ""),
        ("ssh h ?X sglang", "sglang"),
        ("ssh h ?sglang x", "?sglang x"), ("ssh sglang1 cmd", "sglang1 cmd"), ("ssh ?O sglang1 x", "sglang1 x"),
        ("sglang ssh ?O cmd", ""), ("gcloud compute ssh v --zone z -- sglang x", "sglang x"), ("ssh ?O", ""),
        ("vagrant ssh -c sglang", "sglang"), ("vagrant ssh h x sglang", "sglang"), ("ssh h vagrant", "vagrant"),
        ("gcloud compute ssh v x", ""), ("ssh ?sglang@h cmd", "?sglang@h cmd"),
        # another program's word
        ("docker -v /etc/ssh:/etc/ssh run", None), ("G=/usr/bin/ssh run", None), ("mpirun --mca agent ssh x", None),
        ("mpirun -mca agent ssh x", None), ("pdsh -R ssh h", None), ("x --launcher ssh h", None), ("sshd h", None),
        ("mca ssh h cmd", "cmd"), ("mca x y ssh h cmd", "cmd"), ("--x y ssh h cmd", "cmd"), ("ls", None),
    ],
)  # fmt: skip
def test_where_the_command_begins_that_ssh_is_given(line: str, command: str | None) -> None:
    """By ssh(1); `?` is in front of a word that is not known."""
    given = [Word(text, "", Mark("$X") if text.startswith("?") else None) for text in line.split()]
    begin = remote_command(given, lambda word: "sglang" in word.text)
    assert (None if begin is None else " ".join(word.text for word in given[begin:])) == command
    assert begin is None or begin <= len(given)
