import os
os.system("sglang serve zai-org/GLM-5.3-Flash --tp 8 --page-size 64")
