"""Canaries: no secret comes out, in any command, form or error; nor what stands in a file that a stranger names."""

from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from glm_kvplan.answers.check import checking
from glm_kvplan.cli import main
from glm_kvplan.engines.planner import plan
from glm_kvplan.errors import InputError
from glm_kvplan.model.loader import BUNDLED
from glm_kvplan.reading.secret_words import HIDDEN, key_like, quoted, without_userinfo

CANARY = "S3CR3T"
SERVE = "sglang serve zai-org/GLM-5.3-Flash"
# What follows a launch that is fine up to there, each ending in another error or in none.
ENDS = {
    "good": "--tp 8",
    "stray": "bad --tp 8",
    "stray_after_tp": "--tp 8 bad",
    "wrong": "--tp many",
    "missing": "--tp",
    "not_for_yaml": "--tp 8 --config none.yaml",
    "refused": "--tp 8 --dp 3 --enable-dp-attention",
    "twice": "--tp 8 --tp 4",
    "unknown": "--tp 8 --no-such-flag",
    "ambiguous": "--tp 8 --mam 1",
    "unclosed": "--tp 8 'x",
    "second": "--tp 8\nsglang serve zai-org/GLM-5.3-Flash --tp 4",
}
# Where the secret stands.
FORMS = {
    "flag": f"{SERVE} --api-key {CANARY} @END",
    "equals": f"{SERVE} --api-key={CANARY} @END",
    "two_words": f"{SERVE} --api-key first {CANARY} @END",
    "one_word": f"{SERVE} '--api-key {CANARY}' @END",
    "trailing_blank": f"{SERVE} \\\n  --api-key {CANARY} \\ \n  @END",
    "cut_off": f"{SERVE} --tp 8\n  --api-key={CANARY} @END",
    "misspelt": f"{SERVE} --apikey {CANARY} @END",
    "underscores": f"{SERVE} --api_key={CANARY} @END",
    "password": f"{SERVE} --ssl-keyfile-password {CANARY} @END",
    "default": f"{SERVE} --api-key ${{KEY:-{CANARY}}} --tp ${{TP_KEY:?{CANARY}}} @END",
    "assigned": f"HF_TOKEN={CANARY} {SERVE} @END",
    "exported": f"export API_KEY={CANARY}\n{SERVE} --api-key $API_KEY $API_KEY @END",
    "docker": f"docker run --env HF_TOKEN={CANARY} -e API_KEY={CANARY} image {SERVE} @END",
    "as_a_value": f"export HF_TOKEN={CANARY}\n{SERVE} --kv-cache-dtype $HF_TOKEN @END",
    "listed": f'API_KEY=(x {CANARY})\n{SERVE} --page-size "${{API_KEY[1]}}" @END',
    "by_key": f'declare -A M=([token]={CANARY})\n{SERVE} --page-size "${{M[token]}}" @END',
    "by_key_later": f'declare -A M\nM[hf_token]={CANARY}\n{SERVE} --page-size "${{M[hf_token]}}" @END',
    "a_part": f'HF_TOKEN=x:{CANARY}\n{SERVE} --page-size "${{HF_TOKEN#x:}}" @END',
    "other_case": f'HF_TOKEN={CANARY.lower()}\n{SERVE} --page-size "${{HF_TOKEN^^}}" @END',
    "split": f"HF_TOKEN='x {CANARY}'\n{SERVE} --page-size $HF_TOKEN @END",
    "read_apart": f"HF_TOKEN=x:{CANARY}\nIFS=: read A B <<< $HF_TOKEN\n{SERVE} --page-size $B @END",
    "in_a_script": f'HF_TOKEN={CANARY}\nbash -c "{SERVE} --page-size $HF_TOKEN @END"',
    "camel": f"hfToken={CANARY}\n{SERVE} --page-size $hfToken @END",
    "signed": f"{SERVE} --page-size https://h.example/x?X-Amz-Signature={CANARY} @END",
    "json_as_text": f'{SERVE} --hisparse-config \'{{"token": "{CANARY}"}}\' @END',
    "json_list": f'{SERVE} --json-model-override-args \'{{"a": [{{"api_keys": ["{CANARY}"]}}]}}\' @END',
    "json_of_vllm": f'vllm serve zai-org/GLM-5.3-Flash --additional-config \'{{"hf_token": "{CANARY}"\' @END',
    "in_another": f'DB_PASSWORD={CANARY}\nX="a${{DB_PASSWORD}}b"\n{SERVE} --page-size "$X" "--$X" @END',
    "json": f'{SERVE} --json-model-override-args \'{{"hf_token": "{CANARY}"\' @END',
    "address": f"sglang serve https://user:{CANARY}@host.example/zai-org/GLM-5.3-Flash @END",
    "draft": f"{SERVE} --speculative-draft-model-path https://u:{CANARY}@h.example/x @END",
    "other_model": f"sglang serve https://user:{CANARY}@host.example/Qwen3-8B @END",
    "other_engine": f"vllm serve https://u:{CANARY}@h.example/zai-org/GLM-5.3-Flash --api-key {CANARY} @END",
}
COMMANDS = {
    "resolve": (),
    "solve": ("--json",),
    "estimate": (),
    "explain": (),
    "pools": ("--context", "8k", "--concurrency", "1"),
    "advise": ("--context", "8k", "--concurrency", "1"),
    "sweep": ("--over", "tp_size=8,4"),
    "report": ("-o", "-", "--format", "md"),
    "validate": ("--device", "meta"),
}


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    out, err = capsys.readouterr()
    code = left.value.code
    assert isinstance(code, int)
    return code, out + err


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def launches() -> Iterator[tuple[str, str, str]]:
    for form, text in FORMS.items():
        for end, words in ENDS.items():
            yield form, end, text.replace("@END", words)


