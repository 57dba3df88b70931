"""Foreign text made printable, a form for every kind of output. The renderers call these; nobody else needs to.

Whatever a file name, a model's name, a flag's value or a log may hold: it moves no cursor, hides nothing, starts no
command of a CI system, formats nothing and runs in no spreadsheet. What cannot be shown is written as Python writes it.
"""

import re

from glm_kvplan.errors import one_line

# Control characters, half surrogates, marks that turn or hide the text around them, separators of lines.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\U000e0000-\U000e007f]"
)
_UNSEEN_IN_JSON = re.compile(_UNSEEN.pattern.replace("\x00-\x1f", ""))
_MARKDOWN = re.compile(r"([\\`*{}\[\]<>#|~]|(?<!\w)_|_(?!\w))")
_COMMAND = re.compile(r"##(?=\w*\[)")  # ##[error], ##vso[task.setvariable ...]: a CI system's, anywhere in a line
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str) -> str:
    """On one line, white space as it is but for tabs and line ends, everything unseen written out: `\\x1b`."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    mark = found[0]
    return " " if mark in "\t\n\r" else ascii(mark)[1:-1]


def terminal(text: str) -> str:
    """Of a terminal, which may be a CI system's log."""
    return _COMMAND.sub(r"#\\x23", visible(text)) if "##" in text else visible(text)


def aside(text: str) -> str:
    """A line of kvplan's on standard error."""
    return terminal(f"kvplan: {one_line(text)}")


def json_text(text: str) -> str:
    """JSON that says the same without what moves a cursor or starts a command: such may only stand in its strings."""
    import json

    return _UNSEEN_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text).replace("##", "#\\u0023")


def terminal_line(line: str) -> str:
    """A whole line of a terminal: one that begins with `::` is a command of a CI system's."""
    start = line.lstrip()
    return line[: len(line) - len(start)] + "\\x3a" + start[1:] if start.startswith("::") else line


def markdown(text: str) -> str:
    """On one line of Markdown, formatting nothing; an @ addresses nobody, a # and an address link nothing."""
    text = _MARKDOWN.sub(r"\\\1", " ".join(visible(text).split()))
    return text.replace("@", "@\u200b").replace("&", "&amp;").replace("://", "&#58;//").replace("::", "&#58;:")


def markdown_lines(text: str) -> str:
    """Lines of code in Markdown, which may be printed."""
    return "\n".join(terminal_line(terminal(line)) for line in text.split("\n"))


def markdown_code(text: str) -> str:
    """A span of code in Markdown, also within a table."""
    shown = " ".join(visible(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`" if shown else ""


def xml(text: str) -> str:
    """For a serializer of XML, HTML or SVG, which escapes the rest; line ends stay."""
    return "\n".join(visible(line) for line in text.split("\n"))


def cell(text: str) -> str:
    """A cell of CSV that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def github(text: str) -> str:
    """The message of a GitHub workflow command."""
    return xml(text).replace("%", "%25").replace("\n", "%0A")


def github_property(text: str) -> str:
    """A property of a GitHub workflow command: a file, a title."""
    return github(text).replace(":", "%3A").replace(",", "%2C")


def sarif(text: str) -> str:
    """A message of SARIF, whose brackets would be links."""
    return xml(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
