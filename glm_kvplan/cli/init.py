"""`kvplan init`: a first deployment file from a launch command."""

import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from glm_kvplan.cli.answering import note, write_answer
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, flags_of, plan_of, sources_of
from glm_kvplan.cli.workload_options import WORKLOAD, Confidence, Lengths, read_demand
from glm_kvplan.engines.protocol import Plan
from glm_kvplan.engines.saved_plan import engine_key, expected_of, plan_document, save, to_yaml
from glm_kvplan.errors import InputError
from glm_kvplan.reading.guarded_file import inside
from glm_kvplan.reading.secret_words import without_userinfo
from glm_kvplan.show.printable import aside
from glm_kvplan.workload import Demand

_STDOUT = "-"


@takes(*DEPLOYMENT)
def init(
    ctx: typer.Context,
    context: Lengths = None,
    concurrency: Annotated[
        str | None,
        typer.Option(
            "--concurrency", help="Requests at once, over the whole deployment.", rich_help_panel=WORKLOAD, metavar="N"
        ),
    ] = None,
    confidence: Confidence = "0.99",
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write (- prints it).", metavar="FILE")
    ] = "serve.kvplan.yaml",
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> int:
    """Write a first deployment file for `kvplan check`, and check it.

    Of a launch command after -- it has the flags that touch memory; with --launch FILE it names the file. The load
    (--context, --concurrency) is what it expects. Exit code 1: the deployment does not hold it.

    Example: kvplan init --gpu h200 --context 64k --concurrency 32 -- sglang serve zai-org/GLM-5.3-Flash --tp 4
    """
    plan = plan_of(ctx, every_engine=True)
    if ctx.obj["launch"] is None and sources_of(ctx)[0].launch is None and not flags_of(ctx):
        raise InputError("nothing is launched: give --launch FILE, the launch command after --, or the engine's flags")
    load = None if context is concurrency is None else read_demand(plan, context, concurrency, 0, confidence)
    asked, _ = sources_of(ctx)
    document = plan_document(plan, load) if asked.launch is None else _naming(ctx, plan, load, output)
    if asked.engine is not None and asked.engine.endswith(".toml"):
        document["engine"] = _beside(asked.engine, output, "--engine")
    if plan.gpu_assumed:
        note(ctx, f"no --gpu is given: {plan.gpu.name} is written; put your card's name there")
    if load is None:
        note(ctx, "no load is given: the file expects that the server starts; --context and --concurrency say more")
    if asked.launch is None and plan.given.checked:
        note(ctx, "flags that move no memory are not in the file; --launch FILE names a file that has them")
    text = to_yaml(document)
    if output == _STDOUT:
        print(text, end="")
        return _checked("stdout", text, sys.stderr)
    if Path(output).suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"--output {output}: a deployment file is written as YAML; call it NAME.kvplan.yaml")
    if asked.launch is not None and Path(output).exists() and Path(output).samefile(asked.launch):
        raise InputError(f"--output {output}: is the launch's own file; give another name")
    save(output, text, force=force, option="--output")
    print(aside(f"wrote {without_userinfo(output)}"), file=sys.stderr)
    return _checked(output)


def _checked(path: str, text: str | None = None, stream: TextIO | None = None) -> int:
    """What `kvplan check` says of the file, or of its text where it is not written."""
    from glm_kvplan.answers.check.check_answer import answer_check
    from glm_kvplan.answers.check.check_page import check_page
    from glm_kvplan.answers.check.checking import check_file

    answer = answer_check([check_file(path, text=text)])
    write_answer("check", answer, lambda: check_page(answer), "text", stream)
    return answer.exit_code


def _naming(ctx: typer.Context, plan: Plan, load: Demand | None, output: str) -> dict[str, object]:
    """A file that names the launch's own file, with what the command line says beside it."""
    asked, _ = sources_of(ctx)
    if asked.launch == _STDOUT:
        raise InputError("--launch -: a deployment file names the launch's file; save it beside the deployment file")
    if asked.revision is not None and asked.model is None:
        raise InputError("--revision goes with --model here: the launch file says which model it serves")
    given = dict(assignment.partition("=")[::2] for assignment in asked.values or ())
    switches = dict(assignment.partition("=")[::2] for assignment in asked.environment or ())
    found: dict[str, object] = {
        "model": asked.model,
        "revision": asked.revision,
        "engine": engine_key(plan),
        "gpu": plan.gpu.name,
        "launch_file": _beside(str(asked.launch), output, "--launch"),
        "container": asked.container,
        "set": given,
        "flags": flags_of(ctx),
        "environment": switches,
        "expect": expected_of(load),
    }
    return {name: value for name, value in found.items() if value not in (None, {})}


def _beside(name: str, output: str, option: str) -> str:
    """A file as the deployment file names it. Raises InputError outside of its folder: check opens nothing there."""
    folder = Path() if output == _STDOUT else Path(output).parent
    try:
        return inside(Path(), name, name).relative_to(folder.resolve()).as_posix()
    except (InputError, ValueError):
        raise InputError(
            f"{option} {name} lies outside the folder of {output}, where check opens no file; --output beside it"
        ) from None
