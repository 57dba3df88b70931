"""How long the contexts of a workload are: one length, a mix, or a histogram file."""

import re
from collections.abc import Callable, Iterable
from math import gcd, lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.quantile import likely_draws, quantile_of_sum
from glm_kvplan.reading.guarded_file import read_text
from glm_kvplan.reading.json_text import read_json
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.units import LARGEST_COUNT, is_count, parse_count

if TYPE_CHECKING:
    from fractions import Fraction  # with decimals: only a mix needs them

MOST_BINS = 20_000
MOST_NAMED = 4
LARGEST_FILE = 16 << 20
LEAST_SHARE, LARGEST_SHARE = 0.5, 0.9999  # of the time that can be promised
SHARE = re.compile(r"\d{1,20}(\.\d{1,20})?")
PERCENT = re.compile(r"(\d{1,3}(\.\d{1,20})?)%")
_ROW = re.compile(r"([^\s,;]++)(?:\s*+[,;]\s*+|\s++)([^\s,;]++)")


class Contexts(NamedTuple):
    """Context lengths (prompt and output together, in tokens), longest first, with whole-number weights.

    `confidence` is the share of the time for which something is promised, when each request draws its length at
    random; 0 promises the shares themselves: a mean.
    """

    lengths: tuple[int, ...]
    weights: tuple[int, ...]
    confidence: float = 0.99

    @property
    def as_mean(self) -> "Contexts":
        """The same, promised for the mean alone."""
        return self._replace(confidence=0.0)

    @property
    def longest(self) -> int:
        return self.lengths[0]

    @property
    def mean(self) -> float:
        """Mean context length in tokens."""
        return sum(n * w for n, w in zip(self.lengths, self.weights, strict=True)) / sum(self.weights)

    @property
    def text(self) -> str:
        """`131,072`; `80% 8,192, 20% 131,072`, shortest first; `40 lengths up to 131,072`."""
        if len(self.lengths) == 1:
            return f"{self.longest:,}"
        if len(self.lengths) > MOST_NAMED:
            return f"{len(self.lengths):,} lengths up to {self.longest:,}"
        whole = sum(self.weights)
        pairs = [
            f"{100 * weight / whole:.3g}% {length:,}" for length, weight in zip(self.lengths, self.weights, strict=True)
        ]
        return ", ".join(reversed(pairs))

    @property
    def shares(self) -> dict[str, int | float]:
        """The share of each length, shortest first: whole numbers as small as can be, as `contexts` takes them."""
        least = gcd(*self.weights)
        shares: list[int | float] = [weight // least for weight in self.weights]
        if max(shares) > LARGEST_COUNT:  # of shares with many digits
            shares = [weight / sum(self.weights) for weight in self.weights]
        return {str(length): share for length, share in reversed(list(zip(self.lengths, shares, strict=True)))}

    def shared(self, requests: int) -> tuple[int, ...]:
        """How many of `requests` requests have each length: never fewer of the long ones than their share.

        The number of requests at least as long as a length is that share of `requests`, rounded up; so one request
        alone is the longest, and one more request never shortens another.
        """
        whole, seen, given = sum(self.weights), 0, 0
        found = []
        for weight in self.weights:
            seen += weight
            upto = -(-requests * seen // whole)
            found.append(upto - given)
            given = upto
        return tuple(found)

    def total(self, requests: int, size: Callable[[int], int]) -> int:
        """What `requests` requests take at once, where a length takes `size(length)`: no more, with `confidence`."""
        if len(self.lengths) == 1:
            return requests * size(self.lengths[0])
        if self.confidence:
            sizes = tuple(map(size, self.lengths))
            return quantile_of_sum(sizes, self.weights, requests, self.confidence) if requests else 0
        return sum(n * size(length) for length, n in zip(self.lengths, self.shared(requests), strict=True))

    def tokens(self, requests: int, page_size: int, reserve: int = 0) -> int:
        """Token places `requests` requests fill: each its context and `reserve` ahead of it, in whole pages."""
        return self.total(requests, lambda length: -(-(length + reserve) // page_size) * page_size)

    def likely_requests(self, tokens: float, beside: float = 0.0) -> int:
        """About how many requests fill so many tokens, where each takes `beside` more: a guess, to be tried."""
        sizes = tuple([length + beside for length in self.lengths])
        return likely_draws(sizes, self.weights, tokens, self.confidence)


def contexts(pairs: "Iterable[tuple[int, Fraction | int]]") -> Contexts:
    """Contexts of (length, share) pairs; shares need not add up to anything, equal lengths are joined."""
    shares: dict[int, Fraction | int] = {}
    for length, share in pairs:
        if not 0 < length <= LARGEST_COUNT:
            raise InputError(f"context length {length} must lie between 1 and 2**48")
        if share < 0:
            raise InputError(f"the share of context length {length} is negative")
        if share:
            shares[length] = shares.get(length, 0) + share
    if not shares:
        raise InputError("no context length has a share above 0")
    if len(shares) > MOST_BINS:
        raise InputError(f"{len(shares)} different context lengths; join them into at most {MOST_BINS}")
    ordered = sorted(shares, reverse=True)
    scale = lcm(*{share.denominator for share in shares.values()})
    return Contexts(tuple(ordered), tuple(int(shares[length] * scale) for length in ordered))


def one_length(length: int) -> Contexts:
    """Requests of one length."""
    return contexts([(length, 1)])


def parse_contexts(text: str) -> Contexts:
    """`131072`, `128k`, a mix `0.8:8k,0.2:128k` (or `80%:8k`) whose shares add up to 1, or a histogram file's path.

    Raises InputError for anything else.
    """
    text = text.strip()
    if is_count(text):
        return one_length(parse_count(text, "--context"))
    if ":" not in text and ("." in text.rstrip("kKmM.") or "/" in text) and Path(text).suffix:
        return read_histogram(Path(text))
    if ":" not in text:
        if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
            plain = text[:60].replace(",", "")
            raise InputError(f"--context {text[:60]}: write {plain}; a mix has shares, 0.8:8k,0.2:128k")
        if "," in text and all(map(is_count, text.split(","))):
            raise InputError(
                f"--context {text[:60]}: give each length its share, as in 0.8:8k,0.2:128k; kvplan sweep "
                f"--over context={text[:60]} takes one after the other"
            )
        return one_length(parse_count(text, "--context"))
    if _is_file(text):
        return read_histogram(Path(text))
    return parse_shares(text, "--context")


def parse_shares(text: str, name: str) -> Contexts:
    """A mix `0.8:8k,0.2:128k` (or `80%:8k`) whose shares add up to 1; `name` stands in errors. Opens no file."""
    from fractions import Fraction

    pairs = []
    for part in text.split(","):
        share, _, length = part.partition(":")
        percent = PERCENT.fullmatch(share.strip())
        if percent is None and not SHARE.fullmatch(share.strip()):
            raise InputError(f"{name}: {part.strip()[:60]!r} is not share:length, such as 0.8:8k or 80%:8k")
        value = Fraction(percent[1]) / 100 if percent else Fraction(share.strip())
        pairs.append((parse_count(length, name), value))
    total = sum((share for _, share in pairs), Fraction(0))
    if abs(total - 1) > Fraction(1, 100):
        raise InputError(f"{name}: the shares of {text[:60]!r} add up to {float(total):g}, not 1")
    return contexts(pairs)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # a name no file can have
        return False


def read_histogram(path: Path) -> Contexts:
    """A histogram file: JSON (`{"8192": 40}`, `[[8192, 40]]` or a list of lengths), or lines `length count`.

    Lines may use commas; a first line of words and lines that start with # are skipped; a count left out is 1.
    Raises InputError, naming file and line.
    """
    from fractions import Fraction

    text = read_text(path, str(path), most=LARGEST_FILE, advice="join the lengths into fewer bins")
    if path.suffix.lower() == ".json":
        return contexts(_json_pairs(path, text))
    pairs: list[tuple[int, Fraction]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        row = _ROW.fullmatch(line)
        first, second = row.groups() if row else (line, "1")
        if not pairs and not first[0].isdigit():
            continue  # the header
        place = f"{path}:{number}"
        if not SHARE.fullmatch(second):
            raise InputError(f"{place}: {second!r} is not a count")
        pairs.append((parse_count(first, place), Fraction(second)))
    return contexts(pairs)


def _json_pairs(path: Path, text: str) -> "list[tuple[int, Fraction]]":
    from fractions import Fraction

    try:
        data, _ = read_json(text)
    except UnreadableError as error:
        raise InputError(f"{path}: {error.problem}") from None
    rows: list[Any] = list(data.items()) if isinstance(data, dict) else data if isinstance(data, list) else []
    pairs = []
    for row in rows:
        length, count = row if isinstance(row, list | tuple) and len(row) == 2 else (row, 1)
        if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count <= LARGEST_COUNT:
            raise InputError(f"{path}: {count!r} is not a count of requests")
        pairs.append((parse_count(str(length), str(path)), Fraction(str(count))))
    return pairs
