"""Seeded damage to bytes and to the arrays of archives."""

from __future__ import annotations

from pathlib import Path

import numpy as np

_TOKENS = [
    b"\0", b"\xff", b"\n", b"\r\n", b",", b"\t", b'"', b"-1", b"0", b"99999999999999999999", b"nan",
    b"inf", b"1e999", b"2147483648", b"<!--", b"-->", b"<row ", b"/>", b"<![CDATA[", b"&#x0;",
    b"&amp;", b"{", b"}", b"[", b"]", b"null", b"true", b"\x1b[31m", b"\xc2\x9b", b"\xed\xa0\x80",
    b"PK\x03\x04", b"\x93NUMPY", b"PAR1", b"7z\xbc\xaf\x27\x1c", b"\x1f\x8b", b"../", b"=1+1",
]  # fmt: skip


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """One to four changes: bytes flipped, cut out, doubled, replaced or cut off."""
    data = bytearray(raw)
    for _ in range(int(rng.integers(1, 5))):
        size = len(data)
        place = int(rng.integers(0, size + 1))
        length = int(rng.integers(1, 1 + min(64, max(1, size))))
        kind = int(rng.integers(0, 6))
        if kind == 0 and size:
            data[min(place, size - 1)] = int(rng.integers(0, 256))
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length]
        elif kind == 3:
            data[place:place] = _TOKENS[int(rng.integers(0, len(_TOKENS)))]
        elif kind == 4:
            token = _TOKENS[int(rng.integers(0, len(_TOKENS)))]
            data[place : place + len(token)] = token
        elif rng.random() < 0.3:
            del data[place:]
    return bytes(data)


def damaged_archive(path: Path, rng: np.random.Generator) -> bool:
    """Change one array of an .npz file so that the file stays a valid archive.

    Returns whether nobody may take what is there now for good: numbers that are not finite, arrays
    of another kind, arrays that nobody asked for.
    """
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name]
    kind = int(rng.integers(0, 9))
    flat = array.reshape(-1)
    garbage = False
    if kind < 3 and array.size:
        place = int(rng.integers(0, array.size))
        odd = [0, 1, -1, 2**31 - 1, -(2**31), 2**62, array.size, np.nan, np.inf]
        value = odd[int(rng.integers(0, len(odd)))]
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            value = 1 if not np.isfinite(value) else min(max(value, limits.min), limits.max)
        garbage = array.dtype.kind == "f" and not np.isfinite(value)
        with np.errstate(over="ignore"):  # half precision has no such numbers
            flat[place] = value
    elif kind == 3:
        arrays[name] = flat[:-1] if array.size else np.zeros(3, dtype=array.dtype)
    elif kind == 4:
        arrays[name] = np.concatenate([flat, flat[:1]])
    elif kind == 5:
        other = str(rng.choice(["c16", "U3", "M8[s]", "V4"]))
        arrays[name] = np.zeros(array.shape, dtype=other)
        garbage = True
    elif kind == 6:
        del arrays[name]
    elif kind == 7:
        arrays["x" * int(rng.integers(1, 9))] = np.zeros(4)
        garbage = True
    else:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(str(rng.choice(["f2", "i1", "u1", "?"])))
    compressed = rng.random() < 0.1
    with path.open("wb") as file:
        (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return garbage or compressed
