"""YAML as plain data with the lines of its keys, bounded: what aliases expand to counts, and no node recurses."""

from typing import TYPE_CHECKING, Any, NamedTuple

from glm_kvplan.reading.unreadable import DEEPEST, LARGEST_NUMBER, LONGEST_NUMBER, UnreadableError

if TYPE_CHECKING:
    from yaml import Event, ScalarEvent

KeyPath = tuple[str, ...]  # the keys that lead to a place in a file

MOST_NODES = 200_000  # of all documents together, aliases expanded; 64 characters of text count as one more
_CORE = "tag:yaml.org,2002:"
_MERGE = _CORE + "merge"
_COLLECTIONS = (None, "!", _CORE + "seq", _CORE + "map")
_SCALARS = {_CORE + name: name for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")}


class YamlDocument(NamedTuple):
    """One document: its data, the line (from 1) of every key by the keys that lead to it, and keys given twice."""

    data: Any
    lines: dict[KeyPath, int]
    repeated: tuple[tuple[KeyPath, int], ...]  # a key's path and the line where it stands again
    line: int  # where it starts


def read_yaml(text: str) -> list[YamlDocument]:
    """Every document of a text. Dates are dates, merge keys (`<<`) are merged, the last of two equal keys counts.

    Raises UnreadableError for what is no YAML, tags other than the plain ones, aliases that expand to more than
    200,000 nodes or into themselves, over 64 levels of nesting, numbers of over 100 digits.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    parse: Any = yaml.parse  # untyped in some stubs and typed in others
    reader = _Reader()
    try:
        for event in parse(text, Loader=loader):
            reader.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or "it does not parse")
        raise UnreadableError(problem, mark.line + 1 if mark is not None else None) from None
    except (UnicodeError, RecursionError) as error:
        raise UnreadableError(type(error).__name__) from None
    return reader.documents


class _Open:
    """A collection that is not closed yet. `path` is None inside lists, whose keys have no lines of their own."""

    def __init__(self, anchor: str | None, path: KeyPath | None, size: int) -> None:
        self.anchor, self.path, self.started = anchor, path, size
        self.data: Any = None
        self.key: Any = None
        self.has_key = False
        self.merged: list[Any] = []
        self.lines: dict[Any, int] = {}


class _Reader:
    """Events in, documents out: one step an event, whatever is nested in what."""

    def __init__(self) -> None:
        from yaml.constructor import SafeConstructor
        from yaml.resolver import Resolver

        self.documents: list[YamlDocument] = []
        self.open: list[_Open] = []
        self.size = 0
        self.line = 1
        self.anchors: dict[str, tuple[Any, int] | None] = {}
        self.lines: dict[KeyPath, int] = {}
        self.repeated: list[tuple[KeyPath, int]] = []
        self.resolver, self.constructor = Resolver(), SafeConstructor()

    def take(self, event: "Event") -> None:
        import yaml

        mark: Any = event.start_mark
        line = mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self.anchors, self.lines, self.repeated, self.line = {}, {}, [], line
            case yaml.ScalarEvent():
                size = self.size
                self.grow(1 + len(event.value) // 64, line)
                value = self.scalar(event, line)
                if event.anchor is not None:
                    self.anchors[event.anchor] = (value, self.size - size)
                self.put(value, line, event)
            case yaml.AliasEvent():
                alias = str(event.anchor)
                if alias not in self.anchors:  # its name is not quoted: it may be a password that begins with *
                    raise UnreadableError("an alias of nothing that stands before it", line)
                found = self.anchors[alias]
                if found is None:
                    raise UnreadableError("an alias stands inside what it names", line)
                self.grow(found[1], line)
                self.put(found[0], line)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                if event.tag not in _COLLECTIONS:
                    raise UnreadableError(f"the tag {event.tag[:40]!r} is not read", line)
                self.start(event, line)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self.close(line)

    def grow(self, size: int, line: int) -> None:
        self.size += size
        if self.size > MOST_NODES:
            raise UnreadableError(f"holds more than {MOST_NODES:,} values, aliases written out", line)

    def start(self, event: Any, line: int) -> None:
        import yaml

        if len(self.open) >= DEEPEST:
            raise UnreadableError("nested too deeply", line)
        path: KeyPath | None = ()
        if self.open:
            above = self.open[-1]
            path = (*above.path, str(above.key)) if above.path is not None and above.has_key else None
        entry = _Open(event.anchor, path, self.size)
        entry.data = {} if isinstance(event, yaml.MappingStartEvent) else []
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.open.append(entry)
        self.grow(1, line)

    def close(self, line: int) -> None:
        entry = self.open.pop()
        for merged in entry.merged:  # what stands in the mapping itself wins, then what was merged first
            entry.data = {**merged, **entry.data}
        if entry.anchor is not None:
            self.anchors[entry.anchor] = (entry.data, self.size - entry.started)
        self.put(entry.data, line)

    def put(self, value: Any, line: int, event: "ScalarEvent | None" = None) -> None:
        """A finished value into the collection around it."""
        if not self.open:
            self.documents.append(YamlDocument(value, self.lines, tuple(self.repeated), self.line))
            return
        entry = self.open[-1]
        if isinstance(entry.data, list):
            entry.data.append(value)
        elif not entry.has_key:
            if isinstance(value, dict | list):
                raise UnreadableError("a key is a collection", line)
            entry.key, entry.has_key = (_MERGE if self.merges(event) else value), True
            self.place(entry, line)
        else:
            entry.has_key = False
            if entry.key is _MERGE:
                self.merge(entry, value, line)
            else:
                entry.data[entry.key] = value

    def place(self, entry: _Open, line: int) -> None:
        if entry.key is _MERGE:
            return
        path = (*entry.path, str(entry.key)) if entry.path is not None else None
        if entry.key in entry.lines and path is not None:
            self.repeated.append((path, line))
        else:
            entry.lines[entry.key] = line
            if path is not None:
                self.lines.setdefault(path, line)

    def merge(self, entry: _Open, value: Any, line: int) -> None:
        merged = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) for one in merged):
            raise UnreadableError("<< merges mappings only", line)
        entry.merged += merged

    def merges(self, event: "ScalarEvent | None") -> bool:
        return event is not None and event.value == "<<" and not event.style and event.tag in (None, _MERGE)

    def scalar(self, event: "ScalarEvent", line: int) -> Any:
        """The value of a scalar: text, number, boolean, null or date, as YAML 1.1 has it."""
        from yaml.nodes import ScalarNode

        tag = event.tag
        if tag is None or tag == "!":
            tag = self.resolver.resolve(ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        kind = _SCALARS.get(tag)
        if kind is None:
            raise UnreadableError(f"the tag {tag[:40]!r} is not read", line)
        if kind in ("str", "merge", "value"):
            return event.value
        if kind in ("int", "float") and len(event.value) > LONGEST_NUMBER:
            raise UnreadableError(f"a number of {len(event.value)} characters", line)
        try:
            build = getattr(self.constructor, f"construct_yaml_{kind}")
            value = build(ScalarNode(tag, event.value))
        except (ValueError, KeyError, AttributeError, IndexError, OverflowError):
            raise UnreadableError(f"{event.value[:40]!r} is no {kind}", line) from None
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise UnreadableError("a number beyond 2**256", line)
        return value
