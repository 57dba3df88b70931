"""Programs in front of a server's words, or of a script: what they hand on of the environment, and where ssh's end."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from glm_kvplan.launch.marked_words import Word, split_assignment

CONTAINERS = ("docker", "podman", "nerdctl", "kubectl")
_OUTSIDE = (*CONTAINERS, "ssh", "sudo")  # the environment around them stays outside
# Words with which a program starts what follows without the environment around it.
_CLEANS = dict.fromkeys(("su", "runuser"), ("-", "-l", "--login"))
_OTHERS_SSH = ("compute", "vagrant")  # `gcloud compute ssh`, `vagrant ssh`: with options of their own
_ENV_VALUED = ("-C", "--chdir")
# ssh(1): the options without a value, then one with its value, perhaps as the next word.
_SSH_OPTION = re.compile(r"-[1246AaCfGgKkMNnqsTtVvXxYy]*(?:[BbcDEeFIiJLlmOoPpQRSWw](.*))?", re.DOTALL)


def base(word: Word) -> str:
    """A program's name without its folder."""
    return word.text.rpartition("/")[2]


def remote_command(words: Sequence[Word], names: Callable[[Word], bool]) -> int | None:
    """Where the command begins that ssh is given behind its host; None for words without ssh.

    Where a word among the options is not known, or the options are another program's (`gcloud compute ssh`), the host
    cannot be told from them: it begins at the word that `names` a server, or is what ssh reads.
    """
    ssh = _ssh(words)
    if ssh is None:
        return None
    at = ssh + 1
    host = known = False
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


def _ssh(words: Sequence[Word]) -> int | None:
    """Where it is the program: no volume, no assignment, no value of an option or of mpirun's `--mca NAME`."""
    texts = [word.text for word in words]
    for at, (word, option, name) in enumerate(zip(words, ("", *texts), ("", "", *texts), strict=False)):
        if base(word) == "ssh" and not (
            re.search("[:=]", word.text) or re.fullmatch("--[^=]+|-R", option) or name.endswith("mca")
        ):
            return at
    return None


def environment_behind(before: Iterable[Word], outer: Mapping[str, Word]) -> dict[str, Word]:
    """The environment after the words in front of the engine's: NAME=value, -e, --env, what starts in one of its own.

    Source: sudo(8), the environment is reset but for what -E and --preserve-env keep; su(1), `-` starts a login shell;
    srun(1), --export without ALL hands on what it lists.
    """
    seen, outside = dict(outer), dict(outer)
    previous = program = ""
    for word in before:
        text = word.text
        if program == "env -u":
            seen, program = _without(seen, word, text), "env"
            continue
        if base(word) in _OUTSIDE:
            outside, seen = seen, _without(seen, word)
        if base(word) in (*_OUTSIDE, *_CLEANS, "env", "srun", "sbatch"):
            program = base(word)
        elif program == "env" and not (text.startswith("-") or previous in _ENV_VALUED or split_assignment(text)):
            program = ""  # another program, with options of its own
        if program == "env":
            cleans, name = _env_option(text)
            seen = _without(seen, word) if cleans else seen
            seen = _without(seen, word, name) if name else seen
            program = "env -u" if name == "" else program
        elif text in _CLEANS.get(program, ()):
            seen = _without(seen, word)
        elif program == "sudo" and re.fullmatch("-[A-Za-z]*E[A-Za-z]*|--preserve-env", text):
            seen = {**outside, **seen}
        listed = text.startswith(("--export=", "--preserve-env="))
        for prefix in ("--env=", "--export=", "--preserve-env=", "-e"):
            if text.startswith(prefix):
                text, previous = text[len(prefix) :], "-e"
                break
        if program in ("srun", "sbatch") and (listed or previous == "--export"):
            listed, previous = True, "-e"
            if "ALL" not in text.split(","):
                outside, seen = seen, _without(seen, word)
        for part in text.split(",") if listed else [text]:
            pair = split_assignment(part)
            if pair is not None:
                seen[pair[0]] = word._replace(text=pair[1])
            elif previous in ("-e", "--env") and part in outside:
                seen[part] = outside[part]
        previous = word.text
    return seen


def _env_option(text: str) -> tuple[bool, str | None]:
    """Whether an option of env(1) empties the environment, and what it takes away: "" is the next word."""
    short = re.sub("^--unset=?", "-u", re.sub("^--ignore-e[a-z]*$", "-i", text))
    found = re.fullmatch("-([0iv]*)(?:u(.*))?", short, re.DOTALL)
    return (False, None) if found is None else (short == "-" or "i" in found[1], found[2])


def _without(environment: Mapping[str, Word], by: Word, name: str | None = None) -> dict[str, Word]:
    """The environment without a variable, or without any; what a word takes that may not be there is not known."""
    if by.mark is None:
        return {} if name is None else {one: word for one, word in environment.items() if one != name}
    return {one: word._replace(mark=by.mark) if name in (None, one) else word for one, word in environment.items()}
