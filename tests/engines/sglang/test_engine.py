"""Engine profiles: the releases, a user's own file, the sglang installed here, and what differs between two."""

from pathlib import Path

import pytest

import glm_kvplan as kv
from glm_kvplan.answers.engines_answer import answer_engines
from glm_kvplan.cli import main
from glm_kvplan.engines.by_name import NAMES, engine_named
from glm_kvplan.engines.profile_file import installed_release
from glm_kvplan.engines.sglang.answers.release_comparison import compare_engines
from glm_kvplan.engines.sglang.profile import BASELINE, load_profile, page_size, releases

PATCHED = """
base = "0.5.22"
index_rows_pooled = false
page_size_times_index_kpool = false
"""


@pytest.fixture
def write(tmp_path: Path) -> "callable":  # type: ignore[valid-type]
    def to(text: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return to


def per_token(plan: kv.Plan) -> int:
    answer = kv.estimate(plan, kv.Workload(4096, 1))
    return sum(ledger.bytes_per_unit for ledger in answer.largest.ledgers if ledger.account.unit == "token")


def test_the_four_releases_and_the_articles_baseline() -> None:
    assert releases() == ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
    assert BASELINE == "0.5.21"


@pytest.mark.parametrize(("release", "page"), [("0.5.20", 64), ("0.5.21", 64), ("0.5.22", 256), ("0.5.23", 256)])
def test_page_sizes(release: str, page: int) -> None:
    assert page_size(kv.plan().geometry, load_profile(release)) == page


def test_a_patched_build(write) -> None:  # type: ignore[no-untyped-def]
    """Public case rtxpro6000x2-tp2-mtp6-bf16state: raw rows with tilelang, 132-byte keys: 12 x (512 + 132)."""
    flags = {
        "tp_size": 2,
        "kv_cache_dtype": "fp8_e4m3",
        "dsa_prefill_backend": "tilelang",
        "dsa_decode_backend": "tilelang",
        "speculative_algorithm": "EAGLE",
    }
    assert per_token(kv.plan(flags, gpu="rtxpro6000", engine=write(PATCHED))) == 12 * (512 + 132)


def test_rows_of_656_bytes(write) -> None:  # type: ignore[no-untyped-def]
    engine = write('base = "0.5.21"\nscaled_row_bytes = 656\n')
    plan = kv.plan({"kv_cache_dtype": "fp8_e4m3"}, gpu="h200", engine=engine)
    assert per_token(plan) == 11 * (656 + 132)
    tensors = kv.estimate(plan, kv.Workload(4096, 1)).largest.tensors
    assert next(tensor for tensor in tensors if tensor.name == "kv_buffer").shape[-1] == 656


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("index_rows_pooled = false", "base"),
        ('base = "0.5.99"', "base"),
        ('base = "0.5.21"\nnonsense = 1', "nonsense"),
        ('base = "0.5.21"\npage_size = "64"', "page_size"),
        ('base = "0.5.21"\npage_size = true', "page_size"),
        ('base = "0.5.21"\nscaled_row_bytes = "656"', "scaled_row_bytes"),
        ('base = "0.5.21"\nscaled_row_bytes = -1', "scaled_row_bytes"),
        ('base = "0.5.21"\npage_size = 0', "page_size"),
        ("not toml", "TOML"),
    ],
)
def test_a_file_that_cannot_be_used(write, text: str, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kv.InputError, match=says) as caught:
        load_profile(write(text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_file_that_is_no_file_or_too_large(tmp_path: Path, engine: str) -> None:
    """A file of strangers is bounded, whichever engine it is for."""
    folder, large = tmp_path / "folder.toml", tmp_path / "large.toml"
    folder.mkdir()
    with large.open("wb") as file:
        file.truncate(1 << 30)
    for path in (folder, large):
        with pytest.raises(kv.InputError, match=str(path)) as caught:
            engine_named(engine).load(str(path))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ["0.5.99", "", "/nonexistent.toml", "latest"])
def test_no_such_engine(engine: str) -> None:
    with pytest.raises(kv.InputError):
        load_profile(engine)


def test_the_installed_release_is_read_from_its_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "sglang-0.5.22.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.22\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    load_profile.cache_clear()
    assert installed_release("sglang") == "0.5.22"
    assert load_profile("installed").release == "0.5.22"
    load_profile.cache_clear()


def test_what_differs_between_two_releases_in_bytes() -> None:
    """ENGINE_MODEL 9: 132 against 33 bytes a token and layer, 64 against 256 tokens a page."""
    comparison = compare_engines(load_profile("0.5.21"), load_profile("0.5.22"))
    assert ("index_rows_pooled", False, True) in comparison.fields
    plain = dict(comparison.deployments)["H200, --tp-size 8, FP8 rows"]
    found = {change.name: change for change in plain}
    price = found["indexer, bytes per token"]
    assert (price.before, price.after) == (11 * 132, 11 * 33)
    assert (found["page_size"].before, found["page_size"].after) == (64, 256)
    biggest = max(plain, key=lambda change: abs(change.nbytes))
    assert plain[0] == biggest


def test_one_release_against_itself() -> None:
    comparison = compare_engines(load_profile("0.5.23"), load_profile("0.5.23"))
    assert comparison.fields == () and all(not found for _, found in comparison.deployments)


def test_every_engine_lists_its_releases_and_compares_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_engines()
    assert [engine.name for engine in answer.engines] == list(NAMES)
    for engine in map(engine_named, NAMES):
        shown = next(each for each in answer.engines if each.name == engine.name)
        assert tuple(shown.facts) == engine.releases() and shown.assumed == engine.assumed
        assert len({tuple(facts) for facts in shown.facts.values()}) == 1  # one table
    for names, says in (
        (("vllm-0.32.0", "0.5.23"), "kvplan diff compares"),
        (("vllm-0.32.0", "vllm-0.33.0"), "--engine vllm-0.32.0 --engine vllm-0.33.0"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["info", "engines", *names])
        assert ended.value.code == 2
        err = capsys.readouterr().err
        assert says in err and err.count("\n") == 1
