"""Every error that fastsim raises on purpose, with its exit code on the command line.

A message names the place, the value found, the value expected and, where it helps, a remedy.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OF_DATA = {"ArrowException", "PolarsError", "PanicException", "LZMAError", "error"}
"""Names of base classes of what libraries raise because of data, in the modules of ``OF_LIBRARIES``."""
GUESS, LISTED = "did you mean", 160
"""Beginning of a guess at the name that was meant, and the signs of all known names that are shown beside one."""
OF_LIBRARIES = ("pyarrow", "polars", "pyo3_runtime", "zlib", "_lzma")


class FastsimError(Exception):
    """A failed run (exit code 1); base class of every error below."""

    exit_code = 1


class Interrupted(FastsimError):
    """Ctrl-C or SIGTERM ended the work; the message names the files from which it can go on."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[type[Interrupted], tuple[str, int]]:
        return type(self), (str(self), self.exit_code)


class _BadInput(FastsimError):
    """An input of the user is wrong (exit code 2); a tuple in ``found`` is several findings."""

    exit_code = 2

    def __init__(self, where: str, found: object, expected: str, do: str = "") -> None:
        self.where, self.found, self.expected, self.do = where, found, expected, do
        if do.startswith(GUESS):
            expected = _beginning(expected)
        tail = f"; {on_one_line(do, 4000)}" if do else ""
        listed = [on_one_line(item, 200) for item in (found if isinstance(found, tuple) else (found,))]
        super().__init__(
            f"{on_one_line(where, 1000)}: found {'; '.join(listed)}, expected {on_one_line(expected, 2000)}{tail}"
        )

    def __reduce__(self) -> tuple[type[_BadInput], tuple[str, object, str, str]]:
        # Exceptions cross process boundaries when runs are spread over workers.
        return type(self), (self.where, self.found, self.expected, self.do)


class InputError(_BadInput):
    """A cluster, workload or catalogue file or object is wrong."""


class ScenarioError(_BadInput):
    """A scenario, an option or a combination of them is wrong."""


class PolicyError(_BadInput):
    """The name, a parameter or the answer of a policy is wrong."""


class SolverError(FastsimError):
    """An optimisation problem could not be solved."""


class ResultError(FastsimError):
    """A result could not be written or read."""


class StoredError(ResultError):
    """A saved result or a checkpoint is damaged or was changed by hand (exit code 2); where none is, ResultError."""

    exit_code = 2


def is_of_data(error: BaseException) -> bool:
    """Whether an error is due to the user's data: numbers too large, texts in no encoding, files that libraries refuse.

    A panic of polars is no ``Exception``, and no library is loaded to recognise its errors.
    """
    if isinstance(error, OverflowError | UnicodeError | RecursionError | MemoryError | EOFError):
        return True
    kinds = type(error).__mro__
    return any(kind.__name__ in OF_DATA and kind.__module__.startswith(OF_LIBRARIES) for kind in kinds)


@contextmanager
def reading(where: object, expected: str, also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Errors because of data (:func:`is_of_data`), and those in ``also``, become an InputError."""
    try:
        yield
    except FastsimError:
        raise
    except BaseException as error:
        if not is_of_data(error) and not isinstance(error, also):
            raise
        text = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise InputError(str(where), text or type(error).__name__, expected) from error


def suggestion(word: str, known: Iterable[str]) -> str:
    """The sentence ``did you mean 'x'?`` for the known name closest to ``word``, or nothing.

    Capital letters and separators count for nothing, so that FGD is near ``fgd`` and A-100 near ``a100``.
    """
    from difflib import SequenceMatcher, get_close_matches

    plain = {plain_name(name): name for name in reversed(list(known))}
    asked = plain_name(word)
    close = get_close_matches(asked, list(plain), n=3)
    # Of names that are as close, the shortest: who writes jtc means jct and not jct_cdf.
    nearest = max(close, key=lambda name: (SequenceMatcher(None, name, asked).ratio(), -len(name)), default="")
    return f"{GUESS} {plain[nearest]!r}?" if close else ""


def plain_name(name: str) -> str:
    """A name as its spellings have it in common: small letters and digits."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def _beginning(names: str) -> str:
    """The first names of a long list: a guess says more than the others."""
    if len(names) <= LISTED:
        return names
    head = names[:LISTED].rpartition(", ")[0]
    return f"{head}, ... ({names.count(', ') + 1} names)" if head else names


def short(value: object, most: int = 60) -> str:
    """The value as Python writes it, cut to ``most`` characters; parts beyond the cut are not formatted."""
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > most:
            return f"{text[: most - 3]}..."
    return text


def kind_of(value: object) -> str:
    """A value of a wrong type, as errors show it: classes and arrays by name, others as Python writes them."""
    name = type(value).__name__
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or callable(value):
        return f"the function {getattr(value, '__name__', name)}" if callable(value) else "None"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{'an array' if name == 'ndarray' else f'a {name}'} of {value.dtype} with shape {value.shape}"
    text = short(value)
    return f"a {name}" if "\n" in text or text.startswith("<") else f"{text} ({name})"


def _pieces(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield "{"
        for number, (key, item) in enumerate(value.items()):
            yield ", " if number else ""
            yield from _pieces(key)
            yield ": "
            yield from _pieces(item)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, item in enumerate(value):
            yield ", " if number else ""
            yield from _pieces(item)
        yield "]"
    elif isinstance(value, str | bytes):
        yield repr(value[:1000])
    elif isinstance(value, int) and value.bit_length() > 1000:  # Python refuses to write out very large ones
        yield f"a number of {value.bit_length():,} bits"
    else:
        yield repr(value)


def on_one_line(value: object, most: int) -> str:
    """The text of a value on one line: cut to ``most`` characters, unprintable ones escaped."""
    text = str(value)
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
