"""Texts of policies that import a module, in other letters, escapes, brackets and sums, and texts that seem to."""

from __future__ import annotations

import json
import random
import string
import sys
import unicodedata
from collections import defaultdict
from functools import cache

from tests.hostile_files import MODULE

SCORERS = (f"{MODULE}:points", f"{MODULE}:points.__call__", f"{MODULE}.inner:points", "this:x", "fastsim:points")
"""Places of scorers; the first ones are in the planted module."""
LOOKALIKES = {
    "p": "\u0440",
    "y": "\u0443",
    "o": "\u043e\u03bf",
    "h": "\u04bb",
    "n": "\u0578",
    "t": "\u03c4",
    "s": "\u0455",
}
"""Letters of other scripts, which Python's parser takes for others."""
BETWEEN = ("", "", "", " ", "  ", "\t", "\x0c", "\\\n", " \\\n ")
"""What may stand between two words."""
INSIDE = (*BETWEEN, "\n", "\r\n", " # fgd\n", "\n\n\t", "#(\n")
"""What may stand between two words in brackets."""
PREFIXES = ("",) * 30 + ("u", "U", "r", "R") * 4 + ("f", "b", "rb")
"""Letters before a quote; the last three make another value of it, or none."""
EDGES = ("",) * 9 + (" ", "\n", "\t", "\x0c", "\u3000", "\x1f") * 2 + ("\ufeff", "\x00", ";", "\\\n")
"""What may stand before and after a text."""
SUMS = (
    "{e} + fgd", "fgd + {e}", "0*{e} + fgd", "fgd + 0.0*{e}", "{e}*2", "2*{e}", "{e}/3", "0.5*(0.5*({e} + pwr) + fgd)",
    "({e})", "(({e}))", "({e} + {e})", "(\n{e}\n)", "1e-300*{e}", "fgd + best_fit + {e} + pwr", "1/2*{e}",
)  # fmt: skip
"""Sums and brackets around a policy that mean something."""
ODD = (
    "[{e}]", "fgd({e})", "{e},", "{e} if 1 else fgd", "fgd if 0 else {e}", "lambda: {e}", "-{e}", "{e} + tune",
    "{{{e}}}", "{e}.scorer", "{e}()", "(x := {e})", "{e} @ fgd", "*{e}", "{e}[0]", "{e} == 1", "not {e}", "{e}; fgd",
    "await {e}", "{e} - fgd", "fgd - {e}", "{e} and fgd", "dot_product(dim={e})", "fgd(**{e})", "served(order={e})",
    "[x for x in {e}]", "f'{{{e}}}'", "fgd\n{e}", "las + {e}", "{e} + las", "{e}*{e}", "0/{e}", "{e} in fgd",
    "policies.{e}",
)  # fmt: skip
"""Texts around a policy most of which mean nothing."""
QUOTED = (
    "served(order={q})",
    "python(scorer={q})",
    "fgd(gpu_pick={q})",
    "planned(rule={q})",
    "{q}",
    "las + {q}",
    "monitored({q})",
)
"""A policy in quotes where a word is expected."""


@cache
def alphabet() -> dict[str, list[str]]:
    """The signs that Python's parser takes for a letter, a digit, an underscore or several of them."""
    found: dict[str, list[str]] = defaultdict(list)
    plain = set(string.ascii_letters + string.digits + "_")
    for code in range(128, sys.maxunicode + 1):
        meant = unicodedata.normalize("NFKC", chr(code))
        if meant and len(meant) < 4 and plain.issuperset(meant) and f"x{chr(code)}".isidentifier():
            found[meant].append(chr(code))
    return dict(found)


def spelled(word: str, draw: random.Random) -> str:
    """The word with some of its letters in signs that mean the same, seldom in some that do not."""
    share = draw.choice((0, 0.1, 0.3, 1))
    known, letters, at = alphabet(), [], 0
    while at < len(word):
        width = next((size for size in (3, 2) if word[at : at + size] in known), 1)
        part = word[at : at + width]
        signs = known.get(part, [part])
        if draw.random() < 0.005:
            signs = [*LOOKALIKES.get(part, part.upper()), part + "\u200d", part + "\u0301", part + "\u00ad"]
        letters.append(draw.choice(signs) if draw.random() < share or signs[0][1:] else part)
        at += width
    return "".join(letters)


