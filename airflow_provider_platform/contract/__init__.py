"""The contract check: what the client declares, held against an OpenAPI document.

    python -m airflow_provider_platform.contract platform-api.yaml
    PLATFORM_TOKEN=... python -m airflow_provider_platform.contract https://acme.example.com/api

It looks at every declared operation (method, path, parameters, bodies, answers, enum values) and at
every operation of the document. A difference is either explained in `explanations.json` or a
finding: a break of what is declared, or an addition to it.
"""
