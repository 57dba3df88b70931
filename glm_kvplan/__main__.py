"""`python -m glm_kvplan` is `kvplan`, where the script is not on the PATH."""

from glm_kvplan.cli import main

if __name__ == "__main__":
    main()
