"""Errors: one sentence with where, found, expected and what to do; exit codes; across process boundaries."""

from __future__ import annotations

import lzma
import pickle
import tracemalloc
import zlib
from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pytest

from fastsim import errors
from fastsim.errors import (
    FastsimError,
    InputError,
    Interrupted,
    PolicyError,
    ResultError,
    ScenarioError,
    SolverError,
    StoredError,
    reading,
    short,
    suggestion,
)

BAD_INPUT = (InputError, PolicyError, ScenarioError)


@pytest.mark.parametrize("kind", BAD_INPUT)
def test_the_message_is_one_sentence_in_a_fixed_order(kind: type[InputError]) -> None:
    assert str(kind("pods.csv:3: cpu_milli", -1, "0 or more")) == "pods.csv:3: cpu_milli: found -1, expected 0 or more"
    assert str(kind("a", "b", "c", "do d")) == "a: found b, expected c; do d"


@pytest.mark.parametrize("kind", BAD_INPUT)
def test_a_worker_can_send_one_home(kind: type[InputError]) -> None:
    sent = kind("a", ["b"], "c", "d")
    back = pickle.loads(pickle.dumps(sent))
    assert type(back) is kind and str(back) == str(sent)
    assert (back.where, back.found, back.expected, back.do) == ("a", ["b"], "c", "d")


def test_an_interruption_keeps_its_exit_code() -> None:
    back = pickle.loads(pickle.dumps(Interrupted("stopped; out is complete", 143)))
    assert type(back) is Interrupted and (str(back), back.exit_code) == ("stopped; out is complete", 143)


def test_exit_codes_tell_the_users_mistakes_from_failed_runs() -> None:
    assert {kind.exit_code for kind in BAD_INPUT} == {2}
    assert {kind.exit_code for kind in (FastsimError, ResultError, SolverError)} == {1}


def test_every_error_can_be_caught_as_one() -> None:
    raised = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(raised) == 9 and all(issubclass(kind, FastsimError) for kind in raised)
    # A bad file is no bad scenario: whoever catches one must not swallow the other.
    assert not any(issubclass(a, b) for a in BAD_INPUT for b in BAD_INPUT if a is not b)


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("fdg", "did you mean 'fgd'?"),
        ("best_fitt", "did you mean 'best_fit'?"),
        ("fgd", "did you mean 'fgd'?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_the_closest_name_or_nothing(word: str, answer: str) -> None:
    assert suggestion(word, ("pwr", "fgd", "best_fit")) == answer


def test_names_may_come_from_anywhere_once() -> None:
    assert suggestion("openc", (name for name in ("openb", "uniform"))) == "did you mean 'openb'?"
    assert suggestion("openb", ()) == ""


def test_a_value_is_told_as_python_writes_it_but_no_longer_than_asked() -> None:
    values: list[object] = [{"b": [1, None], "a": 2.5}, [], {}, "text", b"bytes", -7, True, ("a", 1)]
    for value in values:
        assert short(value) == repr(value)
    assert short(list(range(100)), 20) == "[0, 1, 2, 3, 4, 5..."
    assert short(1 << 40_000) == "a number of 40,001 bits"


def test_no_more_of_a_value_is_looked_at_than_is_told() -> None:
    class Watched(list[int]):
        looked = 0

        def __iter__(self) -> Iterator[int]:
            for item in super().__iter__():
                Watched.looked += 1
                yield item

    assert len(short(Watched(range(10_000)))) == 60 and Watched.looked < 30
    inner: list[object] = []
    inner.append(inner)
    assert short(inner) == "[" * 57 + "..."


class Unspeakable:
    """A value that may not be formatted."""

    def __repr__(self) -> str:
        raise AssertionError("this is far beyond the cut")


@pytest.mark.parametrize("mapping", [{"a" * 100: Unspeakable()}, {"a": "b" * 100, "c": Unspeakable()}])
def test_no_more_of_a_mapping_is_written_than_is_told(mapping: dict[str, object]) -> None:
    assert short(mapping).startswith("{'a") and short(mapping).endswith("...") and len(short(mapping)) == 60


@pytest.mark.parametrize("text", ["\x00" * 3_000_000, b"\x00" * 3_000_000])
def test_no_more_of_a_text_is_written_than_is_told(text: str | bytes) -> None:
    tracemalloc.start()
    told = short([text])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(told) == 60 and most < 1_000_000


def test_a_message_is_one_line_however_long_and_odd_its_input() -> None:
    error = InputError("a\nfile", "x\n\x1b[31m\udc80" + "y" * 30_000, "something else")
    assert str(error).isprintable() and len(str(error)) < 300
    assert str(error).startswith("a\\nfile: found x\\n\\x1b[31m\\udc80yyy")
    str(error).encode()


OF_DATA = (
    pa.ArrowInvalid("a\nb"), pa.ArrowKeyError("k"), pl.exceptions.ComputeError("c"), pl.exceptions.PanicException("p"),
    zlib.error("z"), lzma.LZMAError("x"), OverflowError("large"), UnicodeDecodeError("utf-8", b"x", 0, 1, "no"),
    RecursionError("deep"), MemoryError(), EOFError("end"),
)  # fmt: skip


@pytest.mark.parametrize("error", OF_DATA, ids=lambda error: type(error).__name__)
def test_what_libraries_raise_because_of_data_names_the_place(error: BaseException) -> None:
    with pytest.raises(InputError, match=r"^pods\.csv: found .+, expected a table$") as raised, \
            reading("pods.csv", "a table"):  # fmt: skip
        raise error
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyError("k"), TypeError("t"), ZeroDivisionError(), KeyboardInterrupt(), OSError()])
def test_a_bug_or_a_signal_is_not_the_fault_of_data(error: BaseException) -> None:
    with pytest.raises(type(error)), reading("pods.csv", "a table"):
        raise error
    with pytest.raises(InputError, match=r"^run: found no 'k', expected a saved run$"), \
            reading("run", "a saved run", (KeyError,)):  # fmt: skip
        raise KeyError("k")


def test_an_error_that_names_its_place_stays_as_it_is() -> None:
    with pytest.raises(StoredError, match=r"^as it was$") as raised, reading("run", "a run", (FastsimError,)):
        raise StoredError("as it was")
    assert raised.value.exit_code == 2 and isinstance(raised.value, ResultError)


def test_what_is_expected_and_what_to_do_are_one_bounded_line() -> None:
    message = str(InputError("t.csv", "no column", f"one of: a, \x00, \u202e{'b' * 5000}", "rename\nit"))
    assert message.isprintable() and len(message) < 2200 and r"\x00, \u202eb" in message and r"rename\nit" in message


@pytest.mark.parametrize(
    ("word", "meant"), [("FGD", "fgd"), ("best-fit", "best_fit"), ("Best Fit", "best_fit"), ("SRTF", "srtf")]
)
def test_a_guess_looks_at_letters_and_digits_alone(word: str, meant: str) -> None:
    assert suggestion(word, ["fgd", "best_fit", "srtf"]) == f"did you mean {meant!r}?"


def test_a_guess_shortens_a_long_list() -> None:
    names = [f"name_{number}" for number in range(60)]
    text = str(ScenarioError("x", "an unknown name", f"one of {', '.join(names)}", suggestion("NAME-7", names)))
    assert text.startswith("x: found an unknown name, expected one of name_0, name_1, ") and len(text) < 260
    assert text.endswith(", ... (60 names); did you mean 'name_7'?")
    whole = str(ScenarioError("x", "an unknown name", f"one of {', '.join(names)}", suggestion("zzz", names)))
    assert whole.endswith("name_59")
