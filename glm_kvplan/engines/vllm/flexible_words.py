"""vLLM's own spellings made plain before options are matched: underscores, `-O3`, and keys of JSON flags one by one.

Source: utils/argparse_utils.py:156 at 0.33.0 (FlexibleArgumentParser.parse_args).
"""

import json
from collections.abc import Sequence

from glm_kvplan.engines.vllm.flag_values import read_nested
from glm_kvplan.errors import InputError
from glm_kvplan.launch.marked_words import Word
from glm_kvplan.reading.secret_words import like, option_shown
from glm_kvplan.reading.unreadable import DEEPEST

_LEVEL = "--optimization-level"


def plain_words(words: Sequence[Word]) -> list[Word]:
    """The words vLLM hands to its option parser.

    Keys given one by one (`--speculative-config.method mtp`) become one JSON word at the end, so they replace the
    flag's own JSON rather than complete it. Raises InputError for a key without a value.
    """
    dashed = _dashed(words)
    kept: list[Word] = []
    tables: dict[str, tuple[Word, dict[str, object]]] = {}
    at = 0
    while at < len(dashed):
        word = dashed[at]
        at += 1
        name, equals, text = word.text.partition("=")
        if not name.startswith("-") or "." not in name or _is_number(name):
            kept.append(word)
            continue
        shown, value = option_shown(like(name, word.text)), word._replace(text=like(text, word.text))
        if not equals:
            if at >= len(dashed):
                raise InputError(f"{word.place}: {shown} needs a value; none follows it")
            value = dashed[at]
            at += 1
        if value.undefined:
            raise InputError(f"{value.place}: {shown} is given {value.undefined}, which is not defined here")
        found: object = read_nested(value.text)
        if name.endswith("+"):
            name, found = name[:-1], value.text.split(",")
        flag, *keys = name.split(".")
        if len(keys) > DEEPEST:
            raise InputError(f"{word.place}: {shown[:60]} has a key of more than {DEEPEST} parts")
        place, table = tables.setdefault(flag, (word, {}))
        for key in reversed(keys):
            found = {key: found}
        _merge(table, found)
    for flag, (place, table) in tables.items():
        kept += [place._replace(text=like(flag, place.text)), place._replace(text=json.dumps(table))]
    return kept


def _dashed(words: Sequence[Word]) -> list[Word]:
    found: list[Word] = []
    for at, word in enumerate(words):
        text = word.text
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            head, dot, keys = name.partition(".")
            found.append(word._replace(text=like(head.replace("_", "-") + dot + keys + equals + value, text)))
        elif text.startswith("-O") and text != "-O":
            level = text[3:] if text[2] == "=" else text[2:]
            found += [word._replace(text=_LEVEL), word._replace(text=level)]
        elif text == "-O" and at + 1 < len(words) and words[at + 1].text in ("0", "1", "2", "3"):
            found.append(word._replace(text=_LEVEL))
        else:
            found.append(word)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _merge(table: dict[str, object], update: object) -> None:
    if not isinstance(update, dict):
        return
    for key, value in update.items():
        inside = table.get(key)
        if isinstance(value, dict) and isinstance(inside, dict):
            _merge(inside, value)
        elif isinstance(value, list) and isinstance(inside, list):
            inside += value
        else:
            table[key] = value