def test_no_form_of_a_launch_tells_its_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every form with every end, as text, as a script in a file, in a deployment file and in a manifest."""
    monkeypatch.setattr(checking, "check_files", cache_of_one(checking.check_files))
    files = []
    for form, end, text in launches():
        code, found = said(capsys, "resolve", "--", text)
        assert CANARY not in found, (form, end, found)
        assert code in (0, 1, 2)
        name = f"{form}-{end}"
        (tmp_path / f"{name}.sh").write_text(text, encoding="utf-8")
        (tmp_path / f"{name}.kvplan.yaml").write_text(f"launch_file: {name}.sh\n", encoding="utf-8")
        (tmp_path / f"{name}.pod.yaml").write_text(manifest(text), encoding="utf-8")
        (tmp_path / f"{name}.pod.kvplan.yaml").write_text(f"launch_file: {name}.pod.yaml\n", encoding="utf-8")
        files += [f"{name}.kvplan.yaml", f"{name}.pod.kvplan.yaml"]
    for format in ("text", "json", "github", "junit", "sarif", "md"):
        code, found = said(capsys, "check", "--format", format, *files)
        assert code == 2
        assert CANARY not in found, [line for line in found.splitlines() if CANARY in line][:3]


def cache_of_one(check_files: Callable[..., Any]) -> Callable[..., Any]:
    """The files are judged once; every format prints the same findings."""
    found: list[Any] = []

    def once(*files: Any, **options: Any) -> Any:
        if not found:
            found.append(check_files(*files, **options))
        return found[0]

    return once


def manifest(script: str) -> str:
    text = script.replace("\n", "\n        ")
    return (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: c\n    env:\n"
        f"    - {{name: HF_TOKEN, value: {CANARY}}}\n    command: [bash, -c]\n    args:\n      - |\n        {text}\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", ["flag", "two_words", "address", "draft", "exported", "json_as_text", "json_list"])
def test_no_command_tells_it(command: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    for end in ("good", "refused"):
        _, found = said(capsys, command, *COMMANDS[command], "--", FORMS[form].replace("@END", ENDS[end]))
        assert CANARY not in found


@pytest.mark.parametrize(
    "words",
    [
        ("resolve", "--env", f"HF_TOKEN={CANARY}"),
        ("resolve", "--env", CANARY),
        ("resolve", f"HF_TOKEN={CANARY}"),
        ("resolve", f"--api-key={CANARY}"),
        ("resolve", "--api-key", CANARY),
        (f"HF_TOKEN={CANARY}", "resolve"),
        (f"--api-key={CANARY}", "resolve"),
        ("resolve", "--model", f"https://u:{CANARY}@h.example/x"),
        ("model", f"https://u:{CANARY}@h.example/x"),
        ("reconcile", f"https://u:{CANARY}@h.example/x"),
        ("check", f"https://u:{CANARY}@h.example/x.kvplan.yaml"),
        ("check", f"https://u:{CANARY}@h.example/x.kvplan.yaml", "--json"),
        ("check", f"https://h.example/x.kvplan.yaml?token={CANARY}", "--format", "junit"),
        ("check", f"https://u:{CANARY}@h.example/x.kvplan.yaml", "--format", "sarif"),
        ("diff", f"https://u:{CANARY}@h.example/x.kvplan.yaml", f"https://u:{CANARY}@h.example/y.kvplan.yaml"),
        ("resolve", "--set", f"HF_TOKEN={CANARY}", "--", f"{SERVE} --tp $HF_TOKEN"),
        ("resolve", "--set", CANARY, "--", SERVE),
        ("resolve", "--container", "x", "--", SERVE),
        ("reconcile", "--url", f"https://u:{CANARY}@127.0.0.1:1", "--timeout", "1"),
        ("reconcile", "--url", f"https://u:{CANARY}@127.0.0.1:port"),
        ("reconcile", "--url", f"http://127.0.0.1:1/?token={CANARY}", "--timeout", "1"),
        ("sweep", "--over", f"api_key={CANARY}"),
        ("advise", "--gpus", "8", "--try", f"api-key={CANARY}"),
        ("resolve", "--tp-size", "8", "--speculative-draft-model-path", f"https://u:{CANARY}@h.example/x"),
    ],
    ids=lambda words: " ".join(words),
)
def test_nor_does_a_word_of_our_own_command_line(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    _, found = said(capsys, *words)
    assert CANARY not in found


@pytest.mark.parametrize("key", [f"{CANARY}\r", f"{CANARY}\nX: y", f"{CANARY}\x00", f"{CANARY}é€"])
def test_a_key_that_no_header_takes(
    key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {"KVPLAN_API_KEY": key, "PATH": ""})
    code, found = said(capsys, "reconcile", "--url", "http://127.0.0.1:1", "--timeout", "1")
    assert code == 2 and CANARY not in found and "KVPLAN_API_KEY" in found


VALUES = {
    "mapping": f"database: {{password: {CANARY}, user: admin}}\n",
    "text": f"password: {CANARY}\n",
    "flag": f"tp-size: {CANARY}\n",
    "blanks": f"motd: hello {CANARY}\n",
    "list": f"served-model-name: [{CANARY}, b]\ntp: [1, {CANARY}]\n",
    "json": f"json-model-override-args: {CANARY}\n",
    "tag": f"password: !{CANARY}\n",
    "typed": f"password: !!int {CANARY}\n",
    "alias": f"password: *{CANARY}\n",
    "broken": f"password: '{CANARY}\n",
    "choice": f"kv-cache-dtype: {CANARY}\n",
    "switch": f"disable-radix-cache: {CANARY}\n",
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_a_config_file_are_not_quoted(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """hostile/02: a deployment file may name any YAML file as the engine's --config."""
    (tmp_path / "values.yaml").write_text(VALUES[kind], encoding="utf-8")
    launch = f"{SERVE} --tp 8 --config values.yaml"
    (tmp_path / "a.kvplan.yaml").write_text(f"launch: {launch}\n", encoding="utf-8")
    _, found = said(capsys, "check", "a.kvplan.yaml")
    assert CANARY not in found


