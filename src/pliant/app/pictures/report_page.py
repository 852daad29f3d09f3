"""The report's page: HTML with its pictures inside, so that one file is all there is."""

import base64
import html
from pathlib import Path
from typing import Any

from pliant.app.fitted.fit_table import table_rows
from pliant.app.fitted.fits import FitRun
from pliant.app.pictures.report_figures import spoken
from pliant.core.lengths import length

_STYLE = """
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif;
  color: #22272e; background: #fff; max-width: 1080px; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.75rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.6rem 0 .3rem; }
p { margin: .3rem 0 .8rem; max-width: 46rem; } .faint { color: #6b7480; }
table { border-collapse: collapse; margin: 1.2rem 0; font-variant-numeric: tabular-nums; }
th { font-weight: 500; color: #6b7480; text-align: right; border-bottom: 1.5px solid #aab2bb; }
td { text-align: right; border-bottom: 1px solid #e3e7ec; } th, td { padding: .4rem .9rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.value { font-weight: 650; } img { max-width: 100%; height: auto; display: block; }
ul.advice { background: #fff7ec; border-left: 4px solid #e07b28; padding: .7rem 1rem .7rem 2rem; }
ul.failed { background: #fdeeee; border-left: 4px solid #c0392b; padding: .7rem 1rem .7rem 2rem; }
p.failed { color: #c0392b; font-weight: 650; }
"""


def page(run: FitRun, made: list[tuple[Path, str, str]]) -> str:
    """The whole page; made: (picture, heading, caption) of each section."""
    r = run.result
    name = r["title"] or "scene"
    text = html.escape
    rows = table_rows(r)
    head = "".join(f"<th>{text(c)}</th>" for c in rows[0])
    value_column = rows[0].index("value")
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="value">{text(c)}</td>' if i == value_column else f"<td>{text(c)}</td>"
            for i, c in enumerate([spoken(row[0]), *row[1:]])
        )
        + "</tr>"
        for row in rows[1:]
    )
    advice = "".join(f"<li>{text(line)}</li>" for line in r["advice"])
    failed = "".join(f"<li>{text(line)}</li>" for line in r.get("reasons", []))
    if failed:
        failed = f'<p class="failed">This fit is no success.</p><ul class="failed">{failed}</ul>'
    ended = "converged" if r["converged"] else "no success"
    sections = "".join(
        f"<h2>{text(heading)}</h2><p>{text(caption)}</p>"
        f'<img alt="{text(heading)}" src="data:image/png;base64,'
        f'{base64.b64encode(path.read_bytes()).decode("ascii")}">'
        for path, heading, caption in made
    )
    timings = [
        ("fit", f"{r['seconds']:.1f} s in {r['iterations']} iterations, {ended}"),
        ("a time step", f"{r['forward_ms']:.1f} ms forward, {r['adjoint_ms']:.1f} ms back"),
        ("body", f"{r['nodes']:,} nodes, {r['cells']:,} cells, {r['steps']} steps"),
        (
            "observations",
            f"{r['points']:,} points in {r['frames']} frames{_by_cameras(r)}",
        ),
        (
            "residuals",
            f"{length(r['rms'] or 0.0)}; noise {length(r['noise'] or 0.0)}, that is "
            f"{(r['noise'] or 0.0) / run.scene.body.spacing:.2g} cells",
        ),
    ]
    facts = "".join(f"<tr><td>{text(k)}</td><td>{text(v)}</td></tr>" for k, v in timings)
    said = (
        f'<ul class="advice">{advice}</ul>'
        if advice
        else ('<p class="faint">The data see all unknowns; nothing to advise.</p>')
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Pliant: {text(name)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{text(name)}: what it is made of</h1><p class="faint">Recovered by Pliant from '
        f"{r['frames']} frames{_by_cameras(r, 'depth ')}.</p>"
        f"<table><tr>{head}</tr>{body}</table>{failed}{said}{sections}"
        f"<h2>What it took</h2><table>{facts}</table></body></html>\n"
    )


def _by_cameras(r: dict[str, Any], kind: str = "") -> str:
    """Who filmed; a recording of points has no cameras."""
    count = r["cameras"]
    if r.get("tracked"):
        return f" of {len(r['tracked'])} tracked points"
    return f" of {count} {kind}camera{'s' if count != 1 else ''}" if count else ""
