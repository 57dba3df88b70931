"""Many more inputs at full speed: `python fuzz/blind.py TARGET CORPUS COUNT [SEED]`.

Mutations of a corpus that run.py has grown, without the instruments that guide it. Needs nothing but the package.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import watch

LONGEST = 4096


def change(data: bytearray, source: random.Random, corpus: list[bytes]) -> None:
    """One random edit in place."""
    at = source.randrange(len(data) + 1)
    kind = source.randrange(6)
    if kind == 0 and data:
        data[at % len(data)] = source.randrange(256)
    elif kind == 1 and data:
        data[at % len(data)] ^= 1 << source.randrange(8)
    elif kind == 2:
        data[at:at] = source.randbytes(source.randrange(1, 6))
    elif kind == 3:
        del data[at : at + source.randrange(1, 8)]
    elif kind == 4:
        other = source.choice(corpus)
        start = source.randrange(len(other) + 1)
        data[at:] = other[start:]
    else:
        data[at:at] = bytes([source.choice((0, 1, 127, 128, 255))]) * source.randrange(1, 12)


def main(name: str, folder: str, count: int, seed: int = 0) -> None:
    corpus = [path.read_bytes() for path in sorted(Path(folder).iterdir())] or [b""]
    source = random.Random(seed)
    check = watch.Watch(name)
    for _ in range(count):
        data = bytearray(source.choice(corpus))
        for _ in range(1 + source.randrange(5)):
            change(data, source, corpus)
        check(bytes(data[:LONGEST]))
    print(check.worst())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(int, sys.argv[4:]))
