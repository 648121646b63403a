"""How many examples the property tests try, and whether each run tries the same ones.

HYPOTHESIS_PROFILE chooses. `quick`, the default: a tenth of the examples, new ones in each run.
`gate`, which `.ci/run` sets: all examples, the same in each run of the same code, so that it
refuses a change for what the change does and never for what was drawn this time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

QUICK, GATE = "quick", "gate"
PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or QUICK
SHARE = {QUICK: 10, GATE: 1}[PROFILE]
FEWEST = 5


def examples(number: int) -> int:
    """`number` in the gate, a tenth of it (at least 5) in a quick run: for `max_examples`."""
    return max(number // SHARE, min(number, FEWEST))


def load_profile() -> None:
    """Make the chosen profile that of all property tests."""
    settings.register_profile(
        PROFILE,
        max_examples=examples(100),
        derandomize=PROFILE == GATE,
        print_blob=True,
        # A busy machine stretches time.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        **({"database": None} if PROFILE == GATE else {}),
    )
    settings.load_profile(PROFILE)
    if PROFILE == GATE:
        # Hypothesis also draws from the literals of our modules that happen to be imported: which
        # ones these are depends on the tests that ran before in the same process.
        providers._get_local_constants = lambda: providers._local_constants
