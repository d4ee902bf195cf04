"""The generator of random numbers of Go's ``math/rand``, by which the simulator of FGD and PWR draws pods and nodes.

It is an additive lagged Fibonacci generator: every 64-bit word is the sum of the words 607 and 273 before it. A seed
gives the first 607 words: a linear congruential generator changes each word of a table of the library. Seeds count
modulo 2^31 - 1.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from fastsim.errors import InputError
from fastsim_ext.random import exchange

Words = np.ndarray[Any, np.dtype[np.uint64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]

LENGTH, LAG = 607, 273
"""A word is the sum of the words so many before it."""
SEEDS = 2**31 - 1
"""Seeds that differ by this number are the same."""
LOW = np.uint64(0xFFFFFFFF)
"""The lower half of a word."""
SEED_OF_ZERO = 89_482_311
AT_ONCE = 1 << 16
"""Items of a list whose exchanges are computed together."""
STARTING_DRAWS = 10
"""Numbers that the clients of the simulator draw between the pods and the nodes: one for the timeout of each."""
DRAWN = "fastsim.drawn"
"""Metadata of a workload, ``SEED:WORDS``: the seed that drew its pods, and how many words of it are gone."""


class DrawnPods(Protocol):
    """Pods that know the draws that they were made with."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Facts by name, `DRAWN` among them if there were draws."""


