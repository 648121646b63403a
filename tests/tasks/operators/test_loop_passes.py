"""Passes of a loop (Airflow 3.4 and later), which have one DAG, run, task and map index."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from airflow_provider_platform._airflow import loop_pass
from airflow_provider_platform.operators.chat import PlatformChatOperator
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


def ask(region_id: UUID | None, region_index: int | None, folder: Path, map_index: int = -1) -> str:
    """Ask in this place of a loop, and return the path of the manifest."""
    context = {**TaskTries().context(), "loop": SimpleNamespace(index=region_index)}
    vars(context["ti"]).update(region_id=region_id, region_index=region_index, map_index=map_index)
    task = PlatformChatOperator(
        task_id="ask", prompt="revenue by country", output_path=str(folder), output_format="csv"
    )
    return str(task.execute(context)["manifest"])


@pytest.mark.parametrize("mapped", [False, True], ids=["a task", "a mapped task"])
def test_three_passes_of_a_loop_write_three_folders(
    mapped: bool, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    loop = uuid4()
    if mapped:  # each pass maps in a region of its own, and the index is that of the mapping
        manifests = {ask(uuid4(), 0, tmp_path, map_index=0) for _ in range(3)}
    else:
        manifests = {ask(loop, number, tmp_path) for number in range(3)}
    assert len(manifests) == 3
    assert all(Path(manifest).exists() for manifest in manifests)


def test_retry_of_a_pass_replaces_its_own_files(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    loop = uuid4()
    assert ask(loop, 1, tmp_path) == ask(loop, 1, tmp_path)


@pytest.mark.parametrize("region", [{}, {"region_id": None}, {"region_id": UUID(int=0)}])
def test_task_outside_a_loop_has_no_pass(region: dict[str, Any]) -> None:
    ti: Any = SimpleNamespace(region_index=-1, **region)
    assert loop_pass({"ti": ti}) is None


def test_mapped_task_outside_a_loop_has_no_pass() -> None:
    """Airflow 3.4 gives each mapped task a region of its own."""
    ti: Any = SimpleNamespace(region_index=0, region_id=uuid4(), map_index=0)
    assert loop_pass({"ti": ti}) is None