def quoted(value: str, draw: random.Random) -> str:
    """A text of Python with this value: of any quotes, prefix and escapes, in one piece or in several."""
    if draw.random() < 0.2 and len(value) > 1:
        cut = draw.randrange(1, len(value))
        return quoted(value[:cut], draw) + draw.choice(INSIDE) + quoted(value[cut:], draw)
    quote, prefix = draw.choice(("'", '"', "'''", '"""')), draw.choice(PREFIXES)
    if "r" in prefix.lower() or "\n" in value or quote[0] in value or "\\" in value:
        return prefix + quote + value + quote if quote[0] not in value else json.dumps(value)
    share = draw.choice((0, 0, 0.2, 1))
    letters = [_escaped(letter, draw) if draw.random() < share else letter for letter in value]
    if draw.random() < 0.1:
        letters.insert(draw.randrange(len(letters) + 1), "\\\n")
    return prefix + quote + "".join(letters) + quote


def _escaped(letter: str, draw: random.Random) -> str:
    code = ord(letter)
    forms = [f"\\u{code:04x}", f"\\U{code:08x}", f"\\x{code:02x}", f"\\{code:03o}"] if code < 256 else [letter]
    if letter.isalpha():
        forms.append(f"\\N{{{unicodedata.name(letter)}}}")
    return draw.choice(forms)


def call(draw: random.Random) -> str:
    """One policy that imports its scorer."""
    gap = draw.choice(BETWEEN)
    name = spelled("python", draw)
    if draw.random() < 0.03:
        name = f"policies{draw.choice(BETWEEN)}.{draw.choice(BETWEEN)}{name}"
    place = SCORERS[0] if draw.random() < 0.8 else draw.choice(SCORERS)
    given = [(spelled("scorer", draw), quoted(place, draw))]
    if draw.random() < 0.2:
        given.append((spelled("normalise", draw), draw.choice(("none", "min_max_0", "'min_max_100'", "nothing"))))
    if draw.random() < 0.2:
        given.append((spelled("gpu_pick", draw), draw.choice(("best", "worst", "'best'", "random", "x"))))
    if draw.random() < 0.02:
        given.append((draw.choice(("scorer", "x")), "'fgd'"))
    draw.shuffle(given)
    inside = [draw.choice(INSIDE) for _ in range(2 + 4 * len(given))]
    parameters = ",".join(
        f"{inside[4 * at]}{name}{inside[4 * at + 1]}={inside[4 * at + 2]}{value}{inside[4 * at + 3]}"
        for at, (name, value) in enumerate(given)
    )
    return f"{name}{gap}({parameters}{draw.choice(('', '', ','))}{inside[-1]})"


def policy(draw: random.Random) -> str:
    """A text that stands for a policy with code in nine of ten cases."""
    text = call(draw)
    for _ in range(draw.choice((0, 0, 1, 1, 2, 5))):
        kinds = SUMS if draw.random() < 0.95 else ODD
        text = draw.choice(kinds).format(e=text)
    if draw.random() < 0.03:
        text = draw.choice(QUOTED).format(q=quoted(text, draw))
    if draw.random() < 0.02:
        deep = draw.choice((20, 90, 150, 199, 250))
        text = "(" * deep + text + ")" * deep
    if draw.random() < 0.02:
        text = "fgd + " * draw.choice((50, 400)) + text
    if draw.random() < 0.5:
        return text
    return draw.choice(EDGES) + text + draw.choice(EDGES)


def toml(text: str, draw: random.Random) -> str:
    """A text of TOML with this value, of any quotes and escapes."""
    kind = draw.choice(("'", "'''", '"', '"', '"""'))
    plain = all(letter >= " " and letter != "\x7f" for letter in text)
    if kind[0] == "'" and "'" not in text and plain:
        return f"{kind}{text}{kind}"
    quote = kind if kind[0] == '"' else '"'
    share = draw.choice((0, 0.2, 1))
    letters = [_toml_letter(letter, draw.random() < share, draw) for letter in text]
    if quote == '"""' and letters and draw.random() < 0.3:
        letters.insert(0, draw.choice(("\n", "\\\n   ")) if not letters[0].isspace() else "\n")
    return quote + "".join(letters) + quote


def _toml_letter(letter: str, escaped: bool, draw: random.Random) -> str:
    if escaped or letter in '"\\\x7f' or letter < " ":
        wide = ord(letter) > 0xFFFF or draw.random() < 0.3
        return f"\\U{ord(letter):08x}" if wide else f"\\u{ord(letter):04x}"
    return letter


def toml_key(name: str, draw: random.Random) -> str:
    """The name as a key of TOML."""
    return draw.choice(
        (name, name, f'"{name}"', f"'{name}'", toml(name, draw)[:0] + f'"\\u{ord(name[0]):04x}{name[1:]}"')
    )


def json_text(text: str, draw: random.Random) -> str:
    """A text of JSON with this value, with any escapes."""
    if draw.random() < 0.5:
        return json.dumps(text, ensure_ascii=draw.random() < 0.5)
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)) + '"'
