"""The errors a caller can meet; every one is a single line that says what, where and what to do."""

_LONGEST_WORD, _LONGEST_LINE = 300, 3000  # characters of a message


def one_line(text: str) -> str:
    """A message as one printable line, whatever foreign text it quotes: no escape reaches a terminal or a CI's log.

    Of a word of more than 300 characters, and of a line of more than 3000, the middle is left out.
    """
    if len(text) > _LONGEST_WORD:
        text = " ".join(_cut(word, _LONGEST_WORD) for word in text.split(" "))
        text = _cut(text, _LONGEST_LINE)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else "?" for char in text)


def _cut(text: str, most: int) -> str:
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]}...{text[-half:]}"


class KvplanError(Exception):
    """Base of every error this package raises on purpose. `str(error)` is one printable line.

    `is_no`: it is an answer, that the server does not start; otherwise there is none, the input cannot be used.
    """

    is_no = False

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class InputError(KvplanError, ValueError):
    """The input cannot be used: a bad file, flag, size, name or layout."""


class RefusedError(KvplanError):
    """The engine itself would refuse this deployment at start-up.

    `source` is where the engine refuses (`file:line at version`), empty where it is this package's reading.
    """

    is_no = True

    def __init__(self, reason: str, source: str = "") -> None:
        super().__init__(f"{reason} ({source})" if source else reason)
        self.reason = reason
        self.source = source
