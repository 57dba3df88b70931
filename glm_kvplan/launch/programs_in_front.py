"""Programs in front of a server's words, or of a script: what they hand on of the environment, and where ssh's end."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from glm_kvplan.launch.marked_words import Word, split_assignment

CONTAINERS = ("docker", "podman", "nerdctl", "kubectl")
_OUTSIDE = (*CONTAINERS, "ssh", "sudo")  # the environment around them stays outside
# Words with which a program starts what follows without the environment around it.
_CLEANS = {
    "env": ("-i", "-", "--ignore-environment"),
    **dict.fromkeys(("su", "runuser"), ("-", "-l", "--login")),
}
_OTHERS_SSH = ("compute", "vagrant")  # `gcloud compute ssh`, `vagrant ssh`: with options of their own
_ENV_VALUED = ("-u", "--unset", "-C", "--chdir")
# ssh(1): the options without a value, then one with its value, perhaps as the next word.
_SSH_OPTION = re.compile(r"-[1246AaCfGgKkMNnqsTtVvXxYy]*(?:[BbcDEeFIiJLlmOoPpQRSWw](.*))?", re.DOTALL)


def base(word: Word) -> str:
    """A program's name without its folder."""
    return word.text.rsplit("/", 1)[-1]


def remote_command(words: Sequence[Word], names: Callable[[Word], bool]) -> int | None:
    """Where the command begins that ssh is given behind its host; None for words without ssh.

    Where a word among the options is not known, or the options are another program's (`gcloud compute ssh`), the host
    cannot be told from them: it begins at the word that `names` a server, or is what ssh reads.
    """
    ssh = next((at for at in range(len(words)) if _runs_ssh(words, at)), None)
    if ssh is None:
        return None
    at, host, known = ssh + 1, False, True
    while at < len(words):
        option = _SSH_OPTION.fullmatch(words[at].text)
        if option is None and words[at].text != "--":
            if host:
                break
            host, known = True, (words[at].mark is None or "@" in words[at].text) and not names(words[at])
        at += 1 + (option is not None and option[1] == "")
    known = known and (at >= len(words) or words[at].mark is None or names(words[at]))
    if known and (ssh == 0 or base(words[ssh - 1]) not in _OTHERS_SSH):
        return min(at, len(words))
    return next((at for at in range(ssh + 1, len(words)) if names(words[at])), len(words))


def _runs_ssh(words: Sequence[Word], at: int) -> bool:
    """Whether the word is a program: no volume, no assignment, no value of an option or of mpirun's `--mca NAME`."""
    before = [word.text for word in words[max(at - 2, 0) : at]]
    valued = any(re.fullmatch("--[^=]+|-R", text) for text in before[-1:]) or (
        before[:-1] and before[0].endswith("mca")
    )
    return base(words[at]) == "ssh" and not re.search("[:=]", words[at].text) and not valued


def environment_behind(before: Iterable[Word], outer: Mapping[str, Word]) -> dict[str, Word]:
    """The environment after the words in front of the engine's: NAME=value, -e, --env, what starts in one of its own.

    Source: sudo(8), the environment is reset but for what -E and --preserve-env keep; su(1), `-` starts a login shell;
    srun(1), --export without ALL hands on what it lists.
    """
    seen, outside = dict(outer), dict(outer)
    previous = program = ""
    for word in before:
        text = word.text
        if base(word) in _OUTSIDE:
            outside, seen = seen, {}
        if base(word) in (*_OUTSIDE, *_CLEANS, "srun", "sbatch"):
            program = base(word)
        elif program == "env" and not (text.startswith("-") or previous in _ENV_VALUED or split_assignment(text)):
            program = ""  # another program, with options of its own
        if text in _CLEANS.get(program, ()):
            seen = {}
        elif program == "env" and (previous in ("-u", "--unset") or text.startswith("--unset=")):
            seen.pop(text.removeprefix("--unset="), None)
        elif program == "sudo" and re.fullmatch("-[A-Za-z]*E[A-Za-z]*|--preserve-env", text):
            seen = {**outside, **seen}
        listed = text.startswith(("--export=", "--preserve-env="))
        for prefix in ("--env=", "--export=", "--preserve-env=", "-e"):
            if text.startswith(prefix) and len(text) > len(prefix):
                text, previous = text[len(prefix) :], "-e"
                break
        if program in ("srun", "sbatch") and (listed or previous == "--export"):
            listed, previous = True, "-e"
            if "ALL" not in text.split(","):
                outside, seen = seen, {}
        for part in text.split(",") if listed else [text]:
            pair = split_assignment(part)
            if pair is not None:
                seen[pair[0]] = word._replace(text=pair[1])
            elif previous in ("-e", "--env", "-x") and part in outside:
                seen[part] = outside[part]
        previous = word.text
    return seen
