"""Scripts whose branches decide what reaches the engine: evaluated, irrelevant, or asked about; never guessed."""

import pytest

from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.given_values import read_given
from glm_kvplan.launch.model_name import refuse_other_model

SERVE = "sglang serve zai-org/GLM-5.3-Flash "


def flags(script: str) -> dict[str, object]:
    return dict(read_launch_command(script).flags)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        # tests that defaults of the script decide
        ('D="${D:-0}"\nA=(--tp 8)\nif [[ "${D}" == "1" ]]; then\n A+=(--dp 8)\nfi\n' + SERVE + '"${A[@]}"',
         {"tp_size": 8}),
        ("A=(--tp 8)\nif false; then\n A+=(--dp 8)\nelse\n A+=(--dp 2)\nfi\n" + SERVE + '"${A[@]}"',
         {"tp_size": 8, "dp_size": 2}),
        ("N=${N:-2}\nif ((N > 1)); then TP=4; else TP=8; fi\n" + SERVE + "--tp $TP", {"tp_size": 4}),
        ("M=${M:-large}\ncase $M in small) TP=1;; l*) TP=8;; *) exit 1;; esac\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ("N=${N:-1}; [ $N -gt 1 ] && TP=8 || TP=4\n" + SERVE + "--tp $TP", {"tp_size": 4}),
        # an empty array vanishes, an unset variable is nothing
        ("A=()\n" + SERVE + '"${A[@]}" --tp 8', {"tp_size": 8}),
        ('SPEC=\n' + SERVE + "--tp 8 ${SPEC:+--speculative-algorithm EAGLE}", {"tp_size": 8}),
        ("TP=4\nunset TP\n" + SERVE + "--tp ${TP:-8}", {"tp_size": 8}),
        # what does not reach the script's own variables
        ("TP=8\n(TP=4)\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ("TP=8\ncat <<EOF >/dev/null\nTP=4\nEOF\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ("TP=8\necho 4 | read TP\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ("TP=8\nf() { local TP=4; }\nf\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ("TP=8\nf() { TP=4; }\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ("TP=8\nf() { TP=4; }\nf\n" + SERVE + "--tp $TP", {"tp_size": 4}),
        ('serve() { sglang serve x "$@"; }\nserve --tp 8', {"tp_size": 8}),
        # branches that do not matter: both ways the same, a guard that ends the script, flags that cost no byte
        ('if [ -n "$X" ]; then TP=4; else TP=4; fi\n' + SERVE + "--tp $TP", {"tp_size": 4}),
        ('if [ -z "$MODEL" ]; then echo usage; exit 1; fi\n' + SERVE + "--tp 4", {"tp_size": 4}),
        ("command -v sglang >/dev/null || { echo none; exit 1; }\n" + SERVE + "--tp 4", {"tp_size": 4}),
        ('A="--tp 4"\n[ -n "$M" ] && A="$A --enable-metrics"\n' + SERVE + "$A", {"tp_size": 4}),
        ('A=(--tp 4)\nif [ "$L" = 1 ]; then A+=(--log-level debug); fi\n' + SERVE + '"${A[@]}"', {"tp_size": 4}),
        (SERVE + "--tp 4 ${DEBUG:+--log-level debug}", {"tp_size": 4}),
        ("mkdir -p $LOGS && cd /x && " + SERVE + "--tp 4 >$LOGS/log 2>&1 &", {"tp_size": 4}),
        ("while ! curl -s localhost; do sleep 1; done\n" + SERVE + "--tp 4", {"tp_size": 4}),
        ("while true; do " + SERVE + "--tp 4; sleep 5; done", {"tp_size": 4}),
        ("for i in 1 2 3; do " + SERVE + "--tp 4 && break; sleep 5; done", {"tp_size": 4}),
        ("sglang serve ~/models/x --tp 4", {"tp_size": 4}),
        ("set -euo pipefail\n" + SERVE + '--tp 4 "$@"', {"tp_size": 4}),
        ("while getopts t: o; do case $o in t) TP=$OPTARG;; esac; done\n" + SERVE + "--tp ${TP:-4}", {"tp_size": 4}),
        ("for ((i = 2; i < 3; i++)); do " + SERVE + "--tp $((2 * i)) & done", {"tp_size": 4}),
        (SERVE + "--tp 4 & PID=$!\nwhile kill -0 $PID; do sleep 1; done\nwait $PID || exit $?", {"tp_size": 4}),
        ("for i in 0; do " + SERVE + "--tp 4 --node-rank $i & done", {"tp_size": 4}),
        # defaults in other spellings
        ('[ -z "$TP" ] && TP=8\n' + SERVE + "--tp $TP", {"tp_size": 8}),
        ('if [[ -z "${TP}" ]]; then TP=8; fi\n' + SERVE + "--tp $TP", {"tp_size": 8}),
        (': "${TP:=8}"\n' + SERVE + "--tp $TP", {"tp_size": 8}),
        ("TP=${1:-8}\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ('while [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift 2;; esac; done\n' + SERVE + "--tp ${TP:-8}",
         {"tp_size": 8}),
        # substitutions whose value is plain, or costs no byte
        ("TP=$(echo 8)\n" + SERVE + "--tp $TP", {"tp_size": 8}),
        ("J=$(cat <<'E'\n{\"a\": 1}\nE\n)\n" + SERVE + '--json-model-override-args "$J"',
         {"json_model_override_args": {"a": 1}}),
        (SERVE + "--tp 8 --log-requests-level 1 --served-model-name m-$(date +%F) | tee $(hostname).log",
         {"tp_size": 8}),
        (SERVE + "--cuda-graph-bs-decode $(seq 1 4)", {"cuda_graph_bs_decode": [1, 2, 3, 4]}),
        (SERVE + "--cuda-graph-bs-decode {1..4}", {"cuda_graph_bs_decode": [1, 2, 3, 4]}),
        # scripts inside
        ('TP=8\nbash -c "sglang serve x --tp $TP"', {"tp_size": 8}),
        ("export TP=8\nbash -c 'sglang serve x --tp $TP'", {"tp_size": 8}),
        ("CMD='sglang serve x --tp 8'\neval \"$CMD\"", {"tp_size": 8}),
        ("ssh node0 bash -s <<'EOF'\nTP=8\nsglang serve x --tp $TP\nEOF", {"tp_size": 8}),
        ("docker run image bash -c 'sglang serve x \"$@\"' -- --tp 8", {"tp_size": 8}),
    ],
)  # fmt: skip
def test_what_is_known_is_read(script: str, expected: dict[str, object]) -> None:
    assert flags(script) == expected


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ('[ -n "$BIG" ] && TP=4\nTP=${TP:-8}\n' + SERVE + "--tp $TP",
         "line 1: --tp-size is given 4 or 8, as $BIG of line 1 decides, which is not defined here; give --set BIG="),
        ('if [ "$A" = b ]; then\n TP=4\nelse\n TP=8\nfi\n' + SERVE + "--tp $TP",
         "line 2: --tp-size is given 4 or 8, as $A of line 1 decides"),
        ("case $GPU in\nh200) TP=8;;\nb200) TP=4;;\n*) TP=2;;\nesac\n" + SERVE + "--tp $TP",
         "--tp-size is given 8 or 4 or 2, as $GPU of line 1 decides"),
        ('A=(--tp 8)\nif [ -n "$D" ]; then\n A+=(--dp 8)\nfi\n' + SERVE + '"${A[@]}"',
         "line 3: whether --dp-size stands here depends on $D of line 2, which is not defined here; give --set D="),
        ('A="--tp 8"\n[ -n "$D" ] && A="$A --disable-radix-cache"\n' + SERVE + "$A",
         "whether --disable-radix-cache stands here depends on $D of line 2"),
        (SERVE + "${SPEC:+--speculative-algorithm EAGLE}",
         "whether --speculative-algorithm stands here depends on $SPEC of line 1"),
        ("f() { [ -n \"$X\" ] || return; A+=(--dp 8); }\nA=(--tp 8)\nf\n" + SERVE + '"${A[@]}"',
         "whether --dp-size stands here depends on $X of line 1"),
        ("nvidia-smi | grep -q H200 && TP=8 || TP=4\n" + SERVE + "--tp $TP",
         "--tp-size is given 8 or 4, as `grep` of line 1 decides, which is not run here"),
        ('[ -f big ] && TP=4 || TP=8\n' + SERVE + "--tp $TP", "as a file that `-f` looks for of line 1 decides"),
        ('if [ "$ROLE" = p ]; then\n' + SERVE + "--tp 4\nelse\n" + SERVE + "--tp 8\nfi",
         "2 launches of the engine found (line 2, line 4); which of them starts depends on $ROLE of line 1"),
        ('if [ "$R" = p ]; then exec ' + SERVE + "--tp 4; fi\nexec " + SERVE + "--tp 8",
         "which of them starts depends on $R of line 1"),
        ('if [ -n "$X" ]; then export SGLANG_MAMBA_CONV_DTYPE=float32; fi\n' + SERVE,
         "SGLANG_MAMBA_CONV_DTYPE is given"),
        ("for n in $NODES; do TP=4; done\n" + SERVE + "--tp ${TP:-8}", "is given 4 or 8, as $NODES of line 1 decides"),
        (SERVE + "--tp $(nproc)", "--tp-size is given $(...), which is not run here; write out what it gives"),
        ("read TP\n" + SERVE + "--tp $TP", "--tp-size is given $TP, which is not defined here"),
        ("if $X; then f() { :; }; else f() { TP=4; }; fi\nf\n" + SERVE,
         "the function f is another one in each of several branches"),
        (SERVE + '--json-model-override-args {"a":1,"b":2}', "is given {...}"),
        ("f() { f; }\nf\n" + SERVE, "functions call one another"),
        ("fi\n" + SERVE, "line 1: fi is not expected here"),
        ("select TP in 4 8; do break; done\n" + SERVE, "`select` is not read here; give the launch command"),
        ("f() { local -n out=$1; out=8; }\nf TP\n" + SERVE, "line 1: `local -n` is not read here"),
        ("case a in a) TP=4 ;& b) TP=8 ;; esac\n" + SERVE, "line 1: `;&` is not read here"),
        ("coproc " + SERVE, "line 1: `coproc` is not read here"),
        ("if true; then\n" + SERVE + "\ndone", "line 3: done is not expected here"),
        ("for i in 1 2\n" + SERVE, "line 2: do is expected here"),
        ("a <\n" + SERVE, "< needs a file"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_asked_about(script: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        flags(script)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_script_with_arguments_and_files_of_its_own_says_so() -> None:
    command = read_launch_command('source common.sh\n. venv/bin/activate\nsglang serve x --tp 8 "$@"')
    assert command.flags == {"tp_size": 8}
    assert command.warnings == (
        "line 1: common.sh is not read here; what it sets is not known",
        "the script is read as if it were called without arguments",
    )


def test_a_value_stands_where_it_is_written() -> None:
    command = read_launch_command('A=(\n --tp 8\n --dp 2\n)\nsglang serve x \\\n  "${A[@]}" \\\n --page-size 64')
    assert command.positions == {"tp_size": "line 2", "dp_size": "line 3", "page_size": "line 7"}


@pytest.mark.parametrize("word", ["TP", "=4", "1x=4", "A B=4", "1234=4", ""])
def test_a_value_is_given_by_its_variable_s_name(word: str) -> None:
    with pytest.raises(InputError, match="write NAME=VALUE"):
        read_given([word])
    assert len(read_given(["TP=4", "EMPTY=", "1=x"])) == 3


def test_a_file_that_is_sourced_may_be_left_early() -> None:
    files = {
        "perhaps.sh": '[ -n "$X" ] && return 1\nTP=8\n',
        "surely.sh": "TP=8\nreturn 0\nTP=4\n",
    }
    around = Surroundings(beside=files.get)
    surely = launches_in("TP=2\nsource surely.sh\nsglang serve x --tp $TP\n", SERVERS, around).launches[0]
    assert [word.text for word in surely.words][-2:] == ["--tp", "8"] and surely.words[-1].mark is None
    files["given.sh"] = "TP=$1\n"
    given = "set -- 2\nsource given.sh 8\nsglang serve x --tp $TP --dp $1\n"
    words = launches_in(given, SERVERS, around).launches[0].words
    assert [word.text for word in words][-4:] == ["--tp", "8", "--dp", "2"]
    perhaps = launches_in("TP=2\nsource perhaps.sh\nsglang serve x --tp $TP\n", SERVERS, around).launches[0]
    assert perhaps.words[-1].mark is not None and perhaps.words[-1].mark.answers == ("2", "8")


def test_what_a_branch_gives_a_secret_is_not_told() -> None:
    with pytest.raises(InputError) as caught:
        flags('if [ -n "$X" ]; then API_KEY=11112222; else API_KEY=33334444; fi\nsglang serve x --tp $API_KEY\n')
    assert "1111" not in str(caught.value) and "3333" not in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        *(
            "Qwen/Qwen3-8B",
            "Qwen/QwQ-32B",
            "deepseek-ai/DeepSeek-V3",
            "meta-llama/Llama-3.1-8B",
            "google/gemma-3-27b-it",
        ),
        *(
            "codellama/CodeLlama-7b-hf",
            "mistralai/Mistral-7B-v0.3",
            "mistralai/Mixtral-8x7B-v0.1",
            "LGAI-EXAONE/EXAONE-4.0-32B",
        ),
        *("mistralai/Ministral-8B-Instruct-2410", "mistralai/Pixtral-12B-2409", "moonshotai/Kimi-K2-Instruct"),
        *("MiniMaxAI/MiniMax-M2", "nvidia/Nemotron-H-8B", "tencent/Hunyuan-A13B", "baidu/ERNIE-4.5-21B"),
        *("internlm/internlm3-8b", "OpenGVLab/InternVL3-8B", "baichuan-inc/Baichuan-M2-32B", "allenai/OLMo-2-7B"),
        *("ibm-granite/granite-4.0-h-small", "zai-org/chatglm3-6b", "openai/gpt-oss-120b", "zai-org/GLM-4.6"),
    ],
)
def test_another_family_s_model_is_refused(model: str) -> None:
    with pytest.raises(InputError, match="another model"):
        refuse_other_model(model)
