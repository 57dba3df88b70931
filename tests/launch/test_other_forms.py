"""Launches outside of scripts, by the rules of each form's own reference: Dockerfile, systemd, Compose, Python."""

import pytest

from glm_kvplan.engines.planner import given
from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.dockerfile import script_of as docker_script
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.marked_words import printable
from glm_kvplan.launch.systemd_unit import script_of as unit_script

M = "zai-org/GLM-5.3-Flash"
COMPOSE = "services:\n  glm:\n    image: x\n"


def flags(text: str) -> dict[str, object]:
    return dict(read_launch_command(text).flags)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # "Comment lines are removed before the Dockerfile instructions are executed", within an instruction too
        # "Environment variables defined using the ENV instruction always override an ARG instruction of the same name"
        (["FROM x", "ENV TP=8", "ARG TP=4", "CMD sglang serve x --tp $TP"], {"tp_size": 8}),
        (["FROM x", "ARG TP DP=2", "ENV N=4", "ENV TP=$N", "CMD sglang serve x --tp $TP"], {"tp_size": 4}),
        (["CMD sglang serve x \\", "# --dp 2 \\", "  # more", "  --tp 8"], {"tp_size": 8}),
        (['CMD ["sglang", "serve", "x", \\', "# no", '"--tp", "8"]'], {"tp_size": 8}),
        # CMD as parameters of ENTRYPOINT, and the last of each
        (['ENTRYPOINT ["sglang", "serve", "x"]', 'CMD ["--tp", "8"]'], {"tp_size": 8}),
        (['CMD ["--tp", "8"]', 'ENTRYPOINT ["sglang", "serve", "x"]'], {"tp_size": 8}),
        (["CMD sglang serve x --tp 4", "CMD sglang serve x --tp 8"], {"tp_size": 8}),
        (["ENTRYPOINT sglang serve x --tp 8", 'CMD ["--dp", "2"]'], {"tp_size": 8}),
        (["ENTRYPOINT exec sglang serve x --tp 8", "CMD --dp 2"], {"tp_size": 8}),
        # the last stage alone
        (["ENV TP=2", "FROM b", "CMD sglang serve x --tp ${TP:-8}"], {"tp_size": 8}),
        (["CMD sglang serve x --dp 2", "FROM b", "CMD sglang serve x --tp 8"], {"tp_size": 8}),
        # ENV in both forms, several at once, quotes and escapes
        (["ENV TP=8 DP=2", "CMD sglang serve x --tp $TP --dp $DP"], {"tp_size": 8, "dp_size": 2}),
        (["ENV TP 8", "CMD sglang serve x --tp $TP"], {"tp_size": 8}),
        (['ENV A="--tp 8" B=2', "CMD sglang serve x $A --dp $B"], {"tp_size": 8, "dp_size": 2}),
        (["ENV A=--tp\\ 8", "CMD sglang serve x $A"], {"tp_size": 8}),
        (["ENV A='$B' \\", "  TP=8", "CMD sglang serve x --tp $TP"], {"tp_size": 8}),
        (["ENV A=8", "ENV TP=$A", "CMD sglang serve x --tp $TP"], {"tp_size": 8}),
        # ARG is there while the image is built: for ENV, not for the command
        (["ARG A=8", "ENV TP=$A", "CMD sglang serve x --tp $TP"], {"tp_size": 8}),
        (["ARG TP=4", "CMD sglang serve x --tp ${TP:-8}"], {"tp_size": 8}),
        (["ARG TP=4", "ENV TP=$TP", "CMD sglang serve x --tp ${TP:-8}"], {"tp_size": 4}),
        # words are not expanded
        (["ENV N=a", 'CMD ["sglang", "serve", "x", "--tp", "8", "--served-model-name", "$N"]'], {"tp_size": 8}),
        # instructions in small letters, and other ones
        (["run pip install x", "env TP=8", 'cmd ["sh", "-c", "sglang serve x --tp $TP"]'], {"tp_size": 8}),
    ],
)
def test_dockerfile(rows: list[str], expected: dict[str, object]) -> None:
    assert flags("\n".join(["FROM a", *rows, ""])) == expected