class GoRandom:
    """The draws of ``rand.New(rand.NewSource(seed))``, of which the first ``used`` words are gone."""

    def __init__(self, seed: int, used: int = 0) -> None:
        self.used = used
        """Words drawn so far."""
        self._blocks = _blocks_after(_first_words(seed), used)
        self._ahead = next(self._blocks)  # words that are not drawn yet, the next one first

    @classmethod
    def of_run(cls, seed: int, after: DrawnPods | None = None) -> GoRandom:
        """The draws of a run of FGD's simulator with this ``-tuneseed``, without those that made the pods ``after``.

        A run begins with one number for its log.
        """
        drawn = None if after is None else drawn_by(after)
        return cls(seed, 1 if drawn is None or drawn[0] != seed else drawn[1])

    def word(self) -> int:
        """The next 64 bits (``Uint64``)."""
        word = int(self._words_ahead(1)[0])
        self.skip(1)
        return word

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1, which is below 2^31 (``Intn``)."""
        most = SEEDS - 2**31 % bound
        while True:
            drawn = self.word() >> 32 & SEEDS
            if drawn <= most:
                return drawn % bound

    def look_ahead(self, bounds: Integers) -> Integers:
        """The numbers that `below` would give for these bounds, one after the other; `skip` draws them.

        There is at least one. They end before a number that takes a second word.
        """
        bounds = bounds.astype(np.uint64)
        drawn = self._words_ahead(len(bounds)) >> np.uint64(32) & np.uint64(SEEDS)
        refused = drawn > np.uint64(SEEDS) - np.uint64(2**31) % bounds
        if refused[0]:
            self.skip(1)
            return self.look_ahead(bounds)
        count = int(refused.argmax()) or len(bounds)
        return (drawn[:count] % bounds[:count]).astype(np.int64)

    def skip(self, count: int) -> None:
        """Draws so many of the words that were looked at."""
        self._ahead = self._ahead[count:]
        self.used += count

    def shuffle(self, items: Integers) -> None:
        """Exchanges every item from the last to the second with one at or before it (``Shuffle``)."""
        last = len(items) - 1
        while last > 0:
            others = self._exchanges(last)
            exchange(items, others, last)
            last -= len(others)

    def _exchanges(self, last: int) -> Integers:
        """The places with which the items at ``last`` and before are exchanged, up to one that takes a second word."""
        bounds = np.arange(last + 1, max(last + 1 - AT_ONCE, 1), -1, dtype=np.uint64)
        products = (self._words_ahead(len(bounds)) >> np.uint64(31) & LOW) * bounds
        low = products & LOW
        refused = low < bounds
        if refused.any():
            refused &= low < np.uint64(2**32) % bounds
        count = int(refused.argmax()) if refused.any() else len(bounds)
        self.skip(count or 1)
        return (products[:count] >> np.uint64(32)).astype(np.int64)

    def _words_ahead(self, count: int) -> Words:
        """The next words, in their order; nothing is drawn."""
        if count > len(self._ahead):
            blocks = [self._ahead]
            while sum(map(len, blocks)) < count:
                blocks.append(next(self._blocks))
            self._ahead = np.concatenate(blocks)
        return self._ahead[:count]

    def permutation(self, count: int) -> list[int]:
        """A random order of 0 to `count` - 1 (``Perm``)."""
        order: list[int] = []
        bounds = np.arange(1, count + 1)
        while len(order) < count:
            places = self.look_ahead(bounds[len(order) :])
            self.skip(len(places))
            for place in places.tolist():
                number = len(order)
                order.append(number)
                order[number], order[place] = order[place], number
        return order


def drawn_by(pods: DrawnPods) -> tuple[int, int] | None:
    """The seed that drew these pods and the words that are gone of it; None if nothing was drawn."""
    noted = pods.metadata.get(DRAWN)
    if noted is None:
        return None
    if not re.fullmatch(r"-?\d{1,30}:\d{1,9}", noted):
        raise InputError(f"workload: {DRAWN}", repr(noted), "the seed of its draws and their number, such as 42:10919")
    seed, words = noted.split(":")
    return int(seed), int(words)


def _blocks_after(recent: Words, used: int) -> Iterator[Words]:
    """The words that follow 607 words, without the first ``used``, in blocks of at most 273."""
    while True:
        fresh = recent[:LAG] + recent[-LAG:]
        recent = np.concatenate((recent[LAG:], fresh))
        if used < LAG:
            yield fresh[used:]
        used = max(used - LAG, 0)


@lru_cache(maxsize=16)
def _first_words(seed: int) -> Words:
    """The 607 words before the first draw, in the order in which the sums take them."""
    states = np.uint64(seed % SEEDS or SEED_OF_ZERO) * _powers(20 + 3 * LENGTH) % np.uint64(SEEDS)
    parts = states[20:].reshape(LENGTH, 3)
    mask = parts[:, 0] << np.uint64(40) ^ parts[:, 1] << np.uint64(20) ^ parts[:, 2]
    table = np.frombuffer(base64.b64decode(_TABLE), "<u8") ^ mask
    words: Words = np.roll(table[::-1], LENGTH - LAG)
    words.flags.writeable = False
    return words


@lru_cache(maxsize=1)
def _powers(count: int) -> Words:
    """48,271 to the powers of 1 to ``count``, modulo 2^31 - 1: what the generator multiplies a seed by."""
    powers = np.array([48_271], np.uint64)
    while len(powers) < count:
        powers = np.concatenate((powers, powers * powers[-1] % np.uint64(SEEDS)))
    powers = powers[:count]
    powers.flags.writeable = False
    return powers


# The table `rngCooked` of Go's math/rand (src/math/rand/rng.go) as little-endian words in base 64.
# Copyright 2009 The Go Authors, BSD-3-Clause.
_TABLE = (
    "6v+Y6zNK98VbX5a6QUp7wA+vgcsTxV4T65VDp1z7BEqOzxB3HIPop8PBN4/o5F19qYX/Q3fPIWNh+Z9qVQbLQtLX6EDRyCZuoPoRNB9Rp0lVUKYi"
    "SXftcVwt6l/Gn1ydaEMBSjmrvT8LNJJpWTP6cAJqps5O+xCuitG8i6m8n/esgKMuscz3lxsr88qU15EBryzjJDQyaj8rFAEfksxCxmiA80+fhiKh"
    "IDmvJxGjsaWWncK9+aQHW4YlgSk8lypq4VJ699szpGqeyYo7biGUg3yZW1HFqYDbaffL8+/ywwMMIf/uMeS1pvVTKZk0U8gO6dEQ3zIUai5JsdFZ"
    "mWLkvVF5OHY4TJlnY66bVWHUFQ53oNLpxJa/vfMg2mqGYk+wv5fbRhbakCF6lTIYPIdxUEuQ2hk6UDs+KIXH8qWI4zN36NAZrAvHvnLwG/hwaSUA"
    "hqhP9hSK0fdMc9S0ePlupI6nJzFX8S94puub1QobJAAvW+kfWUnF2jktTIjy+pVhXTTvsL0rnFYe4oxQOWCLC7vSNVRwdhXv99jx9QqQXh031H99"
    "GC2QHnnr4I98eyJ/mLvrAWIOeThx4SJ5rI6BREDT2lDF1lgGmpZyzJS4v4S9KbPjQVGFp0bnurFWFbOcSW9o+QSQoDxph1B+bRRQDHDJWpP/2DXN"
    "2FQVqrQYmN6g2jNk/X7zTVbgsgWt6ZH1KT742wvrZxfymVJTknIkuOtMXlqXRea6K8M7XBV46uxu6KxXU14pTgi7rU+aapCLyWNE9moIUP381hn9"
    "rIUDrZ860eGl1Oa7nAObtzOfCfw1WgyEJCJ42c8a1UW8OE4XPk7eVJ8v+FMO77OHCvoN4WmXQ3vs2QnqEVBMzMfDnlHV4xPED5lHC+Jbzs9+4Ac/"
    "viIZt7jQ0qVhx3zIH+oeRd3W8ffeXlDIBekcAI7Xbvu6aPRENgrM19ApRC7bMcIU0z2UkJrNHOLRwo8o9WlIZrWPFk5gb8Xd9vqxsKvkUUEnuafO"
    "6EeW7N5hvn0YQqd2PA54SUCNd4AT5GzCRkRxkgtw5xnAW0dlF23YYB14CA7gcfXV6Q8Pn1duiDO/Ym5H5rROUv8McYylmTiepVboJJoYg1eLfJ9U"
    "FAACBpxTCJhnVFGy7ln8uBSmmYSL/4/zIlI9OucrpvU4SEwrg4KLUN74L2jHnxD1DD/FXPGtHNMmWGtACQVywfqWvBBScQDp+5PTNjX+BAdK+67M"
    "bptcxhlAvpIwx6+L6ol415m18AebWPq4SQreGPAPg8lxThcv3YVnooC3cLS+YrEjYbemICKDxc0kve+RIyazJlC3e/vQBB+arxw90CHprrwJ+fCl"
    "C44cne18qkb5tmJ6nqfY/BQ/6LwFz8Q6xDegCKB5xUXQEnlSjohTQBd7nyiyoI/42r0CIF2v+1GER8oSqAPkilCknzI3on4NCPK2Ar8EP8sz7TmK"
    "PmSWxxlkW9ee15L9rOhYssghaCEx6UZ7/zo96Wort/yMhbA2ZxH/5588Xq6lwhw5lcP0KnZ2628H/cTmc+ftMfu171Cu/NtZMyR/bdsPDjRA55Nx"
    "kt3GpHMf9Y9mqRz6bktTlEEN1yBFcmrAkgUSGb0WzTDc1iwMWGtFje8phGoNvGJcXjnpuKlOdEjhroRcghTvGDTicTq3Mh5KwChSxCdv7g+h5NLg"
    "Oy5ORghg4YL0Z7sjJ3Mk6EG1EQ/Xryp9DPl9rho5LBSW9OFUdEL6JfYOQB0Tns4QZpYGmdrMwdc0WUUiIJLatzlCQeZWVSf2kZCftL2KKGQ9a5GC"
    "oG8Gx6HQUp+h8Iz7bGYqZIOtY7AdmJ2MSn62WGGi32PfwuzrNv48zv9kU6Ur6+S20Rd3DZ4X0m/bRyI2t6JxuTvFENUlz+XbYVJzc60oD5OL638E"
    "Ad2VWlq0WHNAsa0wgxBMeHZHtH8GVAfr9OggG9nAx7ZAXyfcJw97pt34LXOFyITErzcmtjH2i4NJhslhWH8nMO4fBt9VFKwtBSLTlemueOSGBNN6"
    "RdHOSh8iZzK4ZjUsBQeYR7mgfqdQUwKo05wW/MJ+GkIApylRsDonV/JDn3H79+S6SL+46FfYWxxZ83FpGJTV2hRwQpytilE/GIKOzLjDQ0y335Jv"
    "VrofmKzANVTFqqwHj7zLOBCIsF9zur5sVbVD8tSf5zswnxRjdSRxH0PeqvZLwsu2V6XSTHLeacF1abwhNIF2DPSM98qfFRJKYt088T4NORsE0HPV"
    "BuitO9mL6mnyYc14Pa+LV8mdaH86qRgzNVK+vRxQpy0AErGbjERtW7Qx8mbKZmUD5De34ulRnrjPaJscVIdGcMk3KV2jKN8otbBEaXWy/oucTiPC"
    "Q0HCKY8GAo1Pef30feUV32jwkAUJwI2rrZit5AaklIGCsVVBP3T/1CcwRs5FCOxoESMG0znDwIZJmAGuWg6YVjaYYcwaBT2vErK0tnrhbHBK8apw"
    "QDrelcnLRzVfVujp2bgCYjSs2x0Y6kmKQc5TKLm8p1M6b6FGJROqomIoyUtjZsHWcaCTvM5q/5JR6mypgDJAeiRaZoGPOxhaZOTA0oBMKyKmOrpY"
    "TT2ehWPlL8uJg6K55P4SlbgMooO9DLNhsJHWywmfrPP4ujmIuMTR7bMD310J7YLLxJQm9mDTm4e5A8bQV2ZCgPfaWIWrMp5iG9t/yOEvhhbVOHnX"
    "AOxZJ5ZWOuPZkEsXL8gbBYZc0srrXTur2zWb3dBrdqiHFMqDtiZfQlP2dqBAKzxdNNb4corpZHRBeE7qPt0CL3d4UkLof5dAYh0rktQa8Psp6k6L"
    "KpyVygI4UxChfMpp2XskV2NJNmsysqdcZAd8f3tn4wqlP8a42Ec5cHT9t6B54IzcoLEfI3duybdCM7YWJ4Dm1wmpOc3d7MoZW2gnFE23kY7SbJyc"
    "VDoNDnn7wZERthu4vdNnfhHi9okN/JbTIutJsPusfkXVTWX1m5fhHcooXVinbENdedkYMobi19NFFp3PPL6nL7DMnnvhp7cfgsIp2c4fKysNMWRe"
    "N5Ba2L19IhEWajPLzXD4uvUlaWNecYRLJdDgQ0eSIXd1xQ4Icdn7WA/kXhfhvK1bNsx4PZUykIN2oJWEUztqOdPAiY+miNiIHKibY4GnXHecja8/"
    "kyidUT8NxOrEfd/H2DH+AdvWfTgDgG0DlwoiaPchBowHJwh6zKjWWWB1RvgqV+oqw/n9yTYBkRzihRMR/t0+x9+Ho6aiue15+/bF3HrRVtXHoyhr"
    "+Qkn92rOjULwaS1VFsKSmr60u5xdHPTK9q43T5ip180QEUPTyh3Ms+UdfDzZq15ipxGDBCweqAy0HORe/L8d5WhbOEP/ovnUcB9q01zLsCe5zOrK"
    "5BDgY0Gu3T/gHsmoUlR/DssMl1hUMWF+dUwFEAscgosIBoT5Ec9ExE1rL2CntzYlf/kmodWGFzOT23KDcM2pydpRJFQHWufXBJFlKA2h5aSv5rj4"
    "y+skkCMl84AzfBMIX0JeqRgRozIeK4BAYQtkvV8cK/HQPH6Wp7m6f+iJEANBCD66s/sb8WvTHA2tw387w1m3aNn0sr8C0gVJVnWETIP6NmIqC6jg"
    "4zqDGme4pYaN5Y/rKIhgeRfnIVefyysD3hZ+3OUk0hKV1OBRgovmKaMIywh1SsArJZ0ySKY1+IWoGeyX95knTRDt8nbArTpEF2fkd+J9NYlsnTy2"
    "rgd5rzVb2wTga84n2PFb2SgCv5tjs+Ele+ExriW5fZWeQukjJWh+PKtfDpUzWZ+/cTbqKiwQMjlD79Kywch/xx7Sfg1HYo70gBJf6kKuEfPNR7cX"
    "joP6qQ4GAeCE/MxbjFCnrGP5BD+EoKqjpdPr6KT3Sfls30H93muHInye5gdPciTBtKZaPfINR7+4kPWZIDWYKT1llVj0kMwR0fgoq6ENVQPbNBsr"
    "XMxCeACErJQ2m7cILG75hAvVcr+Q9Qjr+HlwlHIIBYIht2xpp9U2rMlbiNThl/55tYi4bP3kBFIQgpRiATe5Fgh57zxWZRO+JnqnvSio3RQTho/7"
    "z1uuA7i3oghAMTLQHqnI0z7sZ7igAQCH5d2TsPnB9uR4gwu87GsIjsf8b8CXUXWe+ATyNO4FZyRMJhbVgnWSxzwTRnWke+Gz4rSqXBsRP6NeJUMU"
    "Fo49opyB0ESzKPFITSCrOfsi0WyqNo8jvxApXLqbX+AQrK6QyirkD7C2VJ3LzQ96OGSP6Ak2RwFfIFrELci4to7taMesI/1DDZIl8mR5gYparb0l"
    "q1oBue+cvH49c+qkj+cePKQieXXRhQ7jIf6B4MU9EmFmTmd5EMGG3Pu5Grk/lxiJKoxtylXu1AC1tRVSbUcA1Spt6uKzaFD8hcsj3RCpXSBbd582"
    "EV6bl9fqZX10csgr553BKqqDupbVa6DTEIcloudDkxbZ+7wCc2JrJJnN7ogCAzwtGzBLI7/sMQldCWE8mETkU+Lq+8EQiNI5btX4m3AnhXUyXgLv"
    "bbKlxjvYgTtrp1hz8ToOdDd4IQxhkQRauntw6U7ANLIkwxLPgXTW6N8U3hIHqME9BeRlYgXNRpYj4l3+hVvtyQDKFJUw5jTAvek16qmxXKVMzxgU"
    "rF1Yg/od53q25r/GmBWElYBq3u3TCGGmdIBHjMQBJkko+/RJuKznZZoeH2xfo6PgIPLDRH4NFqyXJ0LEFSytEVrVvqmNrFLeLL69KQz7OBbQbkii"
    "WFCij90f6XtQzxghSskGbeVJtvy58hm+Aufv3dAQo21waOd/Gda0nWPrhNRt6aihFln4gv09gKJGTGTXRAoaOmKqUrWLGCUaEb0gxhirPvqZ6hDd"
    "Tk/SM2zMNmUlOW046KEr+551fmBxYGx8Pbseki9pho8Ia7qWedL+6uoqvbKsEKvz3sIMtyvbtrCEEhwrkv+9W9vE1NceJKCgkIFbP67PYH5F9nkb"
    "kR4YlIwxXKDV4zOwcaaANFWnuvtelXl117DG0PbJdydDLGb2wiEPKrybhkW8tIbCSdJuyLFm4j3FQgnojkeWBRuu5i6LYdNvd+pdPjoHCD+vcW4d"
    "0Ed4Dv6q+8SvgR/NQMl4B8ZxviQhlmoE37bCHc9sD5WTTpTQB0CjHgRnx+LGdmUgyfkbUlFecdcremuGQTZ5jDx1l3rkZUp4GazaUuv3c3wLEdMH"
    "tynEvD8na6YKVHVayC0wFt7kVgpw00DI/1vQ/ANTh9aIJeOlBu2+qzpqY/gmZYp1OCDm6Np6vgEK9MRbx760ycPBnwrOaXrcZKrbCjyFP/m21TmO"
    "ZbhIvoXLB/OIzDNSBORGZ1aM9IGSERE+Lyvn5tUzQ3tdreNuXuNEvwr46zssN5Yp+j1PMk8p04TVAAmmyBfg0weXs8838lYKCdE800NdYOXHeuH6"
    "GUStDm8QwMi+YCp7A6i7iX1VphI8mJlpUWP81Imy7CkijYgIwz5O3KdWEXyMGJIkEFr4HHgCZUdEC8Gxs11djrceqTti9r8VZZzwo7soanHxMC/J"
    "B3b0162dhzR4kASemXDblZfFEaajinUVQ8d0mjkybxFATG1T0Jeth8WaU1LDWYnydRYaHySDnmH1eG2MrffvY+XP8SodS8nlEiKdPx+2N3tGPQJ+"
    "a+nuq612q/rRYmuS2V35z3bbciGmeKI6Z8jIGeWrgpl+hfXxjRHCNIBsE0C2dnP6L96aokzQp5h+53dNsBSfbaFH7YsErT1LMTIdk+TlnkwKPfND"
    "pev0uibZc3Ogrzp5Mpqz5g+mbpjmYWNmTzQf48tJwETcvhzyA1Re66BS98QgBUF94pkbr93DuOWgQCdZl2xE+6VO/ASm569Hf1huraSEg3sTLFTe"
    "XB4wew/8Dyr0il0KMEcFgnnAfQjCOcbTtiuacKh8RgreNtq0a7tC4nYDyR5TsHlg90MY3JjPjAXBrhGwF7QXhBtk3fBP3d7sMuhJIyiHN4z76OcW"
    "iLvw1fTC2A9IULaFbQt2T3OqRX0UCNJThUJiWcTnaBmgKw5AAGD3o7kZfgcMA2Rhj1UXHZ/F5sBIMXV5Q9g77/LSd5pv4QGHjbhuZmiGKDTO53JV"
    "B9aRVLGCjetUvusap2XCdweePm/d3UdJhlV5XGP+jWKb+T/UOT5nIiL1jMdtCH5jZpx+n2bjN+446K+kR7vXkr234tvfq54f0cG18mrKTzIpG1tS"
    "UqHkWQ50dY0K0ZF82JXKfzpTfMzbsYZz9/tmEr3D0Ua6ZppoGnC1JLFx1ktNwK6eCv1DLFVl4eQXMRRYI6xIErvFWIPFCuOAvXf2qo9/8KQncpn8"
    "UOGwnF3MSKhBm+SwHnEKZHg5yh2gv/xkhMdr/y+rCphe5kKqUGdcOfTzlZZM6n8oikL2SRc2FpWUIZ+ZktV3yfhfk/bZZlHEqRxDj6ID9afsEL5R"
    "w6PTUemWKBaA4Hn1JCggWzjpteUMxrBZSh66+weyqilYZd6oLjiLx40E3uHX33rMllpTdDvwXnOboVd+xiXAMToKoDk="
)
