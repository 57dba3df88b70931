"""Lines that go on behind a backslash, as Dockerfiles and systemd units have them."""

from collections.abc import Collection, Iterator


def continued_lines(text: str, ignored: Collection[str]) -> Iterator[tuple[int, str]]:
    """Each line with those that it goes on in, a backslash and a newline between them; before it its number, from 0.

    `ignored` are first characters of lines that say nothing and end nothing: "#" of comments, "" of empty lines.
    """
    rows: list[str] = []
    lines = text.splitlines()
    for at, line in enumerate(lines, 1):
        row = line.rstrip()
        if row.lstrip()[:1] in ignored:
            rows += ["\\"] if rows else []
            continue
        rows.append(row)
        if not row.endswith("\\"):
            yield at - len(rows), "\n".join(rows)
            rows = []
    if rows:
        yield len(lines) - len(rows), "\n".join(rows).rstrip("\\\n")