@pytest.mark.parametrize(
    "command", [f"CMD --model {M} \\\n  --max-num-seqs 9", f'CMD ["--model", "{M}", "--max-num-seqs", "9"]']
)
def test_the_words_behind_what_an_image_starts_by_itself(command: str) -> None:
    (launch,) = launches_in(f"FROM vllm/vllm-openai:v0.30.0\n{command}\n", SERVERS).launches
    assert [word.text for word in launch.words] == ["--model", M, "--max-num-seqs", "9"]
    assert (launch.engine, launch.serve, len(launch.image_notes("0.33.0"))) == ("vllm", True, 1)


def test_where_a_dockerfile_s_command_stands() -> None:
    text = "# syntax=docker/dockerfile:1\nARG V=1\nFROM a:$V\n\nCMD sglang serve x \\\n# no\n  --tp 8\n"
    command = read_launch_command(text)
    assert command.positions == {"tp_size": "line 7"}
    with pytest.raises(InputError, match=r"line 2: .* is no JSON list of words"):
        docker_script('FROM a\nCMD ["sglang", 1]\n')


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["ExecStart=/usr/bin/sglang serve x --tp 8"], {"tp_size": 8}),
        (["ExecStart=-/usr/bin/sglang serve x --tp 8"], {"tp_size": 8}),
        (["ExecStart=!!/usr/bin/sglang serve x --tp 8"], {"tp_size": 8}),
        (["ExecStart=/usr/bin/sglang serve x \\", "  --tp 8"], {"tp_size": 8}),
        # $X as a word of its own is split at blanks, ${X} is not, $$ is a dollar
        (['Environment="A=--tp 8"', "ExecStart=/usr/bin/sglang serve x $A"], {"tp_size": 8}),
        (
            ["Environment=TP=8 DP=2", "ExecStart=/usr/bin/sglang serve x --tp ${TP} --dp $DP"],
            {"tp_size": 8, "dp_size": 2},
        ),
        (["Environment='TP=8'", "ExecStart=/usr/bin/sglang serve x --tp=${TP}"], {"tp_size": 8}),
        (["Environment=TP=4", "Environment=TP=8", "ExecStart=/usr/bin/sglang serve x --tp ${TP}"], {"tp_size": 8}),
        (["ExecStart=/usr/bin/sglang serve x --tp 8 --served-model-name a$$b"], {"tp_size": 8}),
        (["ExecStart=/bin/bash -c 'exec sglang serve x --tp 8'"], {"tp_size": 8}),
        (["ExecStartPre=/usr/bin/sglang serve x --tp 2", "ExecStart=/usr/bin/sglang serve x --tp 8"], {"tp_size": 8}),
        (["# ExecStart=/usr/bin/sglang serve x --tp 2", "ExecStart=/usr/bin/sglang serve x --tp 8"], {"tp_size": 8}),
        # %% is a percent sign, what %i stands for matters only where a byte follows from it
        (["ExecStart=/usr/bin/sglang serve x --tp 8 --served-model-name glm-%i", "Environment=A=%%h"], {"tp_size": 8}),
        # the shell's other signs are none of systemd's
        (["ExecStart=/usr/bin/sglang serve x --tp 8 --served-model-name 'a b;c' --host `x`"], {"tp_size": 8}),
    ],
)
def test_systemd_unit(rows: list[str], expected: dict[str, object]) -> None:
    found = flags("\n".join(["[Unit]", "Description=x", "[Service]", *rows, ""]))
    assert {key: value for key, value in found.items() if key in ("tp_size", "dp_size")} == expected


@pytest.mark.parametrize(
    "rows", ["ExecStart=/x/sglang serve x --tp %i", "Environment=TP=%i\nExecStart=/x/sglang serve x --tp $TP"]
)
def test_what_systemd_fills_in_is_asked_about(rows: str) -> None:
    with pytest.raises(InputError, match="--tp-size is given %i, which systemd fills in; write its value"):
        flags(f"[Service]\n{rows}\n")


