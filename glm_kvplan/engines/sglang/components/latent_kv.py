"""MLA latent KV: one compressed row a token in every sparse full-attention layer."""

from glm_kvplan.engines.component import Account, Ledger
from glm_kvplan.engines.sglang.deployment import KvLayout
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.model.geometry import QUANT_BLOCK, Geometry

SCALE_BYTES = 4  # fp32, one for QUANT_BLOCK elements
ROPE_BYTES = 2  # the RoPE part of a scaled row stays bf16

_SOURCE = "mem_cache/kv_cache_configurator.py:2572-2627 at 0.5.21"


def _account(formula: str) -> Account:
    return Account("latent_kv", "MLA latent KV", "token", formula, _SOURCE, charged=True, backed_up=True)


_BF16 = _account("full_attention_layers * (kv_lora_rank + qk_rope_head_dim) * 2")
_RAW = _account("full_attention_layers * (kv_lora_rank + qk_rope_head_dim)")
_SCALED = _account("full_attention_layers * (kv_lora_rank + kv_lora_rank // 128 * 4 + qk_rope_head_dim * 2)")
_FROM_PROFILE = _account("full_attention_layers * scaled_row_bytes")


def row_bytes(geometry: Geometry, layout: KvLayout, profile: EngineProfile) -> int:
    """Bytes of one token's row in one full-attention layer: 1024 (bf16), 528 (scaled) or 512 (raw) as published."""
    if layout == "bf16":
        return 2 * geometry.latent_width
    if layout == "fp8_raw":
        return geometry.latent_width
    if profile.scaled_row_bytes is not None:
        return profile.scaled_row_bytes
    scales = geometry.kv_lora_rank // QUANT_BLOCK * SCALE_BYTES
    return geometry.kv_lora_rank + scales + geometry.qk_rope_head_dim * ROPE_BYTES


def ledger(geometry: Geometry, layout: KvLayout, profile: EngineProfile, layers: int, tokens: int) -> Ledger:
    """The ledger of `tokens` tokens over `layers` full-attention layers of one rank."""
    row = row_bytes(geometry, layout, profile)
    if layout == "fp8_scaled" and profile.scaled_row_bytes is not None:
        return Ledger(
            _FROM_PROFILE,
            layers * row,
            tokens,
            (("full_attention_layers", layers), ("scaled_row_bytes", row)),
        )
    account = _BF16 if layout == "bf16" else _RAW if layout == "fp8_raw" else _SCALED
    terms = (
        ("full_attention_layers", layers),
        ("kv_lora_rank", geometry.kv_lora_rank),
        ("qk_rope_head_dim", geometry.qk_rope_head_dim),
    )
    return Ledger(account, layers * row, tokens, terms)