def test_a_config_file_lies_in_the_folder_of_the_file_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside, folder = tmp_path / "values.yaml", tmp_path / "deployments"
    folder.mkdir()
    outside.write_text("tp-size: 4\n", encoding="utf-8")
    (folder / "link.yaml").symlink_to(outside)
    (folder / "ring.yaml").symlink_to("ring.yaml")
    (folder / "inside.yaml").write_text("tp-size: 4\n", encoding="utf-8")
    script = folder / "serve.sh"
    for number, (name, holds) in enumerate(
        [
            ("inside.yaml", True),
            ("link.yaml", False),
            ("../values.yaml", False),
            (str(outside), False),
            ("ring.yaml", False),
        ]
    ):
        launch = f"{SERVE} --config {name}"
        script.write_text(launch, encoding="utf-8")
        (folder / "pod.yaml").write_text(manifest(launch), encoding="utf-8")
        for key, value in (("launch", launch), ("launch_file", "serve.sh"), ("launch_file", "pod.yaml")):
            file = folder / f"{number}.kvplan.yaml"
            file.write_text(f"{key}: {value}\n", encoding="utf-8")
            code, found = said(capsys, "check", str(file))
            assert (code == 0) is holds, found
            assert holds or "outside" in " ".join(found.split()) or "cannot be read" in found
    file.write_text(f"launch: {SERVE} --config ../values.yaml\n", encoding="utf-8")
    assert said(capsys, "check", str(file), "--root", str(tmp_path))[0] == 2  # .. of that folder
    file.write_text(f"launch: {SERVE} --config values.yaml\n", encoding="utf-8")
    assert said(capsys, "check", str(file), "--root", str(tmp_path))[0] == 0


