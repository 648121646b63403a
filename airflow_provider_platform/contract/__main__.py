"""The command: exit status 0 without findings, 1 with some, 2 where there is no document."""

from __future__ import annotations

import argparse
import os
import sys

from airflow_provider_platform.client.catalogue import declared_endpoints
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.contract.compare import compare
from airflow_provider_platform.contract.document import NotADocumentError, read_document
from airflow_provider_platform.contract.explanations import known_explanations, sort_out

ENVIRONMENT_VARIABLE = "PLATFORM_TOKEN"


def main(arguments: list[str] | None = None) -> int:
    """Check the declarations against one document and print the findings."""
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_platform.contract",
        description="Hold every declared operation against an OpenAPI document.",
    )
    parser.add_argument(
        "document",
        help="a YAML or JSON file, or a management address, as https://acme.example.com/api "
        f"(its token in the environment variable {ENVIRONMENT_VARIABLE})",
    )
    parser.add_argument(
        "--all", action="store_true", help="show the differences that are explained, too"
    )
    options = parser.parse_args(arguments)
    try:
        document = read_document(options.document, token=os.environ.get(ENVIRONMENT_VARIABLE))
    except (NotADocumentError, PlatformError) as error:
        print(error, file=sys.stderr)
        return 2
    endpoints = declared_endpoints()
    differences = compare(endpoints, document)
    explanations = known_explanations()
    findings, _ = sort_out(differences, explanations)
    if options.all:
        for difference in differences:
            for explanation in explanations:
                if explanation.covers(difference):
                    print(f"{difference}: {explanation.because} ({explanation.source})")
    for finding in findings:
        print(finding)
    print(
        f"{len(endpoints)} declared operations, {len(differences) - len(findings)} explained "
        f"differences, {len(findings)} findings"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