def test_a_unit_s_file_and_its_open_quote() -> None:
    text = "[Service]\nEnvironmentFile=-/etc/glm.env\nExecStart=/usr/bin/sglang serve x --tp ${TP}\n"
    assert unit_script(text, {"/etc/glm.env": "# c\nTP=8\nA='b c'\n"}.get) == (
        '\n\nexport TP=8; export A=\'b c\'; "/usr/bin/sglang" "serve" "x" "--tp" "${TP}"'
    )
    with pytest.raises(InputError, match="line 2: ExecStart= has a quote that is never closed"):
        unit_script("[Service]\nExecStart=/usr/bin/sglang 'serve\n")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("    command: sglang serve x --tp 8\n", {"tp_size": 8}),
        ('    command: ["sglang", "serve", "x", "--tp", "8"]\n', {"tp_size": 8}),
        ("    entrypoint: sglang serve x\n    command: --tp 8\n", {"tp_size": 8}),
        ("    entrypoint: [sglang, serve, x]\n    command: [--tp, 8]\n", {"tp_size": 8}),
        ("    command: sglang serve x --tp ${TP:-8}\n", {"tp_size": 8}),
        ("    command: sglang serve x --tp ${TP-8}\n", {"tp_size": 8}),
        # the container's shell sees the container's variables; `$$` leaves them to it
        ("    environment: {TP: 8}\n    command: sh -c 'sglang serve x --tp $$TP'\n", {"tp_size": 8}),
        ("    environment: [TP=8]\n    command: sh -c 'sglang serve x --tp $$TP'\n", {"tp_size": 8}),
    ],
)
def test_compose(rows: str, expected: dict[str, object]) -> None:
    assert flags(COMPOSE + rows) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('run(["sglang", "serve", M, "--tp", "8"])', {"tp_size": 8}),
        ('run(["sglang", "serve", M, "--tp", str(4 if False else 8)])', None),
        ('c = ["sglang", "serve", M]\nc += ["--tp", "8"]\nrun(c)', {"tp_size": 8}),
        (
            'c = ["sglang", "serve", M]\nc.extend(["--tp"])\nc.append("8")\nrun(c)',
            {"tp_size": 8},
        ),
        ('T = 8\nrun(["sglang", "serve", M, "--tp", f"{T}"])', {"tp_size": 8}),
        ('a = ["--tp", "8"]\nrun(["sglang", "serve", M, *a])', {"tp_size": 8}),
        ('a = ["--tp", "8"]\nrun(["sglang", "serve", M] + a)', {"tp_size": 8}),
        ('run(["sglang", "serve", M] + "--tp 8".split())', {"tp_size": 8}),
        ('run(["sglang", "serve", M] + shlex.split("--tp 8"))', {"tp_size": 8}),
        ('run(shlex.split(f"sglang serve {M} --tp 8"))', {"tp_size": 8}),
        ('run("sglang serve x --tp 8", shell=True)', {"tp_size": 8}),
        ('c = ["sglang", "serve", M]\nif X:\n    c += ["--tp", "8"]\nrun(c)', None),
        ('run(["sglang", "serve", M, "--tp", os.environ.get("TP", "8")])', {"tp_size": 8}),
        ('run(["sglang", "serve", M, "--tp", os.environ["TP"]])', None),
        ('run(["sglang", "serve", M, "--tp", "1" + "6"])', {"tp_size": 16}),
    ],
)
def test_python_program(program: str, expected: dict[str, object] | None) -> None:
    text = f'import os\nimport shlex\nfrom subprocess import run\n\nM = "{M}"\n{program}\n'
    if expected is None:
        with pytest.raises(InputError, match=r"line|given"):
            flags(text)
    else:
        assert flags(text) == expected


def test_a_long_text_is_quoted_in_part() -> None:
    assert printable("x" * 60) == "x" * 60
    assert printable("x" * 61) == "x" * 57 + "..." == printable("x" * 100)


def test_an_image_that_starts_the_server_takes_the_command_s_words() -> None:
    text = 'FROM vllm/vllm-openai:v1\nARG TP=2\nENV A=1\nCMD ["--model", "zai-org/GLM-5.3-Flash", "-tp", "8"]\n'
    (launch,) = launches_in(text, SERVERS).launches
    assert launch.engine == "vllm"
    assert [word.text for word in launch.words[-4:]] == ["--model", "zai-org/GLM-5.3-Flash", "-tp", "8"]


def test_a_variable_that_compose_takes_from_outside_is_not_the_file_s() -> None:
    around = Surroundings(beside={"a.env": "TP=4\nDP=2\n"}.get)
    rows = (
        COMPOSE
        + "    env_file: a.env\n    environment: [TP]\n"
        + "    command: sh -c 'sglang serve x --tp $${TP:-8} --dp $$DP'\n"
    )
    (launch,) = launches_in(rows, SERVERS, around).launches
    assert [word.text for word in launch.words[-4:]] == ["--tp", "8", "--dp", "2"]


