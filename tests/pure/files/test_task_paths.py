"""File names are safe, equal for every try, and never shared by two tasks."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.files.task_paths import query_name, safe, task_folder, writer_id

RUN = "manual__2026-07-20T06:00:00+00:00"


def test_files_are_named_after_dag_run_task_and_query() -> None:
    folder = task_folder("sales", RUN, "group.ask", 3)
    assert re.fullmatch(
        r"sales/manual__2026-07-20T06-00-00-00-00-[0-9a-f]{16}/group\.ask/3", folder
    )
    assert folder == task_folder("sales", RUN, "group.ask", 3)
    one_pass = "loop-1a2b3c4d-2"
    run = task_folder("a", "b", "c").removeprefix("a/").removesuffix("/c")
    assert re.fullmatch(r"b-[0-9a-f]{16}", run)
    assert task_folder("a", "b", "c", loop_pass=one_pass) == f"a/{run}/c/{one_pass}"
    assert task_folder("a", "b", "c", 1, one_pass) == f"a/{run}/c/{one_pass}/1"
    assert query_name(2, "parquet") == "query-2.parquet"


def test_each_pass_of_a_loop_has_its_own_writer_id() -> None:
    passes = [None, "loop-1a2b3c4d-0", "loop-1a2b3c4d-1", "loop-5e6f7a8b-0"]
    assert len({writer_id("a", "b", "c", -1, loop_pass) for loop_pass in passes}) == 4


@given(st.text(st.characters()))
def test_any_name_becomes_safe_for_files_and_object_keys(name: str) -> None:
    found = safe(name)
    assert re.fullmatch(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*", found)
    assert len(found) <= 100


@given(st.text(), st.text())
def test_different_names_stay_different(one: str, other: str) -> None:
    assert (safe(one) == safe(other)) == (one == other)


@given(st.text(), st.text())
def test_chosen_run_id_never_leads_to_the_folder_of_another_run(one: str, other: str) -> None:
    for chosen in (other, task_folder("d", one, "t").split("/")[1]):
        folders = task_folder("d", one, "t"), task_folder("d", chosen, "t")
        assert (folders[0] == folders[1]) == (one == chosen)
