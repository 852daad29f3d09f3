"""The table of a fit: truth where known, start, value, error bars, and how far off."""

from typing import Any


def table_rows(result: dict[str, Any]) -> list[list[str]]:
    """Head and rows of the table of values, as text; without truth where none is known."""
    unknowns = result["unknowns"]
    known = any(u["truth"] is not None for u in unknowns.values())
    rows = [["unknown", *(["truth"] if known else []), "start", "value", "sigma"]]
    total = any(u.get("total_sigma") is not None for u in unknowns.values())
    rows[0] += ["total sigma"] if total else []
    if known:
        rows[0] += ["off by", "in total sigma" if total else "in sigma"]
    for label, u in unknowns.items():
        row = [label]
        if known:
            row.append(_number(u["truth"]))
        row += [_number(u["start"]), _number(u["value"]), _number(u["sigma"], 2)]
        row += [_number(u.get("total_sigma"), 2)] if total else []
        if known:
            row += [_error(u), _in_sigma(u)]
        rows.append(row)
    return rows


def _number(value: float | None, digits: int = 5) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _error(u: dict[str, Any]) -> str:
    """The error in percent of the truth; of a truth of zero, as it is."""
    if u["truth"] is None or u["value"] is None:
        return ""
    error = u["value"] - u["truth"]
    return f"{100.0 * error / abs(u['truth']):+.2f} %" if u["truth"] else f"{error:+.2g}"


def _in_sigma(u: dict[str, Any]) -> str:
    sigma = u.get("total_sigma") or u["sigma"]
    if None in (u["truth"], u["value"]) or not sigma:
        return ""
    return f"{(u['value'] - u['truth']) / sigma:+.1f}"
