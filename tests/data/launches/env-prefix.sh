CUDA_VISIBLE_DEVICES=0,1,2,3 SGLANG_MAMBA_CONV_DTYPE=float32 nohup \
  sglang serve zai-org/GLM-5.3-Flash --tensor-parallel-size 4 > server.log 2>&1 &
