"""The Hub, played by a server on this machine: what is served, refused, cached, slow or not there at all."""

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from glm_kvplan.errors import InputError
from glm_kvplan.model import hub, loader, served
from glm_kvplan.model.loader import BUNDLED, BUNDLED_ID, BUNDLED_REVISION, bundled_geometry
from glm_kvplan.model.served import load_served_model

COMMIT = "b" * 40
CONFIG = BUNDLED.read_bytes()
# owner: (status, headers) the Hub answers with; every other owner's config.json is served.
ANSWERS = {
    "unknown": (404, {"X-Error-Code": "RepoNotFound"}),
    "anonymous": (401, {"X-Error-Code": "RepoNotFound"}),
    "gated": (403, {"X-Error-Code": "GatedRepo"}),
    "badtoken": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
    "forbidden": (403, {"X-Error-Message": "not you"}),
    "norevision": (404, {"X-Error-Code": "RevisionNotFound"}),
    "noconfig": (404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}),
    "down": (503, {}),
    "proxy": (200, {}),  # a page of some proxy, without the Hub's headers
}


class Hub(http.server.BaseHTTPRequestHandler):
    seen: list = []  # noqa: RUF012

    def do_GET(self):
        owner = self.path.split("/")[1]
        self.seen.append((self.path, self.headers.get("Authorization")))
        status, headers = ANSWERS.get(
            owner, (200, {"ETag": f'"{owner}"', "X-Repo-Commit": COMMIT, "X-HF-Warning": "topic; loud words"})
        )
        if owner in ("endless", "drips") and self.command == "GET":
            return self.endless(0.2 if owner == "drips" else 0)
        body = b"" if owner in ANSWERS else b"{}" if owner == "empty" else CONFIG
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def endless(self, pause):
        """A config.json of a length that is not told, of which more and more arrives."""
        self.send_response(200)
        self.send_header("ETag", '"endless"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" " * (1 if pause else 1 << 16))
                time.sleep(pause)
        except OSError:
            pass

    do_HEAD = do_GET

    def log_message(self, *_args):
        pass


@pytest.fixture(scope="module")
def endpoint():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


SCRIPT = """
import json, sys
from glm_kvplan.errors import InputError
from glm_kvplan.model import hub
from glm_kvplan.model.loader import load_model
source, revision, deadline = json.loads(sys.argv[1])
hub.DEADLINE_S = deadline or hub.DEADLINE_S
for name in source:
    try:
        model = load_model(name, revision=revision)
        print(json.dumps([model.origin, *model.warnings]))
    except InputError as error:
        print(json.dumps(str(error)))
"""


def look_up(*names, home, revision=None, deadline=None, **environment):
    """What `load_model` says of each name, in a process of its own: the library reads its switches at import."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([names, revision, deadline])],
        env={**clean, "HF_HOME": str(home), "NO_PROXY": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""  # no progress bar, no warning, no log line
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return answers if len(names) > 1 else answers[0]


def test_each_refusal_is_one_line_of_its_own(endpoint, tmp_path):
    words = {
        "unknown": "is no repository of the Hub, or a private one",
        "anonymous": "is no repository of the Hub, or a private one",
        "gated": "is gated",
        "badtoken": "the Hub answered 401; check HF_TOKEN",
        "forbidden": "the Hub answered 403; check HF_TOKEN",
        "norevision": "has no revision 'main'",
        "noconfig": "holds no config.json",
        "down": "the Hub answered 503",
        "proxy": "what answers is no Hub; check HF_ENDPOINT",
        "empty": "architectures is missing",
        "a--b": "is not a Hub id",
    }
    assert set(words) >= set(ANSWERS)
    answers = look_up(*(f"{owner}/x" for owner in words), home=tmp_path, HF_ENDPOINT=endpoint)
    for (owner, expected), answer in zip(words.items(), answers, strict=True):
        assert isinstance(answer, str) and expected in answer and answer.startswith(f"{owner}/x"), answer
        assert "\n" not in answer


@pytest.mark.parametrize(("owner", "said"), [("endless", "larger than 16 MiB"), ("drips", "did not answer within 3 s")])
def test_a_config_without_end_leaves_nothing_behind(owner, said, endpoint, tmp_path):
    answer = look_up(f"{owner}/GLM", home=tmp_path, deadline=3 if owner == "drips" else 60, HF_ENDPOINT=endpoint)
    assert said in answer, answer
    kept = [path for path in (tmp_path / "hub").rglob("*") if path.is_file() and ".locks" not in path.parts]
    assert sum(path.stat().st_size for path in kept) < 1000, kept
    assert not any(path.name.endswith(".incomplete") for path in kept)


def test_served_then_cached_then_offline(endpoint, tmp_path):
    Hub.seen.clear()
    answer = look_up("acme/GLM", home=tmp_path, HF_ENDPOINT=endpoint, HF_TOKEN="hf_secret")
    assert answer == [f"acme/GLM@{COMMIT}"]
    asked = {path for path, _ in Hub.seen if "/resolve/" in path}
    assert asked == {"/acme/GLM/resolve/main/config.json"}  # config.json and nothing else
    assert {token for path, token in Hub.seen if "/resolve/" in path} == {"Bearer hf_secret"}
    offline = look_up("acme/GLM", home=tmp_path, HF_HUB_OFFLINE="1")
    assert offline == [f"acme/GLM@{COMMIT}"]
    origin, warning = look_up("acme/GLM", home=tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert origin == f"acme/GLM@{COMMIT}" and "its cached copy is read" in warning


def test_the_revision_is_asked_for(endpoint, tmp_path):
    Hub.seen.clear()
    look_up("acme/GLM", home=tmp_path, revision="v1/x", HF_ENDPOINT=endpoint)
    assert {path for path, _ in Hub.seen if "/resolve/" in path} == {"/acme/GLM/resolve/v1%2Fx/config.json"}


def test_a_closed_network_names_the_bundled_copy(tmp_path):
    start = time.monotonic()
    closed = look_up("acme/GLM", home=tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert "the Hub cannot be reached" in closed and f"bundled copy of {BUNDLED_ID}" in closed
    offline = look_up("acme/GLM", home=tmp_path, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set" in offline and f"bundled copy of {BUNDLED_ID}" in offline
    assert time.monotonic() - start < 15


def test_a_silent_hub_is_left_at_the_deadline(tmp_path):
    # The listener accepts (in its backlog) and never answers; the library alone would wait for minutes.
    with socket.create_server(("127.0.0.1", 0), backlog=16) as silent:
        start = time.monotonic()
        answer = look_up(
            "acme/GLM", home=tmp_path, deadline=1.5, HF_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}"
        )
        assert "did not answer within" in answer and f"bundled copy of {BUNDLED_ID}" in answer
        assert time.monotonic() - start < 5
    assert hub.DEADLINE_S <= 13  # leaves two seconds of the promised fifteen for everything else


# A launch command's model: its own config where it can be read, else the bundled geometry and one line.


@pytest.fixture
def closed_hub(monkeypatch):
    def fail(repo, revision):
        raise hub.HubError(f"{repo}: the Hub cannot be reached (ConnectError); give a path")

    monkeypatch.setattr(loader, "fetch_config", fail)


def test_the_published_id_needs_no_network(closed_hub):
    for revision in (None, BUNDLED_REVISION, BUNDLED_REVISION[:8]):
        model = load_served_model(BUNDLED_ID, revision=revision)
        assert model.warnings == () and model.geometry == bundled_geometry()
    assert load_served_model(BUNDLED_ID, revision="refs/pr/3").warnings


@pytest.mark.parametrize(
    "name",
    [
        "nvidia/GLM-5.3-Flash-NVFP4",
        "me/glm_5.3_flash-w4a16",
        "/models/GLM-5.3-Flash-FP8/",
        "/models/ckpt",
        "/mnt/glm-5",
    ],
)
def test_a_copy_that_cannot_be_read_has_the_bundled_geometry(closed_hub, name):
    model = load_served_model(name)
    assert model.geometry == bundled_geometry() and "bundled copy" in model.origin
    assert len(model.warnings) == 1 and model.warnings[0].startswith(name) and "\n" not in model.warnings[0]


@pytest.mark.parametrize(
    "name", ["deepseek-ai/DeepSeek-V3.2", "zai-org/GLM-4.6", "/models/Llama-3-8B", "/data/glm-4.6"]
)
def test_another_model_is_refused(closed_hub, name):
    with pytest.raises(InputError, match=r"its name is not GLM-5\.3-Flash"):
        load_served_model(name)


def test_a_copy_that_can_be_read_speaks_for_itself(tmp_path, monkeypatch):
    config = json.loads(CONFIG)
    config["text_config"]["kv_lora_rank"] = 256
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert served.load_served_model(str(tmp_path)).geometry.kv_lora_rank == 256
    config["architectures"] = ["LlamaForCausalLM"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="'LlamaForCausalLM' is not supported"):
        load_served_model(str(tmp_path))
    monkeypatch.setattr(loader, "fetch_config", lambda repo, revision: (tmp_path / "config.json", ()))
    with pytest.raises(InputError, match="'LlamaForCausalLM' is not supported"):
        load_served_model("acme/GLM-5.3-Flash-x")
