"""The command: exit status 1 where something that is declared breaks, 2 where there is no document,
else 0. What the document only has more is shown and is no break, unless `--strict` says so."""

from __future__ import annotations

import argparse
import os
import sys

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.management.registry import declared_endpoints
from airflow_provider_platform.contract.compare import Severity, compare
from airflow_provider_platform.contract.document import NotADocumentError, read_document
from airflow_provider_platform.contract.explanations import known_explanations, sort_out

ENVIRONMENT_VARIABLE = "PLATFORM_TOKEN"


def main(arguments: list[str] | None = None) -> int:
    """Check the declarations against one document and print the findings."""
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_platform.contract",
        description="Compare every declared operation with an OpenAPI document.",
    )
    parser.add_argument(
        "document",
        help="a YAML or JSON file, or a management address, as https://acme.example.com/api "
        f"(its token in the environment variable {ENVIRONMENT_VARIABLE})",
    )
    parser.add_argument(
        "--all", action="store_true", help="show the differences that are explained, too"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail the check also if the document contains something that is not declared",
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
    breaks = [finding for finding in findings if finding.severity is Severity.BREAK]
    for finding in sorted(findings, key=lambda item: item.severity, reverse=True):
        print(finding)
    print(
        f"{len(endpoints)} declared operations, {len(differences) - len(findings)} explained "
        f"differences, {len(breaks)} breaks, {len(findings) - len(breaks)} additions"
    )
    return 1 if breaks or (options.strict and findings) else 0


if __name__ == "__main__":
    sys.exit(main())
