"""Bodies of reports and of their placements in spreadsheets."""

from __future__ import annotations

from airflow_provider_platform.sandbox.http import checks

PUBLIC_ID = checks.string(pattern="[0-9A-Za-z]{12}")
_HOST = checks.string(one_of=("GOOGLE_SHEETS", "EXCEL"))
_TEXTS = checks.array(checks.string())
CHECKSUM = checks.structure(
    {
        "v": checks.needed(checks.integer(minimum=1)),
        "chunks": checks.needed(
            checks.array(
                checks.nullable_fields(
                    {
                        "from": checks.needed(checks.integer(minimum=0)),
                        "hash": checks.needed(checks.string(max_length=64)),
                        "to": checks.integer(minimum=0),
                    }
                ),
                maximum=2000,
            )
        ),
        "payload": checks.string(max_length=128),
    }
)
_PIVOT = checks.nullable_fields(
    {
        "columns": checks.needed(_TEXTS),
        "measures": checks.needed(_TEXTS),
        "rows": checks.needed(_TEXTS),
        "filters": checks.needed(_TEXTS),
        "displayScale": checks.string(
            one_of=("model", "absolute", "thousands", "millions", "billions")
        ),
        "measuresAxis": checks.string(one_of=("columns", "rows")),
        "measuresPosition": checks.string(one_of=("before", "after")),
        "showAppliedFilters": checks.boolean,
        "showColumnTotals": checks.boolean,
        "showRowTotals": checks.boolean,
    }
)
_REPORT: checks.Fields = {
    "name": checks.string(max_length=255),
    "title": checks.string(min_length=0, max_length=255),
    "publicId": PUBLIC_ID,
    "folderId": checks.integer(),
    "workbookId": checks.integer(),
    "jsonQuery": checks.string().also(checks.json_text),
    "sqlQuery": checks.string(),
    "meta": checks.mapping,
    "pivotItems": _PIVOT,
    "externalWorkbookId": checks.string(),
    "resultLocation": checks.string(),
    "endResultCell": checks.string(),
    "resultChecksum": CHECKSUM,
    "sheetId": checks.string(),
    "host": _HOST,
    "workbookName": checks.string(),
}
CREATE = checks.nullable_fields(
    {**_REPORT, "source": checks.string(one_of=("GOOGLE_SHEETS", "EXCEL", "PLAYGROUND", "D3"))}
)
UPDATE = checks.nullable_fields(
    {**_REPORT, "placementId": checks.string(), "expectedVersion": checks.integer()}
)

_ADDRESS: checks.Fields = {
    "placementId": checks.string(),
    "externalWorkbookId": checks.string(),
    "resultLocation": checks.string(),
    "sheetId": checks.string(),
    "sheetName": checks.string(),
    "anchorCell": checks.string(),
}
CONNECT = checks.nullable_fields(
    {
        **checks.needing(_ADDRESS, "externalWorkbookId", "resultLocation"),
        "endResultCell": checks.string(),
        "host": _HOST,
        "workbookName": checks.string(),
        "addressOnly": checks.boolean,
        "resultChecksum": CHECKSUM,
    }
)
DISCONNECT = checks.nullable_fields(_ADDRESS)
REFRESH = checks.nullable_fields({**_ADDRESS, "resultChecksum": CHECKSUM})
