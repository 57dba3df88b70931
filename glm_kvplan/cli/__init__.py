"""The command line: one file a command, loaded only when it is called. No arithmetic in here."""

import gc

DEPLOYMENT_PANEL = "Model, engine and GPU"  # of the help: options that say what is planned
WORDS = "glm_kvplan.words"  # of a context: what stands behind the command's name

# By what they are for; name: what `kvplan --help` says of it. The function is `glm_kvplan.cli.<name>.<name>`.
PANELS = {
    "Plan": {
        "estimate": "What the caches cost: per token, slot and request, and in total.",
        "solve": "What the engine will size on a GPU, what binds, what stays free.",
        "advise": "Flags that serve a workload, proved by solving them.",
        "sweep": "A deployment over any axes: every point sized, and the best.",
        "report": "One page that shows a plan to people; or one chart.",
    },
    "Hold against reality": {
        "init": "A first deployment file from a launch command.",
        "check": "Deployment files against what they expect: for CI.",
        "diff": "What changes between two deployments, releases or GPUs.",
        "reconcile": "A boot log or a running server against the plan.",
        "validate": "Allocate the pools, and compare to the byte.",
    },
    "Understand": {
        "explain": "Where everything lies, and nine misreadings, in your numbers.",
        "resolve": "Every flag that touches memory: its value, and why.",
        "pools": "Every tensor of one rank: shape, dtype, bytes, who pays.",
        "info": "What is known: engines, GPUs, the model, the file's schema.",
    },
}
COMMANDS = {name: text for commands in PANELS.values() for name, text in commands.items()}


def main(arguments: list[str] | None = None) -> None:
    """Run `kvplan`. Exit code 0: answered; 1: answered, and the answer is no; 2: the input cannot be used.

    Nothing is collected until the command runs: what imports make stays, and looking for garbage in it takes a tenth
    of the time to a short answer.
    """
    gc.disable()
    try:
        from glm_kvplan.cli.app import run

        run(arguments)
    finally:
        gc.enable()
