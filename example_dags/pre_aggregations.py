"""Build the pre-aggregations of a month, and prove that they have rows.

Run it after the task that loads the data, so that the first reader of a dashboard does not wait for
the build. A build that is "done" can leave an empty table, which hides the rows that were there
before. So the task succeeds only if the query finds revenue of the month. The query must ask for
a measure of this pre-aggregation: the service answers any other query from the source tables, and
would not show that the pre-aggregation is empty.

The deployment must give its data tokens the API scope `jobs`, which is off by default.
"""

from __future__ import annotations

from calendar import monthrange

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)


def last_day(month: str) -> str:
    """The last day of a month such as 2025-02: `2025-02-28`."""
    year, number = month.split("-")
    return f"{month}-{monthrange(int(year), int(number))[1]}"


with DAG(
    dag_id="pre_aggregations",
    description="Builds of pre-aggregations, verified by a query",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform"],
    user_defined_macros={"last_day": last_day},
    params={
        "pre_aggregation": Param(
            "orders.revenue_by_month",
            type="string",
            pattern=r"^[^.]+\.[^.]+$",
            title="Pre-aggregation",
            description="The one to build, as cube.pre_aggregation. The default is the sandbox's.",
        ),
        "month": Param(
            "2025-03",
            type="string",
            pattern=r"^\d{4}-\d{2}$",
            title="Month",
            description="The partition to build, and the month to verify.",
        ),
    },
):
    build = PlatformBuildPreAggregationsOperator(
        task_id="build",
        pre_aggregations=["{{ params.pre_aggregation }}"],
        date_range=["{{ params.month }}-01", "{{ last_day(params.month) }}"],
        timezones=["UTC"],
        verify_sql="SELECT SUM(amount) FROM orders WHERE month = '{{ params.month }}'",
        deferrable=True,
        timeout=7200,
        retries=2,
    )

    @task
    def report(tables: list[str]) -> str:
        """What a message to the team could say."""
        return f"{len(tables)} tables are built: {', '.join(tables)}"

    report(build.output["tables"])  # type: ignore[arg-type]
