ssh node1 bash -s <<'EOF'
export SGLANG_MAMBA_CONV_DTYPE=float32
sglang serve zai-org/GLM-5.3-Flash --tp 8
EOF
