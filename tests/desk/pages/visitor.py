"""Somebody at a desk's pages, with a real browser: signs in, clicks, types, and sees what there is to see."""

from __future__ import annotations

import json
import select
import time
from pathlib import Path
from typing import Any

from tests.desk.desks import PATIENCE
from tests.reporting.browser import Browser

_KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " "), "ArrowDown": (40, ""),
         "ArrowRight": (39, ""), "ArrowLeft": (37, ""), "Backspace": (8, "")}  # fmt: skip


class Visitor(Browser):
    """A browser at one desk; ``steps`` counts what a person would have to do."""

    def __init__(self, executable: str, profile: Path, url: str) -> None:
        super().__init__(executable, profile)
        self.url, self.steps = url, 0
        self.resize(1280, 900)

    def _receive(self) -> dict[str, Any]:
        """As every browser here, but not for ever."""
        if b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, f"the browser says nothing for {PATIENCE:g} seconds"
        return super()._receive()

    def open(self, path: str) -> None:
        """Follow an address."""
        self.steps += 1
        before = self._loaded
        self.call("Page.navigate", url=self.url + path)
        self._until_loaded(before)

    def sign_in(self, token: str, path: str = "/") -> None:
        """Open a page, and sign in on the way."""
        self.open(path)
        self.write("#token", token)
        self.click("main button")

    def _until_loaded(self, before: int) -> None:
        while self._loaded == before:
            self._receive()

    def click(self, selector: str, *, loads: bool = True) -> None:
        """Click what a selector finds, as a mouse does: where it is, if it can be seen."""
        self.steps += 1
        place = self.evaluate(f"""(() => {{ const found = document.querySelector({json.dumps(selector)});
            if (!found) return null; found.scrollIntoView({{block: 'center', behavior: 'instant'}});
            const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()""")
        assert place, f"there is no {selector} at {self.address()}: {self.text()[:2000]}"
        before = self._loaded
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
        if loads:
            self._until_loaded(before)

    def write(self, selector: str, text: str) -> None:
        """Put text into a field, in place of what is there."""
        self.steps += 1
        self.evaluate(f"""(() => {{ const field = document.querySelector({json.dumps(selector)});
            field.focus(); field.select && field.select(); }})()""")
        self.call("Input.insertText", text=text)

    def press(self, key: str, *, loads: bool = False, modifiers: int = 0) -> None:
        """Press a key, as somebody without a mouse does."""
        code, text = _KEYS[key]
        before = self._loaded
        facts = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **facts, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **facts)
        if loads:
            self._until_loaded(before)

    def tab_to(self, selector: str, most: int = 80) -> None:
        """Press Tab until the focus is on what a selector finds."""
        for _ in range(most):
            if self.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            self.press("Tab")
        raise AssertionError(f"no {selector} within {most} tabs of {self.address()}")

    def until(self, condition: str) -> None:
        """Wait until an expression holds in the page."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"not so: {condition}; {self.text()[:1500]}"
            time.sleep(0.02)

    def text(self, selector: str = "main") -> str:
        """What can be read."""
        return str(self.evaluate(f"(document.querySelector({json.dumps(selector)}) || {{innerText: ''}}).innerText"))

    def address(self) -> str:
        """The path of the page."""
        return str(self.evaluate("location.pathname + location.search"))

    def scripts(self, on: bool) -> None:
        """Let pages run scripts, or not."""
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def dark(self, on: bool) -> None:
        """The colours that somebody has chosen."""
        value = "dark" if on else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def check(self) -> None:
        """No message of the console, and no request to anywhere else."""
        assert self.problems == [], self.problems
        foreign = [url for url in self.requests if not url.startswith((self.url, "about:", "data:"))]
        assert foreign == []

    def evaluate(self, script: str) -> Any:
        """The value of an expression; a page that is just being replaced is asked again."""
        for _ in range(50):
            try:
                return super().evaluate(script)
            except AssertionError as error:
                if "context" not in str(error):
                    raise
                time.sleep(0.02)
        raise AssertionError("the page does not settle")

    def forget(self) -> None:
        """As if it had been opened just now."""
        self.call("Network.clearBrowserCookies")
        self.scripts(True)
        self.dark(False)
        self.resize(1280, 900)
        self.problems.clear()
        self.requests.clear()
        self.steps = 0

    def missed(self) -> list[str]:
        """What the console says of statuses that a test has asked for; it is taken off the list."""
        found = [problem for problem in self.problems if "the server responded with a status of" in problem]
        self.problems[:] = [problem for problem in self.problems if problem not in found]
        return found
