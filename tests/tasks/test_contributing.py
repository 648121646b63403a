"""The worked examples of CONTRIBUTING work as printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_platform.client import argument_rules
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._arguments import stored
from airflow_provider_platform.operators._base import PlatformOperator, ShortTraceback
from airflow_provider_platform.sandbox.chat.agent import Step

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example(title: str) -> dict[str, Any]:
    """What the code of a section defines."""
    section = TEXT.split(f"## {title}\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(code.splitlines()) < 30
    names: dict[str, Any] = {
        "Any": Any,
        "Context": dict,
        "Iterator": Iterator,
        "Step": Step,
        "PlatformOperator": PlatformOperator,
        "ShortTraceback": ShortTraceback,
        "argument_rules": argument_rules,
        "stored": stored,
        "__name__": "contributing",
    }
    exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    return names


def test_example_of_a_fake_platform_passes() -> None:
    example("How tests simulate the platform")["test_a_connection_that_breaks_after_the_echo"]()


def test_example_operator_works(platform_sandbox: Any) -> None:
    operator = example("Adding an operator")["PlatformRenameFolderOperator"]
    with pytest.raises(PlatformInputError, match="folder_id"):
        operator(task_id="rename", folder_id="x", name="March")
    task = operator(task_id="rename", folder_id=11, name="March")
    assert task.execute({})["name"] == "March"


def test_example_fault_repeats_every_record() -> None:
    steps = [Step({"id": "1"}, "echo"), Step({"id": "2"}, "state")]
    twice = example("Adding a fault to the sandbox")["Injector"]().every_record_twice(iter(steps))
    assert [step.record["id"] for step in twice] == ["1", "1", "2", "2"]
