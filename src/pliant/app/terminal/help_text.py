"""The help of a command: at most 80 columns wide, options in groups, what each does beside it."""

import textwrap
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

WIDEST = 80
LEFT = 26
"""Columns of the names of options; longer ones have a line of their own."""

FEW = 15
"""Options up to which a list needs no groups."""

GROUPS: dict[str, tuple[str, ...]] = {
    "The recording": ("observations", "units", "frame_rate", "crop", "register_film"),
    "What is sought": (
        "unknown", "prior", "bound", "density_known_to", "field", "field_weight", "field_parts",
        "materials", "fit_file", "over", "fit", "span", "points",
    ),
    "The film, where SCENE is filmed": (
        "cameras", "pixels", "noise", "seed", "outliers", "dropped", "quantisation", "kind",
        "layout",
    ),
    "The way there": (
        "cost", "loss", "optimiser", "max_iterations", "search", "multi_start", "coarse_to_fine",
        "discretisation", "memory_limit", "tolerance", "iterations",
    ),
    "The picture": (
        "style", "colour", "slice_axis", "slice_at", "slice_values", "mesh", "fit_mesh", "own",
        "time", "seconds", "width", "height", "samples", "azimuth", "elevation",
    ),
    "The body": ("steps", "shape", "shape_units", "spacing", "cells_across"),
    "The result": ("out", "every", "pictures", "report", "overwrite", "as_json"),
    "The machine": ("device", "threads"),
}  # fmt: skip
"""Options by heading; those of no group stand first."""

KINDS = {int: "N", float: "X"}
"""What stands for a value that has no name of its own; WORD for the others."""


class HelpfulCommand(TyperCommand):
    """A command whose help is laid out here."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Usage, what it does, arguments, options."""
        formatter.width = min(formatter.width, WIDEST)
        arguments: list[Any] = [p for p in self.params if p.param_type_name == "argument"]
        words = " ".join(_argument(p) for p in arguments)
        formatter.write(f"Usage: {ctx.command_path} {words} [OPTIONS]\n".replace("  ", " "))
        for paragraph in (self.help or "").split("\n\n"):
            plain = " ".join(paragraph.split())
            formatter.write("\n" + _wrapped(plain, indent=2) + "\n")
        told = [(_argument(p), p.help or "") for p in arguments if p.help]
        options = _shown_options(self, ctx)
        for heading, rows in [("Arguments", told), *_grouped(options)]:
            if rows:
                formatter.write(f"\n{_bold(heading)}:\n")
                formatter.write("".join(_row(left, right) for left, right in rows))


class HelpfulGroup(TyperGroup):
    """The commands by name, and what each does."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Usage, commands, options."""
        formatter.write(f"Usage: {ctx.command_path} COMMAND ...\n\n")
        formatter.write(_wrapped(self.help or "", indent=2) + "\n")
        commands = [(name, self.commands[name].help or "") for name in self.list_commands(ctx)]
        options = [_option(p) for p in _shown_options(self, ctx)]
        for heading, rows, left in (("Commands", commands, 19), ("Options", options, LEFT)):
            formatter.write(f"\n{_bold(heading)}:\n")
            formatter.write("".join(_row(a, b, left=left) for a, b in rows))
        formatter.write(f"\n{ctx.command_path} COMMAND --help tells more of one of them.\n")


def _shown_options(command: Any, ctx: Any) -> list[Any]:
    every = [p for p in command.get_params(ctx) if p.param_type_name == "option"]
    return [p for p in every if not p.hidden]


def _grouped(options: list[Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Rows of names and texts under their headings; a short list has one."""
    if len(options) <= FEW:
        return [("Options", [_option(p) for p in options])]
    home = {name: heading for heading, names in GROUPS.items() for name in names}
    found: dict[str, list[Any]] = {"Options": [], **{heading: [] for heading in GROUPS}}
    for p in options:
        found[home.get(p.name or "", "Options")].append(p)
    found["The machine"] += [p for p in found["Options"] if p.name == "help"]
    found["Options"] = [p for p in found["Options"] if p.name != "help"]
    return [(heading, [_option(p) for p in ps]) for heading, ps in found.items()]


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or (parameter.name or "").upper()).strip("[].")
    name = name if parameter.nargs == 1 else f"{name}..."
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> tuple[str, str]:
    """Name with its kind of value, and what it does with its default."""
    name = ", ".join(sorted(parameter.opts, key=len))
    if parameter.secondary_opts:
        name += " / " + ", ".join(parameter.secondary_opts)
    elif not parameter.is_flag:
        kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", str)
        name += " " + (parameter.metavar or KINDS.get(kind, "WORD"))
    text, default = parameter.help or "", parameter.default
    if callable(default) or default in (None, (), [], "", False) and default != 0.0:
        return name, text
    if parameter.is_flag:
        chosen = parameter.opts if default else parameter.secondary_opts
        return name, f"{text} [{chosen[0]}]" if chosen and parameter.secondary_opts else text
    shown = " ".join(map(str, default)) if isinstance(default, list | tuple) else f"{default}"
    return name, f"{text} [{shown}]".strip()


def _row(name: str, text: str, *, left: int = LEFT) -> str:
    body = _wrapped(text, indent=left + 2)
    if len(name) + 2 > left:
        return f"  {name}\n{body}\n"
    return f"  {name:<{left}}{body[left + 2 :]}\n"


def _wrapped(text: str, *, indent: int) -> str:
    margin = " " * indent
    return textwrap.fill(
        text, WIDEST - 1, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )


def _bold(text: str) -> str:
    return typer.style(text, bold=True)
