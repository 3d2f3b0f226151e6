"""Writes a wheel once more, with the smallest DEFLATE streams that Zopfli finds: python smaller.py WHEEL

It has the same files with the same bytes; only their compressed form differs.
"""

import os
import sys
import zipfile
import zlib

import zopfli.zlib


class Compressor:
    """Compresses a whole file at once, in place of `zlib.compressobj`."""

    def __init__(self, *_: int) -> None:
        self.data = bytearray()

    def compress(self, data: bytes) -> bytes:
        self.data += data
        return b""

    def flush(self) -> bytes:
        # Without the two bytes before a stream of zlib and the checksum behind it, which the archive has itself.
        return zopfli.zlib.compress(bytes(self.data), numiterations=5)[2:-4]


def main(wheel: str) -> None:
    new = wheel + ".new"
    zlib.compressobj = Compressor  # type: ignore[assignment]
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(new, "w") as after:
        for entry in before.infolist():
            after.writestr(entry, before.read(entry))
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(new) as after:
        if before.namelist() != after.namelist() or any(before.read(name) != after.read(name) for name in before.namelist()):
            sys.exit(f"{new}: differs from {wheel}")
    if os.path.getsize(new) >= os.path.getsize(wheel):
        sys.exit(f"{new}: is not smaller than {wheel}")
    os.replace(new, wheel)


if __name__ == "__main__":
    main(sys.argv[1])
