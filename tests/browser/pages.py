"""A page of the editor, in the words of a person, and waiting for what it shows."""

import time

from waiting import PATIENCE, soon

DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""The first frame may have begun before; the second has not."""

SENT = "() => new Promise(done => setTimeout(done, 60))"
"""Of what is changed within 50 ms viser's page sends the last only; its timer ends before this."""


BLOCK = {
    "title": "block",
    "gravity": [0.0, 0.0, 0.0],
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.4, 0.4]},
    "body": {"kind": "grid", "spacing": 0.2},
    "material": {"youngs_modulus": 300.0, "mass_damping": 0.5, "stiffness_damping": 0.02},
    "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
}
"""A scene whose page is soon drawn."""


class Page:
    """A page of the editor, in the words of a person."""

    def __init__(self, browser, address: str, *, width: int = 700, height: int = 420):
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            accept_downloads=True,
            device_scale_factor=0.5,  # software draws a quarter of the pixels
        )
        self.context.set_default_timeout(1000 * PATIENCE)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address)
        self.page.get_by_role("button", name="Play", exact=True).wait_for(timeout=180_000)
        self.page.get_by_text("tip displacement").first.wait_for(timeout=180_000)

    def tab(self, name: str) -> None:
        tab = self.page.get_by_role("tab", name=name, exact=True)
        tab.wait_for()

        def chosen() -> bool:  # the mouse misses what the panel moves meanwhile
            tab.click(force=True)
            return soon(lambda: tab.get_attribute("aria-selected") == "true", 3.0)

        wait_for(chosen)

    def press(self, name: str) -> None:
        _click(self.page.get_by_role("button", name=name, exact=True))
        self.page.evaluate(SENT)

    def choose(self, label: str, option: str) -> None:
        box = self.page.get_by_role("combobox", name=label, exact=True)
        entry = self.page.get_by_role("option", name=option, exact=True)

        def chosen() -> bool:  # the mouse misses what the panel moves meanwhile
            if not entry.is_visible():
                box.click(force=True)
            if soon(entry.is_visible, 3.0):
                entry.click(force=True)
            return soon(lambda: box.input_value() == option, 3.0)

        box.wait_for()
        wait_for(chosen)
        self.page.evaluate(SENT)

    def fill(self, label: str, value: str) -> None:
        box = self.page.get_by_role("textbox", name=label, exact=True)
        box.fill(value)
        box.press("Enter")
        box.blur()
        self.page.evaluate(SENT)

    def write(self, value: str) -> None:
        """Into the last text field of the tab; viser gives them no name."""
        box = self.page.get_by_role("textbox").last
        box.fill(value)
        box.blur()
        self.page.evaluate(SENT)

    def tick(self, label: str) -> None:
        box = self.page.get_by_role("checkbox", name=label, exact=True)
        box.wait_for()
        before = box.is_checked()
        _click(box)
        wait_for(lambda: box.is_checked() != before)
        self.page.evaluate(SENT)

    def upload(self, file) -> None:
        """In the Shape panel."""
        with self.page.expect_file_chooser() as chooser:
            self.press("Upload a shape")
        chooser.value.set_files(str(file))

    def point(self, editor, at) -> tuple[float, float]:
        """Where a point of space [m] is drawn, from the page's own camera."""
        import numpy as np

        camera = next(iter(editor.server.get_clients().values())).camera
        forward = camera.look_at - camera.position
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 1.0, 0.0])
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        d = np.asarray(at, float) - camera.position
        width, height = camera.image_width, camera.image_height
        scale = 0.5 * height / (np.tan(camera.fov / 2.0) * (d @ forward))
        canvas = self.page.locator("canvas").first.bounding_box()
        ratio = canvas["height"] / height
        x = canvas["x"] + ratio * (0.5 * width + scale * (d @ right))
        y = canvas["y"] + ratio * (0.5 * height - scale * (d @ up))
        return float(x), float(y)

    def text(self) -> str:
        return self.page.locator("body").inner_text()

    def tip(self) -> float:
        return float(self.text().partition("tip displacement ")[2].split()[0])

    def time(self) -> float:
        return float(self.text().partition("t = ")[2].split()[0])

    def scrub(self, frame: int) -> None:
        box = self.page.get_by_role("textbox").first  # the slider's own number
        box.fill(str(frame))
        box.press("Enter")

    def picture(self) -> bytes:
        """The 3D view alone."""
        area = {"x": 0, "y": 130, "width": 310, "height": 280}
        return self.page.screenshot(clip=area)

    def draw(self) -> None:
        """Wait until the page has drawn what it knows by now."""
        self.page.evaluate(DRAWN)

    def close(self) -> None:
        self.context.close()


def _click(place) -> None:
    """By the page and not by the mouse, which misses what the panel moves meanwhile."""
    place.wait_for()
    place.evaluate("element => element.click()")


def wait_for(condition):
    """The first true value of condition(), or an error with the last one."""
    value = soon(condition)
    assert value, f"still {value!r} after {PATIENCE} s"
    return value


def done(editor, condition):
    """As wait_for, and the order that made it true is carried out to its end.

    An order changes one thing after the other: a scene is open before the panels show it.
    """
    value = wait_for(condition)
    assert editor.desk.settle()
    return value


def pixels(picture: bytes):
    """(rows, columns, 3) whole numbers."""
    import io

    import numpy as np
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), int)


def difference(a: bytes, b: bytes) -> float:
    """Share of pixels that differ visibly."""
    return float((abs(pixels(a) - pixels(b)).max(axis=2) > 24).mean())


def alike(a: bytes, b: bytes) -> bool:
    """Whether the means of 8 x 8 pixels are: a page that is slow draws fewer pixels and blurs."""
    from io import BytesIO

    import numpy as np
    from PIL import Image

    pictures = (Image.open(BytesIO(p)).convert("RGB") for p in (a, b))
    means = [
        np.asarray(p.resize((p.width // 8, p.height // 8), Image.Resampling.BOX), int)
        for p in pictures
    ]
    return int(abs(means[0] - means[1]).max()) < 40


def still(page: Page) -> bytes:
    """The picture once it has not changed for a second, in which the page did draw."""

    def settled() -> bytes | None:
        before = page.picture()
        for _ in range(2):
            time.sleep(0.5)
            page.draw()
            if difference(before, page.picture()) > 0.0:
                return None
        return before

    return wait_for(settled)


def hues(picture: bytes) -> int:
    """How many of 24 hues take a thousandth of the picture or more."""
    import numpy as np
    from matplotlib.colors import rgb_to_hsv

    hsv = rgb_to_hsv(pixels(picture).reshape(-1, 3) / 255.0)
    strong = hsv[(hsv[:, 1] > 0.25) & (hsv[:, 2] > 0.2)]
    return int((np.histogram(strong[:, 0], 24, (0.0, 1.0))[0] > 0.001 * len(hsv)).sum())
