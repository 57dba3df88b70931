"""Every limit in words: its name, its number and where the number comes from."""

from test_sizing_edges import MIB_A_SLOT, sized

from glm_kvplan.engines.sglang.sizing.binding_limits import Limit, binding, limits
from glm_kvplan.engines.sglang.sizing.solver import size


def test_limits_of_tokens_in_words() -> None:
    capped = sized(0.0, 1.0, max_total_tokens=1000)
    tokens = limits(capped).tokens
    assert tokens[0] == Limit("max_total_tokens", 960, "the user's cap of 1,000, in pages of 64")
    assert tokens[1] == Limit("memory", 946_176, "968,884,224 B left // 1,024 B a token, in pages of 64")
    staged = size(MIB_A_SLOT, 0.0, 1.0, 640)
    assert limits(staged).tokens[0] == Limit("pipeline stages", 640, "another stage holds fewer tokens")
    assert [binding(each)[0] for each in (capped, staged, sized(0.0, 1.0))] == [
        "max_total_tokens",
        "pipeline stages",
        "memory",
    ]


def test_limits_of_requests_in_words() -> None:
    found = limits(sized(0.0, 1.0, requests=17))
    assert found.requests == (
        Limit("max_running_requests", 17, "the cap on running requests, for one DP worker"),
        Limit("state slots", 19, "99 slots // 5 a request"),
        Limit("token pool", 473_088, "946,176 tokens // 2"),
    )
    few = sized(0.0, 1.0, requests=17, max_total_tokens=20 * 64 + 1, page_size=2, slots_per_request=1)
    assert limits(few._replace(tokens=5)).requests[0] == Limit("token pool", 2, "5 tokens // 2")
    assert binding(few._replace(tokens=5)) == ("pipeline stages", "token pool")
    assert binding(sized(0.0, 1.0, requests=17)) == ("memory", "max_running_requests")
    assert binding(sized(0.0, 1.0)) == ("memory", "state slots")


def test_the_engines_estimate_in_words() -> None:
    many = {"max_total_tokens": 1 << 20, "slots_per_request": 1, "state_slots": 8000}
    said = [
        limits(sized(0.0, 100.0, context_length=context, **many)).requests[0]
        for context in (1 << 18, 1 << 20, 1 << 16, (1 << 20) // 6)
    ]
    assert said == [
        Limit("engine's estimate", 2048, "1,048,576 tokens / 262,144 * 512"),
        Limit("engine's clamp", 2048, "1,048,576 tokens / 1,048,576 * 512 = 512, held at the least, 2,048"),
        Limit("engine's clamp", 4096, "1,048,576 tokens / 65,536 * 512 = 8,192, held at the most, 4,096"),
        Limit("engine's estimate", 3072, "1,048,576 tokens / 174,762 * 512"),
    ]


def test_what_fixed_the_slots_in_words() -> None:
    given, shared = limits(sized(0.0, 1.0)).slots, limits(sized(0.0, 2.0, state_slots=None, state_ratio=1.0)).slots
    fixed = "fixed: max_mamba_cache_size, or the requests without a radix cache"
    assert given == Limit("flags", 99, fixed)
    assert shared == Limit("mamba_full_memory_ratio", 1023, "mamba_full_memory_ratio 1 gives states 1,073,741,824 B")


def test_rings_count_in_what_a_slot_is_worth() -> None:
    ringed = limits(sized(0.0, 1.0, ring_bytes=512 << 10))
    assert ringed.tokens_per_slot == 1.5 * 1024