@pytest.mark.parametrize("words", ["--model-type llm --tp 8", "--model-type=llm --tp 8", "--tp 8 --model-type llm"])
def test_the_launcher_s_own_flag_is_not_the_engine_s(words: str) -> None:
    assert flags(f"sglang serve x {words}") == {"tp_size": 8}


def test_keys_of_a_recipe_are_written_with_lines() -> None:
    assert flags(f"sglang_config:\n  model_path: {M}\n  tp_size: 8\n  dp_size: 2\n") == {"tp_size": 8, "dp_size": 2}
    assert flags(f"engine:\n  model_path: {M}\n  tp_size: 8\n  page_size: 64\n") == {"tp_size": 8, "page_size": 64}


@pytest.mark.parametrize(
    ("script", "dtype"),
    [
        ('run() { echo "+ $*"; "$@"; }\nCONV=float32 run SERVE', "float32"),
        ("export CONV=float32; SERVE", "float32"),
        ("export CONV=float32; env -u CONV SERVE", "bfloat16"),
        ("export CONV=float32; env --unset=CONV SERVE", "bfloat16"),
        ("export CONV=float32; env -i PATH=/bin SERVE", "bfloat16"),
        ("export CONV=float32; env -i CONV=float32 SERVE", "float32"),
        ("export CONV=float32; ssh node1 SERVE", "bfloat16"),
        ("run() { :; }; CONV=float32 run; SERVE", "bfloat16"),  # for that one command alone
        ("CONV=float32 eval 'SERVE'", "float32"),
        ("export CONV=float32; env - PATH=/bin SERVE", "bfloat16"),
        ("export CONV=float32; sudo SERVE", "bfloat16"),
        ("export CONV=float32; sudo -EH SERVE", "float32"),
        ("export CONV=float32; sudo --preserve-env SERVE", "float32"),
        ("export CONV=float32; sudo --preserve-env=PATH,CONV SERVE", "float32"),
        ("export CONV=float32; sudo --preserve-env=PATH SERVE", "bfloat16"),
        ("sudo -u glm CONV=float32 SERVE", "float32"),
        ("export CONV=float32; su glm -c 'SERVE'", "float32"),
        ("export CONV=float32; su - glm -c 'SERVE'", "bfloat16"),
        ("export CONV=float32; runuser -l glm -c 'SERVE'", "bfloat16"),
        ("export CONV=float32; srun -n 1 SERVE", "float32"),
        ("export CONV=float32; srun --export=NONE SERVE", "bfloat16"),
        ("export CONV=float32; srun --export PATH,CONV SERVE", "float32"),
        ("export CONV=float32; srun --export=PATH,TP=8 SERVE", "bfloat16"),
        ("export CONV=bfloat16; srun --export=ALL,CONV=float32 SERVE", "float32"),
    ],
)
def test_what_the_server_sees_of_the_environment(script: str, dtype: str) -> None:
    """As bash, env, sudo, su, srun and ssh hand it on (sudo(8), su(1), srun(1): --export)."""
    serve = "sglang serve --model-path zai-org/GLM-5.3-Flash --tp 8"
    text = script.replace("CONV", "SGLANG_MAMBA_CONV_DTYPE").replace("SERVE", serve)
    made = given(launch=read_launch_command(text, "0.5.23"), engine="0.5.23", gpu="h200").plan()
    assert made.deployment.mamba_conv_dtype == dtype


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        # bash(1): -s reads standard input, what follows are the arguments; -c: the first word behind the script is $0
        ("bash -s -- --tp 8 <<'E'\nSERVE \"$@\"\nE", {"tp_size": 8}),
        ("bash -euo pipefail -s -- --tp 8 <<'E'\nSERVE \"$@\"\nE", {"tp_size": 8}),
        ("bash /dev/stdin --tp 8 <<'E'\nSERVE \"$@\"\nE", {"tp_size": 8}),
        ("docker exec -i c bash -s -- --tp 8 <<'E'\nSERVE \"$@\"\nE", {"tp_size": 8}),
        ("bash -c 'SERVE --tp $0' 8", {"tp_size": 8}),
        ("bash -c 'SERVE --tp $0 --dp $1' 8 2", {"tp_size": 8, "dp_size": 2}),
        ("sbatch -N 2 <<'E'\n#!/bin/bash\nSERVE --tp 8\nE", {"tp_size": 8}),
        # ssh(1): the words behind the host, joined by blanks, are read by a shell there
        ("ssh h bash -s -- --tp 8 <<'E'\nSERVE \"$@\"\nE", {"tp_size": 8}),
        ("ssh -p 22 -oA=b -t u@h 'bash -s -- --tp 8' <<'E'\nSERVE \"$@\"\nE", {"tp_size": 8}),
        ("ssh h <<'E'\nSERVE --tp 8\nE", {"tp_size": 8}),
        ("ssh h SERVE --tp '4 --dp 2'", {"tp_size": 4, "dp_size": 2}),
        ("TP=8; ssh h 'TP=4;' SERVE --tp $TP --dp '$TP'", {"tp_size": 8, "dp_size": 4}),
        ("""ssh h SERVE --json-model-override-args "'{\\"a\\": 1}'\"""", {"json_model_override_args": {"a": 1}}),
    ],
)
def test_a_script_that_another_shell_reads(script: str, expected: dict[str, object]) -> None:
    assert flags(script.replace("SERVE", f"sglang serve {M}")) == expected


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("bash -c 'SERVE --tp $0'", r"--tp-size is given \$0"),
        ("bash run.sh <<'E'\nSERVE --tp 8\nE", "no launch of the engine found"),  # it is run.sh's input
        ("""ssh h SERVE --json-model-override-args '{"a": 1}'""", "'1}' belongs to no flag"),
    ],
)
def test_a_script_that_another_shell_does_not_read_so(script: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        flags(script.replace("SERVE", f"sglang serve {M}"))


@pytest.mark.parametrize(("line", "name"), [('eval "$(foo)"', "eval"), ("export $(cat .env | xargs)", "export")])
def test_what_a_command_s_words_may_set_is_told(line: str, name: str) -> None:
    command = read_launch_command(f"{line}\nsglang serve {M} --tp 8", "0.5.23")
    assert command.warnings == (f"line 1: what `{name}` is given is not known here, nor what it sets",)


def test_what_only_talks_of_xargs_starts_nothing() -> None:
    assert flags(f"echo use xargs sglang serve {M}\nsglang serve {M} --tp 8") == {"tp_size": 8}


@pytest.mark.parametrize("line", ["grep -v '#' f | xargs SERVE", "xargs -a f SERVE", "xargs SERVE <<< '--tp 1'"])
def test_words_that_xargs_adds_are_asked_about(line: str) -> None:
    serve = "sglang serve --model-path zai-org/GLM-5.3-Flash --tp 8"
    with pytest.raises(InputError, match="what xargs adds"):
        read_launch_command(line.replace("SERVE", serve), "0.5.23")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"docker run --gpus all lmsysorg/sglang:v0.5.22-cu129 sglang serve {M} --tp 8", "0.5.22"),
        (f"docker run --gpus all lmsysorg/sglang:v0.5.23 sglang serve {M} --tp 8", None),
        (f"docker run --gpus all lmsysorg/sglang:latest sglang serve {M} --tp 8", None),
        (f"docker run registry:5000/team/sglang@sha256:00 sglang serve {M} --tp 8", None),
        (f"services:\n  glm:\n    image: lmsysorg/sglang:0.5.21\n    command: sglang serve {M} --tp 8\n", "0.5.21"),
    ],
)
def test_an_image_of_another_release_is_told(text: str, told: str | None) -> None:
    (launch,) = launches_in(text, SERVERS).launches
    notes = launch.image_notes("0.5.23")
    assert (told is None and notes == []) or (told is not None and f"is tagged {told}, and this is planned" in notes[0])


