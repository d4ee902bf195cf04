"""A headless Chromium that tests talk to through its own debugging pipe; nothing is to be installed beside it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 60.0
BRIGHT_AND_LAST_PIXELS = """[...document.querySelectorAll('canvas')].map((one) => {
  const data = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;
  let bright = 0, last = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 128) {
    bright += Math.min(data[i], data[i + 1], data[i + 2]) > 130;
    last += (i / 4) % one.width > one.width - 3;
  }
  return [bright, last];
})"""
"""Of each chart: how many pixels are bright, such as letters on a dark page, and how many touch its right edge."""


def browser() -> str | None:
    """The program, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page in a browser of its own: what it logs is kept in ``complaints``."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, self._reader = os.pipe(), b""
        theirs = os.pipe()
        self._write, self._read = ours[1], theirs[0]
        # The browser reads descriptor 3 and writes descriptor 4.
        moves = ((ours[0], 100), (theirs[1], 101), (100, 3), (101, 4))  # one may stand where another is to go
        place = "; ".join(["import os, sys", *(f"os.dup2({begin}, {end})" for begin, end in moves)])
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run", "about:blank"]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"{place}; os.execv(sys.argv[1], sys.argv[1:])", program, *flags],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        targets = self.say("Target.getTargets")["targetInfos"]
        target = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.say("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.say(f"{domain}.enable")

    def say(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Say something of the protocol and wait for the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._reader:
            ready, _, _ = select.select([self._read], [], [], PATIENCE_S)
            assert ready, f"the browser said nothing for {PATIENCE_S:g} s"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser has gone"
            self._reader += piece
        first, _, self._reader = self._reader.partition(b"\0")
        content: dict[str, Any] = json.loads(first)
        return content

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:600])
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:600])
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Show a file and wait until it is loaded."""
        self.say("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.say("Emulation.setEmulatedMedia", features=[scheme])
        self.say("Page.navigate", url=path.absolute().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def value(self, script: str) -> Any:
        """What an expression of the page is."""
        answer = self.say("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{script}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression of the page holds."""
        end = time.monotonic() + PATIENCE_S
        while not self.value(script):
            assert time.monotonic() < end, f"still not: {script}"
            time.sleep(0.05)

    def press(self, key: str, text: str = "") -> None:
        """Press a key, such as ``Enter`` or ``Tab``."""
        code = {"Tab": 9, "Enter": 13, " ": 32}[key]
        for kind in ("keyDown", "keyUp"):
            self.say("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                     **({"text": text} if text and kind == "keyDown" else {}))  # fmt: skip

    def picture(self, path: Path, whole: bool = True) -> None:
        """A picture of the page as a PNG file."""
        answer = self.say("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
