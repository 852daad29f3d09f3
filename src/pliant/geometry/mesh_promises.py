"""What a mesh file promises against what it holds, before a reader takes its word.

Readers of foreign formats forgive a file that ends early, and take minutes over names of groups
that no shape needs.
"""

import json
import re
import struct

from pliant.core.errors import BadInput

MOST_INSTANCES = 5_000
"""Nodes of a GLB scene; each is a copy of a mesh, and ten bytes ask for it."""

_OBJ_LINES = re.compile(rb"^[ \t]*(?:v|f)[ \t][^\r\n]*", re.MULTILINE)
_TEXT_STL = re.compile(rb"\s*solid\b")
_CORNER = re.compile(rb"vertex[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]*\r?\n")


def checked(data: bytes, suffix: str) -> bytes:
    """The part of a file that its reader needs; BadInput if it is not what it says.

    suffix: the name's ending, ".ply" for example.
    """
    if suffix == ".obj":
        return b"\n".join(_OBJ_LINES.findall(data)) + b"\n"
    if suffix == ".ply":
        _require_ply_lines(data)
    elif suffix == ".off":
        _require_off_lines(data)
    elif suffix == ".stl" and _TEXT_STL.match(data) and b"facet" in data[:2000]:
        return _binary_stl(data)
    elif suffix == ".glb":
        _require_few_instances(data)
    return data


def _require_ply_lines(data: bytes) -> None:
    """A text PLY has one line for each element that its header counts."""
    head, found, body = data.partition(b"end_header")
    if not found or b"format ascii" not in head:
        return  # a reader of binary files counts bytes
    promised, faces, columns = 0, slice(0), 0
    for line in head.splitlines():
        words = line.split()
        if words[:1] == [b"element"]:
            if len(words) != 3 or not words[2].isdigit():
                raise BadInput(f"the header line '{_text(line)}' is no count.")
            columns = 0
            if words[1] == b"face":
                faces = slice(promised, promised + int(words[2][:18]))
            promised += int(words[2][:18])
        elif words[:1] == [b"property"]:
            columns += 1
    rows = [line for line in body.splitlines() if line.strip()]
    _require_rows(len(rows), promised)
    # only where nothing but corners is told of a face: others may have colours and the like
    if columns == 1 and faces.stop == promised and any(b"." in row for row in rows[faces]):
        raise BadInput("the corners of a face are not whole numbers.")


def _require_off_lines(data: bytes) -> None:
    """An OFF file states its vertices and faces, a line each."""
    lines = [line.partition(b"#")[0].strip() for line in data.splitlines()]
    lines = [line for line in lines if line]
    counts = lines[0].split()[1:] if lines else []
    rows = len(lines) - 1
    if not counts and len(lines) > 1:
        counts, rows = lines[1].split(), rows - 1
    if len(counts) < 2 or not all(c.isdigit() for c in counts[:2]):
        raise BadInput("the numbers of vertices and faces are missing in its first lines.")
    _require_rows(rows, sum(int(c[:18]) for c in counts[:2]))


def _require_rows(found: int, promised: int) -> None:
    if found != promised:
        why = "cut off" if found < promised else "damaged"
        raise BadInput(f"{why}: the header promises {promised} lines, and {found} are there.")


def _binary_stl(data: bytes) -> bytes:
    """The corners of a text STL in the binary format; normals, which follow from them, are not."""
    facets = len(re.findall(rb"^\s*facet\b", data, re.MULTILINE))
    corners = _CORNER.findall(data)
    if not re.search(rb"^\s*endsolid\b", data, re.MULTILINE) or 3 * facets != len(corners):
        raise BadInput(f"cut off: {facets} facets have {len(corners)} corners, or there is no end.")
    try:
        numbers = [float(x) for corner in corners for x in corner]
        rows = (
            struct.pack("<12fH", 0.0, 0.0, 0.0, *numbers[k : k + 9], 0)
            for k in range(0, len(numbers), 9)
        )
        return bytes(80) + struct.pack("<I", facets) + b"".join(rows)
    except (ValueError, OverflowError, struct.error) as error:
        raise BadInput(f"a corner is no point ({error}).") from error


def _require_few_instances(data: bytes) -> None:
    if len(data) < 20 or data[:4] != b"glTF":
        raise BadInput("it does not begin as a GLB file.")
    length = struct.unpack("<I", data[12:16])[0]
    if 20 + length > len(data):
        raise BadInput(f"cut off: its first part has {length} bytes, and {len(data) - 20} follow.")
    try:
        tree = json.loads(data[20 : 20 + length])
        nodes = tree.get("nodes", [])
        count = len(nodes)
        parents = [child for node in nodes for child in node.get("children", [])]
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise BadInput(f"its description is damaged ({type(error).__name__}).") from error
    if count > MOST_INSTANCES:
        raise BadInput(f"{count} nodes are more than {MOST_INSTANCES}: join its parts first.")
    if len(parents) != len(set(map(str, parents))) or any(
        k in node.get("children", []) for k, node in enumerate(nodes)
    ):
        raise BadInput("a node is a child twice or of itself: export it again.")


def _text(line: bytes) -> str:
    return line.decode("latin-1").strip()[:60]