@pytest.mark.parametrize(
    "front",
    [
        "mpirun --mca plm_rsh_agent ssh -np 1",
        "docker run -v /etc/ssh:/etc/ssh lmsysorg/sglang:v0.5.23",
        "env -u X numactl -i all",
        "env X=1 numactl -i all",
    ],
)
def test_a_word_of_another_program_is_no_program(front: str) -> None:
    """Neither is `ssh` as a value the one that starts it, nor `-i` behind numactl env's own."""
    text = "export SGLANG_PP_LAYER_PARTITION=20,25\n"
    found = read_launch_command(f"{text}{front} python -m sglang.launch_server --model-path m --pp-size 2\n")
    assert found.flags["pp_size"] == 2
    if front.startswith("env"):
        assert found.environment["SGLANG_PP_LAYER_PARTITION"] == "20,25"


SERVED = "sglang serve M --tp ${TP:-4}"


@pytest.mark.parametrize(
    "line",
    [
        f"ssh $SSH_OPTS n1 'export TP=8; {SERVED}'",
        f"ssh $SSH_OPTS $HOST 'export TP=8; {SERVED}'",
        f"ssh -p $PORT n1 'export TP=8; {SERVED}'",
        f"ssh $U@$H -o X=y $MORE 'export TP=8; {SERVED}'",
        f"ssh \"$@\" 'export TP=8; {SERVED}'",
        f"ssh n1 -t 'export TP=8; {SERVED}'",
        f"ssh $SSH_OPTS n1 <<'E'\nexport TP=8\n{SERVED}\nE",
        f"gcloud compute ssh v --zone z -- 'TP=8; {SERVED}'",
        f"gcloud compute ssh v --zone \"$Z\" --command 'TP=8; {SERVED}'",
        "vagrant ssh -c 'sglang serve M --tp 8'",
        f"sshpass -e ssh root@n1 'export TP=8; {SERVED}'",
        f"sudo -n ssh n1 <<'E'\nTP=8\n{SERVED}\nE",
        "GIT_SSH=/usr/bin/ssh sglang serve M --tp 8",
    ],
)
def test_a_script_for_another_host_is_read_whole(line: str) -> None:
    """Whatever stands between ssh and it: nothing of the script is taken for a host."""
    assert flags(f"{line}\n")["tp_size"] == 8


