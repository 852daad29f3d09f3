"""The browser is started without the token among its arguments."""

import stat
import webbrowser

from pliant.app.editor.first_visit import open_browser, write_redirect


def test_the_address_lies_in_a_file_of_this_user_only(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(webbrowser, "open", asked.append)
    open_browser(tmp_path, "http://127.0.0.1:1234/?token=secret&x=1")
    (address,) = asked
    assert address.startswith("file://")
    assert "secret" not in address
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "url=http://127.0.0.1:1234/?token=secret&amp;x=1" in path.read_text()


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "open-pliant.html").symlink_to(tmp_path / "precious")
    assert "token" in write_redirect(tmp_path, "http://127.0.0.1:1/?token=x").read_text()
    assert (tmp_path / "precious").read_text() == "precious"
