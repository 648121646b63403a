"""A pre-aggregation reads the tables of the cubes whose members it names."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.resources.model_tables import stand_on

CUBES: list[dict[str, Any]] = [
    {
        "name": "orders",
        "sqlTable": '"Public"."orders"',
        "preAggregations": [
            {"name": "by_country", "dimensionReferences": "[customers.country]"},
            {"name": "by_channel", "measures": ["orders.count"], "dimensions": ["visits.channel"]},
        ],
    },
    {"name": "customers", "sql_table": "crm.customers", "preAggregations": {"all": {}}},
    {"name": "visits", "sql": "SELECT * FROM public.orders"},
    {"name": "refunds", "sqlTable": "${schema}.orders", "preAggregations": [{"name": "daily"}]},
]


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("orders", ["orders.by_country", "orders.by_channel"]),
        ("PUBLIC.Orders", ["orders.by_country", "orders.by_channel"]),
        ("postgres://host:5432/db/public/orders", ["orders.by_country", "orders.by_channel"]),
        ("snowflake://acme/DB.CRM.CUSTOMERS", ["orders.by_country", "customers.all"]),
        ("staging.orders", []),
        ("public.order", []),
        ("s", []),
    ],
)
def test_table_is_found_by_the_parts_of_its_name(table: str, found: list[str]) -> None:
    stands = stand_on(CUBES, [table])
    assert stands.pre_aggregations == found
    assert stands.unknown == ([] if found else [table])


def test_cubes_whose_tables_are_not_shown_are_named() -> None:
    stands = stand_on(CUBES, ["orders", "nowhere"])
    assert stands.hidden == ["visits", "refunds"]
    unknown, hidden = stands.warnings()
    assert unknown.startswith("No pre-aggregation of a public cube reads nowhere.")
    assert "visits, refunds" in hidden


def test_pre_aggregation_on_two_of_the_tables_is_built_once() -> None:
    names = stand_on(CUBES, ["orders", "customers"]).pre_aggregations
    assert names == ["orders.by_country", "orders.by_channel", "customers.all"]


@pytest.mark.parametrize("table", ["orders", "customers", "cities"])
def test_pre_aggregation_stands_on_all_cubes_of_a_join_path(table: str) -> None:
    rollup = {"name": "by_city", "dimensions": ["CUBE.customers.cities.name"]}
    cubes: list[dict[str, Any]] = [
        {"name": "orders", "sqlTable": "orders", "preAggregations": [rollup]},
        {"name": "customers", "sqlTable": "customers"},
        {"name": "cities", "sqlTable": "cities"},
    ]
    assert stand_on(cubes, [table]).pre_aggregations == ["orders.by_city"]


def test_cube_that_the_metadata_leaves_out_is_named() -> None:
    rollup = {"name": "by_city", "measures": ["CUBE.count"], "dimensions": ["private.city"]}
    cubes: list[dict[str, Any]] = [
        {"name": "orders", "sqlTable": "orders", "preAggregations": [rollup]}
    ]
    assert stand_on(cubes, ["orders"]).hidden == ["private"]
