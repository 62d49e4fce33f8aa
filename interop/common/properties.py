"""Random cases by Hypothesis: it draws them, shrinks one that fails to a small one, and keeps it for the next run.

Two profiles. CI runs few cases, the same ones each time. With BLOOMJOIN_ALL=1 there are many, others in each run: the
run prints their seed, and a case that failed is tried first the next time.
"""

import os
import pathlib
import random
import zlib

import hypothesis
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from common import harness

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bloomjoin-interop"
chosen = None  # the options


def options(parser):
    kept = os.environ.get("BLOOMJOIN_EXAMPLES") or CACHE
    parser.add_argument("--examples", metavar="DIR", type=pathlib.Path, default=kept, help="where random cases that failed are kept; default: $BLOOMJOIN_EXAMPLES or %(default)s")
    parser.add_argument("--count", type=int, metavar="N", help="random cases of each property")
    parser.add_argument("--seed", type=int, metavar="N", help="draws what a run with this seed has drawn")


def use(given):
    """Takes the profile, and the place of everything that Hypothesis writes."""
    global chosen
    chosen = given
    if harness.FULL and given.seed is None:
        given.seed = random.SystemRandom().randrange(2**32)
    set_hypothesis_home_dir(given.examples)
    common = dict(
        deadline=None, print_blob=False, report_multiple_bugs=False, suppress_health_check=list(hypothesis.HealthCheck),
        phases=[p for p in hypothesis.Phase if p is not hypothesis.Phase.explain],
    )  # fmt: skip
    hypothesis.settings.register_profile("ci", **common, derandomize=True, database=None)
    hypothesis.settings.register_profile("full", **common, derandomize=False, database=DirectoryBasedExampleDatabase(given.examples / "failed"))
    hypothesis.settings.load_profile("ci" if given.seed is None else "full")


def hold(t, name, test, ci, full, steps=50):
    """Checks a property: a function of a strategy's values (made by hypothesis.given), or a state machine. Ci and full: how many cases."""
    if t.case not in (None, t.prefix + name):
        return
    settings = hypothesis.settings(max_examples=chosen.count or (full if harness.FULL else ci), stateful_step_count=steps)
    # CI's seed is the name, as tests that are alike would else have the same cases.
    test = hypothesis.seed(zlib.crc32(name.encode()) if chosen.seed is None else chosen.seed)(test)
    try:
        if isinstance(test, type):
            run_state_machine_as_test(test, settings=settings)
        else:
            settings(test)()
        t.ok(name, True)
    except Exception as e:
        again = f"again: --case '{t.prefix}{name}'"
        if chosen.seed is not None:
            again += f" --seed {chosen.seed}; until it passes, this case is tried first"
        t.ok(name, False, "\n".join([f"{type(e).__name__}: {e}", *getattr(e, "__notes__", []), again]))
        t.broken.append(t.prefix)


def varied(t, seen, least):
    """Checks that the cases were not all alike. Seen counts what they had, "cases" among it; least: in which share of them it must be."""
    print(f"      {t.prefix}{dict(sorted(seen.items()))}" + (f", --seed {chosen.seed}" if chosen.seed is not None else ""))
    if t.prefix in t.broken or t.case or chosen.count:
        return  # cases while one was shrunk, or too few
    rare = {what: f"{seen[what]} of {seen['cases']}" for what, share in least.items() if seen[what] < share * seen["cases"]}
    t.ok("cases of all kinds", seen["cases"] and not rare, f"too few: {rare}")


class Draw:
    """What a case is drawn with. A case that fails shrinks: choices to their first option, numbers to the lowest, chances to False."""

    def __init__(self, draw):
        self.draw = draw

    def choice(self, options):
        return self.draw(st.sampled_from(list(options)))

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def chance(self, percent):
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def several(self, options, least=0, most=None):
        """A list of options, each as often as it comes."""
        return self.draw(st.lists(st.sampled_from(list(options)), min_size=least, max_size=most))

    def some(self, options, least=0, most=None):
        """Different ones of the options, in any order."""
        return self.draw(st.lists(st.sampled_from(list(options)), min_size=least, max_size=most, unique=True))


@st.composite
def drawn(draw, make, *args):
    """The strategy of what a function makes with a Draw."""
    return make(Draw(draw), *args)


class Series:
    """Values of a column for any number of rows: numbers of some range, and None, repeated with a step."""

    def __init__(self, d, numbers, most=8, nulls=None):
        nulls = d.chance(40) if nulls is None else nulls
        self.numbers = numbers
        self.cycle = d.several([*range(numbers), *([None] * (1 + numbers // 8) if nulls else [])], 1, most)
        self.step = d.choice([0, 0, 1, 3])

    def rows(self, n):
        w = len(self.cycle)
        return [None if (v := self.cycle[i % w]) is None else (v + i // w * self.step) % self.numbers for i in range(n)]