def test_what_a_deployment_file_names_lies_in_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Launch files, profiles, models and drafts: in the folder, links followed, or where --root allows it."""
    folder, outside = tmp_path / "deployments", tmp_path / "elsewhere"
    for place in (folder, outside):
        place.mkdir()
        (place / "serve.sh").write_text(f"{SERVE} --tp 8\n", encoding="utf-8")
        (place / "own.toml").write_text('base = "0.5.21"\n', encoding="utf-8")
        (place / "config.json").write_text(BUNDLED.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "link.sh").symlink_to(outside / "serve.sh")
    flags = "gpu: H200\nflags:\n  tp_size: 8\n"
    draft = f"{SERVE} --tp 8 --speculative-algorithm DFLASH --speculative-draft-model-path"
    for text, name, other in (
        ("gpu: H200\nlaunch_file: {}\n", "serve.sh", "link.sh"),
        ("gpu: H200\nlaunch_file: {}\n", "serve.sh", "../elsewhere/serve.sh"),
        (flags + "engine: {}\n", "own.toml", "../elsewhere/own.toml"),
        (flags + "engine: {}\n", "own.toml", str(outside / "own.toml")),
        (flags + "model: {}\n", "config.json", "../elsewhere/config.json"),
        (flags + "model: {}\n", "config.json", str(outside)),
        (f"gpu: H200\nlaunch: {draft} {{}}\n", "x/draft", str(outside)),
    ):
        file = folder / "a.kvplan.yaml"
        file.write_text(text.format(name), encoding="utf-8")
        code, found = said(capsys, "check", str(file))
        assert code in (0, 1) and "unusable" not in found, found
        file.write_text(text.format(other), encoding="utf-8")
        code, found = said(capsys, "check", str(file))
        assert code == 2 and "outside the folder" in " ".join(found.split()), found
        code, found = said(capsys, "check", str(file), "--root", str(tmp_path))
        assert "outside" not in found, found


def test_a_model_of_the_launch_elsewhere_is_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, outside = tmp_path / "deployments", tmp_path / "GLM-5.3-Flash"
    folder.mkdir()
    outside.mkdir()
    (outside / "config.json").write_text(f'{{"architectures": ["{CANARY}"]}}', encoding="utf-8")
    file = folder / "a.kvplan.yaml"
    file.write_text(f"gpu: H200\nlaunch: sglang serve {outside} --tp 8\n", encoding="utf-8")
    code, found = said(capsys, "check", str(file))
    assert code == 0 and CANARY not in found
    assert "is not read: it lies outside the folder" in " ".join(found.split())
    assert said(capsys, "check", str(file), "--root", str(tmp_path))[0] == 2  # then it is another model


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_vllm_s_config_file_are_not_quoted_either(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deployments"
    folder.mkdir()
    text = VALUES[kind].replace("disable-radix-cache", "enforce-eager")
    for place in (tmp_path, folder):
        (place / "values.yaml").write_text(text, encoding="utf-8")
    file = folder / "a.kvplan.yaml"
    for name, outside in (("values.yaml", False), ("../values.yaml", True)):
        file.write_text(
            f"gpu: H200\nlaunch: vllm serve zai-org/GLM-5.3-Flash -tp 4 --config {name}\n", encoding="utf-8"
        )
        code, found = said(capsys, "diff", str(file), str(file))
        assert CANARY not in found
        assert not outside or (code == 2 and "outside" in " ".join(found.split()))


@pytest.mark.parametrize("command", ["resolve", "solve", "advise", "report"])
def test_nor_does_vllm_s_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = f'{{"kv_connector": "x", "kv_role": "kv_both", "kv_connector_extra_config": {{"password": "{CANARY}"}}}}'
    launch = ("vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "8", "--kv-transfer-config", config)
    _, found = said(capsys, command, *COMMANDS[command], "--", *launch)
    assert CANARY not in found
    assert "--kv-transfer-config" in found


def test_a_program_s_script_tells_no_secret_of_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.py").write_text(
        f'import subprocess\nTOKEN = "{CANARY}"\nsubprocess.run(["bash", "-c", f"{SERVE} --page-size {{TOKEN}}"])\n',
        encoding="utf-8",
    )
    code, found = said(capsys, "resolve", "--launch", "run.py")
    assert code == 2 and "--page-size" in found
    assert CANARY not in found


def test_an_alias_of_a_compose_file_is_not_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A password that begins with * is an alias to YAML."""
    (tmp_path / "compose.yaml").write_text(f"services:\n  a: {{environment: {{HF_TOKEN: *{CANARY} }}}}\n", "utf-8")
    (tmp_path / "a.kvplan.yaml").write_text(f"set: {{HF_TOKEN: *{CANARY} }}\n", "utf-8")
    for words in (["resolve", "--launch", "compose.yaml"], ["check", "a.kvplan.yaml"]):
        code, found = said(capsys, *words)
        assert code == 2 and CANARY not in found and "alias" in found


