"""The words that SGLang's flags accept, of all releases together: `word>=0.5.22` came with one, `word<0.5.22` left.

They are the engine's own, in releases 0.5.20 to 0.5.23 (arg_groups/fields/*.py).
"""

ATTENTION = (
    "triton torch_native flex_attention dsa nsa qsa dsv4 compressed fa3 fa4 flashinfer llada2_cfg_flashinfer>=0.5.22 "
    "flashmla trtllm_mla cutedsl_mla tokenspeed_mla trtllm_mha hpc_ops minicpm_flashattn minicpm_flashinfer "
    "aiter wave intel_amx ascend intel_xpu"
)
DSA_DECODE = (
    "flashmla_sparse flashmla_sparse_q8 flashmla_kv flashmla_auto flashinfer_sparse_mla fa3 tilelang triton "
    "aiter trtllm intel_xpu>=0.5.22"
)
DSA_PREFILL = DSA_DECODE + " triton_sparse_mla>=0.5.22"
KDA = "triton cutedsl flashinfer flashkda nvidia_kda ptx_kda helion intel_xpu"
GRAPH = "full breakable tc_piecewise<0.5.22 disabled"
QUANTIZATION = (
    "awq fp8 mxfp8 gptq gptq_marlin awq_marlin bitsandbytes gguf modelopt modelopt_fp8 modelopt_fp4 "
    "nvfp4_online modelopt_mixed petit_nvfp4 w8a8_int8 w8a8_fp8 moe_wna16 w4afp8 mxfp4 auto-round "
    "auto-round-int8 compressed-tensors modelslim mxfp_w4a8 quark quark_int4fp8_moe quark_mxfp4 mlx_q4 mlx_q8 "
    "unquant humming"
)
KV_DTYPE = "auto fp8_e5m2 fp8_e4m3 mxfp8 bf16 bfloat16 nvfp4 fp4_mx_block16 fp4_e2m1<0.5.21"
RUNNERS = (
    "auto deep_gemm triton triton_kernel flashinfer_trtllm experimental_sgl_trtllm flashinfer_trtllm_routed "
    "flashinfer_cutlass flashinfer_mxfp4 flashinfer_cutedsl flashinfer_megamoe cutlass aiter marlin humming "
    "experimental_sgl_marlin lora_cutedsl>=0.5.23 lora_triton>=0.5.23 lora_marlin>=0.5.23 hpc_ops megamoe intel_xpu"
)
A2A = "none deepep mooncake nixl mori ascend_fuseep flashinfer megamoe deepep_v2 pplx ascend_tp flashinfer_megamoe"
STORAGE = (
    "file sim mooncake npu_memcache hf3fs nixl aibrix dynamic eic simm mori shm tensorcast>=0.5.21 seaweedfs>=0.5.22"
)
HOST_LAYOUTS = "layer_first page_first page_first_direct page_first_kv_split page_head"
