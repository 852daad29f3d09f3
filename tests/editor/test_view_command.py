"""`pliant view` warns before it listens to other machines."""

import threading

import pytest

from pliant.app.commands import view
from pliant.app.editor import editor


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_another_interface_is_warned_of(host, warned, monkeypatch, capsys):
    """The editor itself is not started: nothing listens."""
    made = []

    class Silent:
        address = "http://127.0.0.1:1/"

        def __init__(self, opened, **options):
            made.append(options["host"])

        def __getattr__(self, name):
            return lambda *_: None

    monkeypatch.setattr(editor, "Editor", Silent)
    monkeypatch.setattr(threading.Event, "wait", lambda self, timeout=None: True)
    monkeypatch.setattr(view.signal, "signal", lambda *_: None)
    view.view("bar", host=host, browser=False)
    assert made == [host]
    assert ("Warning: listening on" in capsys.readouterr().err) is warned
