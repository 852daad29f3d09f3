"""Registers that layers above fill: when they are first read, and once."""

from pliant.core import later


def test_whoever_has_something_enters_once_and_when_asked(monkeypatch):
    monkeypatch.setattr(later, "_loaders", {})
    entered = []
    later.provide("things", lambda: entered.append("a"))
    later.provide("things", lambda: entered.append("b"))
    later.provide("others", lambda: entered.append("c"))
    assert entered == []
    later.load("things")
    later.load("things")
    later.load("nothing")
    assert entered == ["a", "b"]
