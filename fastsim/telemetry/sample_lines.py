"""Samples in lines of text: OpenMetrics, the older exposition format, and what ``promtool tsdb dump`` printed.

OpenMetrics has seconds and a last line ``# EOF``; a dump and the text of ``/federate`` have milliseconds and no such
line. Text that an exporter serves has no times: all its samples get the time at which the file was written.
Lines about anything but GPUs are not read beyond their name. Lines about GPUs that are not understood are counted.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fastsim.errors import InputError
from fastsim.telemetry.readings_table import Sample, unix_ms

END = "# EOF"
"""The last line of an OpenMetrics file."""
_QUOTED = r'"((?:[^"\\\n]|\\.)*)"'
_LABEL = re.compile(rf"\s*(?:([a-zA-Z_]\w*)|{_QUOTED})\s*=\s*{_QUOTED}\s*(?:,|(?=\}}))", re.ASCII)
_NAME = re.compile(r"[a-zA-Z_:][\w:]*(?=[{\s])", re.ASCII)
_QUOTED_NAME = re.compile(rf"\{{\s*{_QUOTED}\s*(?:,|(?=\}}))")
_MILLISECONDS = re.compile(r"-?\d{12,}", re.ASCII)
"""Whole numbers from the year 1973 on; as seconds they would be later than the year 5000."""
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_NO_LABELS: Mapping[str, str] = {}


class NotUnderstood(UserWarning):
    """Lines about GPUs that are not understood were left out."""


def file_samples(paths: Iterable[str | os.PathLike[str]], names: Container[str]) -> Iterator[Sample]:
    """The samples of such files; those of other names than ``names`` have no labels, no time and no value."""
    return (sample for path in paths for sample in _samples(str(path), names))


def _samples(path: str, names: Container[str]) -> Iterator[Sample]:
    try:
        with open(path, encoding="utf-8", newline="\n") as text:
            yield from _Lines(path, names, _Times(os.stat(path).st_mtime_ns // 1_000_000)).samples(text)
    except FileNotFoundError:
        raise InputError(path, "no such file or folder", "readings, or the folder of a run that has them") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, " ".join(str(error).split()), "OpenMetrics text or a dump of promtool") from None


@dataclass
class _Times:
    """Times of the samples of a file: `given` in every line or in none; without, all are the file's own time."""

    written_ms: int
    ms_per: int | None = None
    given: bool | None = None

    def ms(self, words: Sequence[str]) -> int:
        """The time of a sample with these words behind its value; ValueError if it is no time, or one too many."""
        if len(words) > 1 or self.given not in (None, bool(words)):
            raise ValueError
        if words:
            ms_per = self.ms_per or (1 if _MILLISECONDS.fullmatch(words[0]) else 1000)
            time_ms = _time_ms(words[0], ms_per)
            self.ms_per = ms_per
        self.given = bool(words)
        return time_ms if words else self.written_ms


def _time_ms(word: str, ms_per: int) -> int:
    return unix_ms(int(word) if ms_per == 1 else float(word) * ms_per)


@dataclass
class _Series:
    """A series of a file, and the time of its last sample."""

    name: str
    labels: Mapping[str, str]
    last_ms: int | None = None


