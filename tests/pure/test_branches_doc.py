"""The page on branches lists every argument of `branch_gate`, which has no page of its own."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

from airflow_provider_platform.operators.branches import branch_gate

PAGE = (Path(__file__).parents[2] / "docs" / "branches.md").read_text()


def test_page_lists_every_argument_of_a_gate() -> None:
    table = PAGE.partition("| argument of `branch_gate` |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(signature(branch_gate).parameters)
