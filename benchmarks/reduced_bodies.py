"""A reduced body against its own full one: time of a step, preparation and error, in one process.

    python benchmarks/reduced_bodies.py [--across 16] [--seconds 2] [--domains 5]

A clamped beam is let go under its weight, damped: `across` cells in each direction of the section.
The full step and the reduced one are timed alternately in chunks of the same run, the best of each.
"""

import argparse
import json
from time import perf_counter

import numpy as np

import pliant as pl
from pliant.dynamics.march import march


def scene(across, modulus, dt, law, **model):
    width = 0.2
    body = pl.GridBody(pl.shapes.box(size=(5.0 * width, width, width)), width / across)
    return pl.Scene(
        body, pl.Material(modulus, 0.3, 1000.0, mass_damping=1.0), law=law,
        fixed=[pl.Fixed(pl.shapes.box(center=(-2.5 * width, 0, 0), size=(1e-3, 1, 1)))],
        integrator=pl.GeneralisedAlpha(dt), **model,
    )  # fmt: skip


def run(made, steps):
    """Displacements at some frames, seconds of the steps alone, and of what carries them."""
    model = made.make_model()
    state, found, took = model.initial_state(), [], []
    walk = march(model, state, until=steps)
    for _ in range(steps):
        begin = perf_counter()
        step = next(walk)
        took.append(perf_counter() - begin)
        if step.number % 10 == 0:
            found.append(model.carrier.apply(step.after)[0].copy())
    return model, np.array(found), np.array(took)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--across", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--dt", type=float, default=0.01)
    parser.add_argument("--modulus", type=float, default=1e6)
    parser.add_argument("--domains", type=int, default=5)
    parser.add_argument("--cubature", type=float, default=0.042)
    parser.add_argument("--law", default=None)
    parser.add_argument("--modes", type=int, default=0)
    asked = parser.parse_args()
    steps = int(round(asked.seconds / asked.dt))
    base = (asked.across, asked.modulus, asked.dt, asked.law)
    full_scene = scene(*base)
    _, full, full_took = run(full_scene, steps)
    kinds = [("reduced", {"domains": asked.domains, "cubature": asked.cubature})]
    if asked.modes:
        kinds.append(("modal", {"modes": asked.modes, "cubature": asked.cubature}))
    for name, numbers in kinds:
        made = scene(*base, model=name, numbers=numbers)
        begin = perf_counter()
        made.make_model()
        prepared = perf_counter() - begin
        model, mine, took = run(made, steps)
        off = np.sqrt(np.mean(np.square(mine - full)) / np.mean(np.square(full)))
        print(json.dumps({
            "model": name, "cells": len(made.body.cells), "nodes": len(made.body.nodes),
            "numbers": model.size, "points": len(model.reduction.points),
            "training_error": round(model.reduction.report.get("training_error", 0.0), 4),
            "preparation_s": round(prepared, 2),
            "full_step_ms": round(1e3 * float(np.median(full_took)), 2),
            "step_ms": round(1e3 * float(np.median(took)), 3),
            "mean_step_ms": round(1e3 * float(took.mean()), 3),
            "ratio": round(float(full_took.sum() / took.sum()), 1),
            "error": round(float(off), 4), "largest": round(float(np.abs(full).max()), 3),
        }))  # fmt: skip


if __name__ == "__main__":
    main()