@dataclass
class _Lines:
    """The lines of one file; the part before value and time is the same in many of them, and parsed once."""

    path: str
    names: Container[str]
    times: _Times
    found: int = 0
    samples_found: int = 0
    left_out: int = 0
    first_left_out: tuple[str, str] = ("", "")
    heads: dict[str, _Series] = field(default_factory=dict)
    series: dict[tuple[str, frozenset[tuple[str, str]]], _Series] = field(default_factory=dict)

    def samples(self, text: Iterable[str]) -> Iterator[Sample]:
        """The samples; InputError where the file is cut, not in order of time, or without a line that is understood."""
        ended = False
        for number, whole in enumerate(text, start=1):
            line = whole.rstrip("\r\n")
            if number == 1 and line.startswith("{") and not _QUOTED_NAME.match(line):
                self.times.ms_per = 1  # a dump
            if ended:
                raise InputError(f"{self.path}:{number}", repr(line[:60]), f"nothing after {END}")
            ended = line == END
            if not line or line.startswith("#"):
                continue
            self.found += 1
            try:
                series, sample = self._sample(line)
            except (ValueError, OverflowError):
                self.left_out += 1
                if self.left_out == 1:
                    self.first_left_out = f"{self.path}:{number}", repr(line[:60])
                continue
            if series is not None:
                self._require_order(series, sample.ts_ms, number)
                self.samples_found += 1
            yield sample
        self._require_end(ended)

    def _sample(self, line: str) -> tuple[_Series | None, Sample]:
        """The sample of a line, and its series if it is about GPUs; ValueError if it is not understood."""
        head, _, rest = line.rpartition("} ")
        series = self.heads.get(head)
        if series is None or (sample := self._quick(series, rest)) is None:
            name, labels, place = _named(line, self.names)
            if name not in self.names:
                return None, Sample(name, _NO_LABELS, 0, 0.0)
            words = line[place:].partition(" # ")[0].split()  # behind it is an exemplar
            value, time_ms = float(words[0] if words else ""), self.times.ms(words[1:])
            series = self.series.setdefault((name, frozenset(labels.items())), _Series(name, labels))
            sample = Sample(name, series.labels, time_ms, value)
            if len(head) + 1 == place and self._quick(series, rest) is not None:  # a label may have "} " in it
                self.heads[head] = series
        return series, sample

    def _quick(self, series: _Series, rest: str) -> Sample | None:
        """The sample of a line whose beginning is known, if nothing but a value and a time follows."""
        try:
            value, time = rest.split()
            return Sample(series.name, series.labels, _time_ms(time, self.times.ms_per or 1000), float(value))
        except (ValueError, OverflowError):
            return None

    def _require_order(self, series: _Series, time_ms: int, number: int) -> None:
        last_ms, series.last_ms = series.last_ms, time_ms
        if last_ms is not None and last_ms >= time_ms:
            times = self.times.given
            expected = "samples of a series in order of time" if times else "one of a series, as none has a time"
            raise InputError(f"{self.path}:{number}", f"{time_ms} ms after {last_ms} ms", expected)

    def _require_end(self, ended: bool) -> None:
        where, line = self.first_left_out
        if self.left_out and not self.samples_found:
            raise InputError(where, line, "a name, labels, a value and a time")
        if not ended and self.times.ms_per != 1 and (self.times.given or not self.found):
            raise InputError(self.path, "an end without a last line", f"{END}, which says that nothing is missing")
        if self.left_out:
            text = f"{where}: lines that are not understood, which are left out: {self.left_out:,}, the first is {line}"
            warnings.warn(text, NotUnderstood, stacklevel=2)


def _named(line: str, names: Container[str]) -> tuple[str, dict[str, str], int]:
    """Name and labels of a line and the place behind them; labels are not read if the line begins with other names."""
    labels: dict[str, str] = {}
    if (plain := _NAME.match(line)) is not None:
        name, place = plain[0], plain.end()
        if name not in names or line[place] != "{":
            return name, labels, place
        place += 1
    elif (quoted := _QUOTED_NAME.match(line)) is not None:
        name, place = _unescaped(quoted[1]), quoted.end()
    elif line.startswith("{"):
        name, place = "", 1
    else:
        raise ValueError
    while (pair := _LABEL.match(line, place)) is not None:
        labels[pair[1] or _unescaped(pair[2])] = _unescaped(pair[3])
        place = pair.end()
    name = name or labels.pop("__name__", "")
    if not name or line[place : place + 1] != "}":
        raise ValueError
    return name, labels, place + 1


def _unescaped(text: str) -> str:
    return re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), text) if "\\" in text else text