@pytest.mark.parametrize(
    "script",
    [
        "declare -i X=4; X+=4",
        "declare -l X=ABC",
        "GPUS[1]=8; X=${GPUS[@]}",
        "X=([0]=1 [1]=2 [3]=8)",
        "read A X <<< 'x\\_y 8'",
        "mapfile -t X < file",
    ],
)
def test_a_value_that_is_not_worked_out_is_no_missing_one(script: str) -> None:
    """It is there, so that `:-` does not give its default: bash would give what stands in it."""
    with pytest.raises(InputError, match=r"--tp-size is given .*; write out what it gives"):
        flags(f"{script}\nsglang serve M --tp ${{X:-4}}\n")


CONV = "export SGLANG_MAMBA_CONV_DTYPE=float32"


@pytest.mark.parametrize(
    ("front", "kept"),
    [
        ("env", True), ("env -v", True), ("env --ignore-signal", True),
        ("env -u X", True), ("env -uX", True), ("env numactl -i all", True),
        ("env -i", False), ("env -", False), ("env -vi", False), ("env --ignore-env", False),
        ("env -iu X", False), ("env -u SGLANG_MAMBA_CONV_DTYPE", False), ("env -uSGLANG_MAMBA_CONV_DTYPE", False),
        ("env --unset=SGLANG_MAMBA_CONV_DTYPE", False), ("env --unset SGLANG_MAMBA_CONV_DTYPE", False),
    ],
)  # fmt: skip
def test_what_env_takes_away(front: str, kept: bool) -> None:
    """By env(1), whose options stand together and are abbreviated."""
    found = read_launch_command(f"{CONV}\n{front} sglang serve M --tp 4\n")
    assert ("SGLANG_MAMBA_CONV_DTYPE" in found.environment) == kept


@pytest.mark.parametrize("front", ["SUDO=sudo; [ $N = 0 ] && SUDO=", 'if [ $N = 0 ]; then SUDO="env -i"; fi'])
def test_a_program_that_may_not_be_in_front_leaves_its_environment_open(front: str) -> None:
    with pytest.raises(InputError, match=r"SGLANG_MAMBA_CONV_DTYPE.*\$N"):
        read_launch_command(f"{CONV}\n{front}\n$SUDO sglang serve M --tp 4\n")


@pytest.mark.parametrize("front", ["", "sudo ", "env ", "docker run i -e "])
def test_a_secret_in_front_of_the_words_is_quoted_in_none(front: str) -> None:
    with pytest.raises(InputError) as error:
        read_launch_command(f"{front}API_KEY=topsecret99 sglang serve M --tp topsecret99\n")
    assert "topsecret99" not in str(error.value)
