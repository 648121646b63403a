"""In the gate, a property test tries the same examples in each run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
DRAW = """
import hashlib, sys
from tests.support.hypothesis_profiles import examples, load_profile
load_profile()
from hypothesis import given, strategies
sys.path[:0] = sys.argv[1:]
if sys.argv[1:]:
    import literals_of_another_module
drawn = []

@given(strategies.lists(strategies.integers()), strategies.frozensets(strategies.text()))
def draw(numbers, texts):
    drawn.append((numbers, sorted(texts)))

draw()
print(examples(400), len(drawn), hashlib.sha256(repr(drawn).encode()).hexdigest())
"""


def draw(profile: str, *folder: str) -> list[str]:
    """How many examples 400 are, how many of 100 were drawn, and a digest of those."""
    file = Path(os.environ["AIRFLOW_HOME"]) / "draw.py"
    file.write_text(DRAW)
    done = subprocess.run(
        [sys.executable, str(file), *folder],
        cwd=CHECKOUT,
        env=os.environ | {"HYPOTHESIS_PROFILE": profile, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_gate_profile_tries_the_same_examples_with_any_imports(tmp_path: Path) -> None:
    literals = [17 * number for number in range(1000, 1200)]
    (tmp_path / "literals_of_another_module.py").write_text(f"LITERALS = {literals}\n")
    first = draw("gate")
    assert first[:2] == ["400", "100"]
    assert draw("gate", str(tmp_path)) == first


def test_quick_profile_tries_a_tenth_of_the_examples() -> None:
    assert draw("quick")[:2] == ["40", "10"]
