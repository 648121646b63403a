"""Bodies of reports and of their placements in spreadsheets."""

from __future__ import annotations

from airflow_provider_platform.sandbox.http import shapes

PUBLIC_ID = shapes.string(pattern="[0-9A-Za-z]{12}")
_HOST = shapes.string(one_of=("GOOGLE_SHEETS", "EXCEL"))
_TEXTS = shapes.array(shapes.string())
CHECKSUM = shapes.structure(
    {
        "v": shapes.integer(minimum=1),
        "chunks": shapes.array(
            shapes.nullable_fields(
                {
                    "from": shapes.integer(minimum=0),
                    "hash": shapes.string(max_length=64),
                    "to": shapes.integer(minimum=0),
                },
                required=("from", "hash"),
            ),
            maximum=2000,
        ),
        "payload": shapes.string(max_length=128),
    },
    required=("v", "chunks"),
)
_PIVOT = shapes.nullable_fields(
    {
        "columns": _TEXTS,
        "measures": _TEXTS,
        "rows": _TEXTS,
        "filters": _TEXTS,
        "displayScale": shapes.string(
            one_of=("model", "absolute", "thousands", "millions", "billions")
        ),
        "measuresAxis": shapes.string(one_of=("columns", "rows")),
        "measuresPosition": shapes.string(one_of=("before", "after")),
        "showAppliedFilters": shapes.boolean,
        "showColumnTotals": shapes.boolean,
        "showRowTotals": shapes.boolean,
    },
    required=("columns", "measures", "rows", "filters"),
)
_REPORT: shapes.Shape = {
    "name": shapes.string(max_length=255),
    "title": shapes.string(min_length=0, max_length=255),
    "publicId": PUBLIC_ID,
    "folderId": shapes.integer(),
    "workbookId": shapes.integer(),
    "jsonQuery": shapes.string().also(shapes.json_text),
    "sqlQuery": shapes.string(),
    "meta": shapes.mapping,
    "pivotItems": _PIVOT,
    "externalWorkbookId": shapes.string(),
    "resultLocation": shapes.string(),
    "endResultCell": shapes.string(),
    "resultChecksum": CHECKSUM,
    "sheetId": shapes.string(),
    "host": _HOST,
    "workbookName": shapes.string(),
}
CREATE = shapes.nullable_fields(
    {**_REPORT, "source": shapes.string(one_of=("GOOGLE_SHEETS", "EXCEL", "PLAYGROUND", "D3"))}
)
UPDATE = shapes.nullable_fields(
    {**_REPORT, "placementId": shapes.string(), "expectedVersion": shapes.integer()}
)

_ADDRESS: shapes.Shape = {
    "placementId": shapes.string(),
    "externalWorkbookId": shapes.string(),
    "resultLocation": shapes.string(),
    "sheetId": shapes.string(),
    "sheetName": shapes.string(),
    "anchorCell": shapes.string(),
}
CONNECT = shapes.nullable_fields(
    {
        **_ADDRESS,
        "endResultCell": shapes.string(),
        "host": _HOST,
        "workbookName": shapes.string(),
        "addressOnly": shapes.boolean,
        "resultChecksum": CHECKSUM,
    },
    required=("externalWorkbookId", "resultLocation"),
)
DISCONNECT = shapes.nullable_fields(_ADDRESS)
REFRESH = shapes.nullable_fields({**_ADDRESS, "resultChecksum": CHECKSUM})
