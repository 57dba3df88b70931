"""A script's arguments and options: set, shift, getopts."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.assignments import store
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.lists import some_list
from glm_kvplan.launch.bash.started_commands import Builtin, Started
from glm_kvplan.launch.bash.values import (
    UNSET,
    Scalar,
    first_of,
    known_text,
    mark_of,
    missing,
    plain,
    text_of,
    uncounted,
)

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_OPTIONS = {"e": "errexit", "u": "nounset", "a": "allexport", "f": "noglob"}


def _set(shell: "Interpreter", found: Started) -> Truth:
    words = list(found.words[1:])
    if not words or words[-1].text in ("-o", "+o"):
        shell.printed(missing("$(...)"))
    while words:
        text = words[0].text
        if text == "--" or text[:1] not in ("-", "+"):
            shell.scope.set_arguments(word.value for word in words[text == "--" :])
            return True
        names = [_OPTIONS.get(letter, letter) for letter in text[1:]]
        del words[0]
        if "o" in text and words:
            names.append(words.pop(0).text)
        for name in names:
            shell.scope.set_option(name, text[0] == "-")
            if name == "allexport":
                shell.scope.everything = text[0] == "-"
    return True


def _shift(shell: "Interpreter", found: Started) -> Truth:
    number = found.words[1].text if len(found.words) > 1 else "1"
    if not re.fullmatch("[0-9]{1,4}", number):
        return shell.doubt("`shift`", found.line)
    arguments = shell.scope.arguments
    if uncounted(arguments[: int(number)]):
        shell.scope.set_arguments((some_list("@"),))
        return shell.doubt("`shift`", found.line)
    if int(number) > len(arguments):
        return False
    shell.scope.set_arguments(arguments[int(number) :])
    return True


def _getopts(shell: "Interpreter", found: Started) -> Truth:
    """The next option of the arguments. OPTIND says where it stands; a letter within a word is kept beside it."""
    if len(found.words) < 3:
        return False
    options, name = known_text(found.words[1].value), found.words[2].text
    arguments = tuple(word.value for word in found.words[3:]) or shell.arguments()
    held = shell.get("OPTIND")
    text = known_text(first_of(held, "OPTIND"))
    at = max(1, int(text or 1)) if text is not None and re.fullmatch("[0-9]{0,4}", text) else None
    given = arguments[at - 1] if at is not None and at <= len(arguments) else ()
    if options is None or at is None or mark_of(given) is not None:
        return _some_option(shell, name, found.line)
    letter = shell.option_letter[1] if shell.option_letter[0] is held else 1
    word = text_of(given)
    if letter == 1 and (not word.startswith("-") or len(word) < 2 or word == "--"):
        shell.assign("OPTIND", plain(str(at + (word == "--"))))
        shell.assign("OPTARG", UNSET)
        store(shell, name, plain("?"))
        return False
    option, rest = word[letter], word[letter + 1 :]
    known = option in options and option != ":"
    wants = known and options.partition(option)[2].startswith(":")
    value: Scalar | None = None
    if wants and rest:
        value = plain(rest)
    elif wants and at < len(arguments):
        if uncounted((arguments[at],)):
            return _some_option(shell, name, found.line)
        value, at = arguments[at], at + 1
    silent = options.startswith(":")
    if not known or (wants and value is None):
        shell.assign("OPTARG", plain(option) if silent else UNSET)
        store(shell, name, plain(":" if silent and known else "?"))
    else:
        shell.assign("OPTARG", UNSET if value is None else value)
        store(shell, name, plain(option))
    if wants or not rest:
        at, letter = at + 1, 0
    shell.assign("OPTIND", plain(str(at)))
    shell.option_letter = (shell.get("OPTIND"), letter + 1)
    return True


def _some_option(shell: "Interpreter", name: str, line: int) -> Truth:
    for one in (name, "OPTARG", "OPTIND"):
        shell.assign(one, missing(f"${{{one}}}"))
    return shell.doubt("`getopts`", line)


ARGUMENT_COMMANDS: Mapping[str, Builtin] = {"set": _set, "shift": _shift, "getopts": _getopts}
