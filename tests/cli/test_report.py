"""`fastsim report` as a user meets it, and its page in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastsim.cli.main import exit_code
from tests import reports
from tests.browser import BRIGHT_AND_LAST_PIXELS, Page, browser
from tests.needs import needed

needed("vl_convert")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved runs: of jobs, of pods that go, of pods that stay."""
    folder = tmp_path_factory.mktemp("runs")
    for name, result in (("jobs", reports.jobs()), ("pods", reports.passing()), ("hand", reports.by_hand())):
        result.save(folder / name)
    return folder


def test_files_are_written_and_their_sizes_told(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ["--html", "r.html", "--markdown", "r.md", "--svg", "pictures", "--trace", "t.json"]
    wanted = [text if text.startswith("--") else str(tmp_path / text) for text in wanted]
    assert exit_code(["report", str(folders / "jobs"), *wanted, "--window", "0:7200"]) == 0
    printed = capsys.readouterr().out
    assert "MB): 1 runs" in printed or "1 runs, 1" in printed
    assert "r.md (" in printed and "kB)" in printed and "ui.perfetto.dev" in printed
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "(<pictures/jct.svg>)" in (tmp_path / "r.md").read_text()
    kit = ["--latex", "t.tex", "--csv", "t.csv", "--pdf", "printed"]
    kit = [text if text.startswith("--") else str(tmp_path / text) for text in kit]
    assert exit_code(["report", str(folders / "jobs"), *kit, "--columns", "1", "--chart", "jct"]) == 0
    assert "t.tex (" in (printed := capsys.readouterr().out) and "t.csv (" in printed and "1 pictures in" in printed
    assert "\\toprule" in (tmp_path / "t.tex").read_text() and "jct_mean_s" in (tmp_path / "t.csv").read_text()
    assert (tmp_path / "printed" / "jct.pdf").read_bytes().startswith(b"%PDF")
    assert exit_code(["report", str(folders)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5  # a table of three runs


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing"], "missing: found no readable run.json"),
        (["jobs", "--window", "a:b"], "two numbers of seconds"),
        (["jobs", "pods", "--trace", "t.json"], "the folder of one run"),
        (["jobs", "--chart", "jtc"], "did you mean 'jct'"),
        (["jobs", "--name", "a", "--name", "b"], "1, one for each result"),
    ],
)
def test_mistakes_are_one_line(
    folders: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders)
    assert exit_code(["report", *arguments]) in (1, 2)
    captured = capsys.readouterr()
    assert told in captured.err and captured.err.count("\n") == 1 and not captured.out


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A browser with an empty page."""
    program = browser()
    if program is None:
        pytest.skip("no Chromium on this machine")
    found = Page(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


READY = (
    "[...document.querySelectorAll('figure:not([hidden]) .chart')]"
    ".every((chart) => chart.dataset.ready && chart.querySelector('canvas'))"
)
FIRST = "[...document.querySelectorAll('#summary tbody tr')].map((row) => row.cells[0].textContent).join()"


def opened(page: Page, file: Path, width: int, dark: bool = False) -> None:
    """Show a report and draw all of it."""
    page.open(file, width, dark=dark)
    page.say("Emulation.setDeviceMetricsOverride", width=width, height=page.value("document.body.scrollHeight"),
             deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
    page.wait(READY)


def test_the_page_in_a_browser(folders: Path, tmp_path: Path, page: Page) -> None:
    file = tmp_path / "report.html"
    arguments = [str(folders / name) for name in ("jobs", "pods")]
    assert exit_code(["report", *arguments, "--html", str(file), "--name", "b-jobs", "--name", "a-pods"]) == 0
    opened(page, file, 1200)
    assert page.value("document.querySelectorAll('.chart').length") >= 8
    assert page.value("[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)")
    # Sorting by the keyboard: the first heading, then again for the other way around.
    page.value("document.querySelector('thead button').focus()")
    page.press("Enter", "\r")
    assert page.value(FIRST) == "a-pods,b-jobs"
    page.press("Enter", "\r")
    assert page.value(FIRST) == "b-jobs,a-pods"
    assert page.value("document.querySelector('thead th').getAttribute('aria-sort')") == "descending"
    # The switch of colours, and a run that is not shown.
    before = page.value("getComputedStyle(document.body).backgroundColor")
    page.value("document.getElementById('theme').click()")
    assert page.value("getComputedStyle(document.body).backgroundColor") != before
    page.value("document.querySelector('[data-run]').click(); document.getElementById('chosen').selectedIndex = 1; "
               "document.getElementById('chosen').dispatchEvent(new Event('change'))")  # fmt: skip
    page.wait("document.querySelector('#chart-shares.empty') !== null")  # pods have no application
    page.wait("[...document.querySelectorAll('figure:not([hidden]) .chart')].every((one) => one.dataset.ready)")
    page.value("document.querySelector('[data-all=no]').click()")
    assert page.value("document.querySelectorAll('#chart-power.empty, #chart-jct.empty').length") == 2
    page.value("document.querySelector('[data-all=yes]').click()")
    assert page.value("document.querySelectorAll('#chart-power.empty, #chart-jct.empty').length") == 0
    assert page.complaints == [] and {url.partition(":")[0] for url in page.requests} <= {"file", "data", "blob"}


def test_the_slider_chooses_a_moment_of_one_run(folders: Path, tmp_path: Path, page: Page) -> None:
    file = tmp_path / "report.html"
    assert exit_code(["report", str(folders / "hand"), "--html", str(file)]) == 0
    assert file.read_text().count('"step":[') == 1  # both charts have the same data
    opened(page, file, 1200)
    shown = "document.getElementById('at').textContent"
    before = page.value(shown)
    picture = "document.querySelector('#chart-nodes_at canvas').toDataURL()"
    drawn = page.value(picture)
    page.value("document.getElementById('moment').value = 0; "
               "document.getElementById('moment').dispatchEvent(new Event('input'))")  # fmt: skip
    assert before.endswith("s") and page.value(shown).startswith("0 to ")
    page.wait(f"{picture} !== {json.dumps(drawn)}")
    assert page.complaints == []


def test_nodes_are_shown_by_what_is_chosen(folders: Path, tmp_path: Path, page: Page) -> None:
    file = tmp_path / "report.html"
    assert exit_code(["report", str(folders / "pods"), "--html", str(file)]) == 0
    assert file.read_text().count('"frag":[') == 1  # all charts of nodes have the same data
    opened(page, file, 390)
    seen = "[...document.querySelectorAll('figure:not([hidden]) .chart')].map((one) => one.id).join()"
    assert "chart-nodes,chart-nodes_at," in page.value(seen)
    page.value("document.getElementById('quantity').focus()")
    page.value("document.getElementById('quantity').value = 'power'; "
               "document.getElementById('quantity').dispatchEvent(new Event('change'))")  # fmt: skip
    assert "chart-nodes_power,chart-nodes_at_power," in page.value(seen)
    page.wait(READY)
    assert page.value("document.querySelector('#chart-nodes_power canvas').clientWidth") > 200
    # A chart that was away while colours changed has its width when it is seen again.
    page.value("document.getElementById('theme').click()")
    page.value("document.getElementById('quantity').value = 'GPUs in use'; "
               "document.getElementById('quantity').dispatchEvent(new Event('change'))")  # fmt: skip
    page.wait("document.querySelector('#chart-nodes canvas').clientWidth > 200")
    assert page.value("document.documentElement.scrollWidth") <= 390 and page.complaints == []


def test_charts_are_drawn_when_they_are_about_to_be_seen(folders: Path, tmp_path: Path, page: Page) -> None:
    file = tmp_path / "report.html"
    assert exit_code(["report", *(str(folders / name) for name in ("jobs", "pods")), "--html", str(file)]) == 0
    page.open(file, 1200, 500)
    page.wait("document.querySelector('.chart[data-ready]') !== null")
    drawn = "document.querySelectorAll('.chart[data-ready]').length"
    last = "[...document.querySelectorAll('.chart')].at(-1)"
    assert 0 < page.value(drawn) < page.value("document.querySelectorAll('.chart').length")
    assert page.value(f"{last}.dataset.ready === undefined")
    page.value(f"{last}.scrollIntoView()")
    page.wait(f"{last}.dataset.ready !== undefined")
    assert page.complaints == []


@pytest.mark.parametrize(("width", "dark"), [(390, True), (390, False), (1200, True)])
def test_dark_and_narrow(folders: Path, tmp_path: Path, page: Page, width: int, dark: bool) -> None:
    file = tmp_path / "report.html"
    assert exit_code(["report", str(folders / "jobs"), "--html", str(file)]) == 0
    opened(page, file, width, dark)
    assert page.value("document.documentElement.scrollWidth") <= width
    ground = page.value("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(18, 22, 29)" if dark else "rgb(255, 255, 255)")
    widest = page.value("Math.max(...[...document.querySelectorAll('canvas')].map((one) => one.clientWidth))")
    assert 200 < widest < width
    page.picture(tmp_path / "seen.png")
    assert (tmp_path / "seen.png").stat().st_size > 20_000 and page.complaints == []
    assert not dark or all(bright > 100 for bright, _ in page.value(BRIGHT_AND_LAST_PIXELS))
    page.complaints.clear()  # of pixels that are read from so many charts