def test_many_secrets_take_no_time() -> None:
    """One of 1,000 that is long stood for 30 seconds."""
    script = "".join(f"export T{number}_TOKEN={number:06d}{'x' * 4000}\n" for number in range(1000))
    words = " ".join(f"--w{number} a{number}bcdef" for number in range(1000))
    started = process_time()
    with pytest.raises(InputError):  # nobody's flags
        plan(launch=f"{script}{SERVE} --tp 8 {words}")
    assert process_time() - started < 8


def test_flags_keep_no_password_of_an_address() -> None:
    made = plan({"tp_size": 8, "speculative_draft_model_path": f"https://u:{CANARY}@h.example/x"})
    assert CANARY not in repr(made)


def test_names_of_secrets_and_names_that_only_look_so() -> None:
    for name in ("hfToken", "HFTOKEN", "ACCESSKEY", "API_KEYS", "GH_PAT", "HTTP_AUTH"):
        assert key_like(name), name
    for name in ("monkey", "path", "author"):
        assert not key_like(name), name
    for name in (
        "--api-key",
        "--admin-api-key",
        "HF_TOKEN",
        "--ssl-keyfile-password",
        "db.password",
        "AWS_SECRET_KEY",
    ):
        assert key_like(name), name
    for name in (
        "--max-total-tokens",
        "--tokenizer-path",
        "max_prefill_tokens",
        "--enable-hierarchical-cache",
        "monkey",
        "path",
    ):
        assert not key_like(name), name
    assert quoted("x", "--api-key") == quoted('{"hf_token": 1}') == HIDDEN
    assert quoted("x" * 90) == "'" + "x" * 56 + "..."
    assert without_userinfo("https://u:p@h/x@1") == "https://h/x@1"
    assert without_userinfo("https://u:hun/ter2@h/x?a=1&hf_token=S3&b=2") == "https://h/x?a=1&hf_token=...&b=2"
    assert without_userinfo("https://h:443/org/x@main?rev=1") == "https://h:443/org/x@main?rev=1"


@pytest.mark.parametrize(
    ("secret", "launch", "option"),
    [
        ("token", "sglang serve --model-path zai-org/GLM-5.3-Flash --tp-size 8", "--max-total-tokens 300000"),
        ("TOKEN", "vllm serve zai-org/GLM-5.3-Flash -tp 8", "--max-num-batched-tokens 1024"),
        ("Speculative", "vllm serve zai-org/GLM-5.3-Flash -tp 8",
         "--speculative-config.method mtp --speculative-config.num_speculative_tokens 5"),
    ],
)  # fmt: skip
def test_a_flag_whose_name_holds_a_secret_counts(secret: str, launch: str, option: str) -> None:
    """A secret that is a common word drops no flag: what is left out is a wrong answer."""
    script = f"export HF_TOKEN={secret}\n{launch} {option}"
    assert plan(launch=script, gpu="b200").flags == plan(launch=f"{launch} {option}", gpu="b200").flags


@pytest.mark.parametrize("launch", ["python -m sglang.launch_server --model-path x", "vllm serve x"])
@pytest.mark.parametrize("option", ["--$HF_TOKEN", "--$HF_TOKEN=3", "--x.$HF_TOKEN 3", "--x.$HF_TOKEN"])
def test_an_unknown_option_that_is_a_secret_is_not_named(
    launch: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(f"export HF_TOKEN=hunter2hunter2\n{launch.replace('x', 'zai-org/GLM-5.3-Flash')} {option}\n")
    told = said(capsys, "solve", "--gpu", "b200", "--launch", str(script))[1]
    assert "--..." in told and "hunter2" not in told
