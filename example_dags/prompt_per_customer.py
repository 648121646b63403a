"""Ask the agent about every customer, and send each customer's answer by mail.

The pool limits how many questions the agent works on at once. It must count deferred tasks, or it
has no effect: `airflow pools set platform_chats 4 "Questions at once" --include-deferred`. If the
pool does not exist, Airflow does not start the tasks, and the DAG's timeout ends the run.

Each customer has its own question and its own mail. If one of them fails, its retry repeats only
this one, and the other customers get their mails.

The question names the customer, but it does not limit access: the agent can read everything that
the connection's user may read.

If the parameter "Mail connection" is empty, nothing is sent. The log of `mail` shows the mail.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from html import escape
from typing import Any

from airflow.sdk import DAG, Param, task, task_group

log = logging.getLogger("airflow.task")


def text_of(result: dict[str, Any]) -> str:
    """The agent's answer, and below it the rows of its queries as aligned lines.

    A query that failed is left out. A line says if a query has more rows than the result.
    """
    lines = [result["answer"]]
    for query in result["queries"]:
        if query["error"] is not None:
            continue
        names = [column["name"] for column in query["columns"]]
        table = [names, *([str(value) for value in row] for row in query["rows"])]
        widths = [max(len(row[place]) for row in table) for place in range(len(names))]
        lines += ["", query["title"] or ""]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        shown, total = len(query["rows"]), query["total_rows"]
        if shown < total:
            lines.append(f"The first {shown} of {total} rows.")
    return "\n".join(lines)


with DAG(
    dag_id="prompt_per_customer",
    description="The agent is asked about each customer, four at a time; each answer is mailed",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    dagrun_timeout=timedelta(hours=3),
    tags=["analytics platform", "recipe"],
    params={
        "customers": Param(
            [
                "Dubois 01 <dubois@example.com>",
                "Huber 02 <huber@example.com>",
                "García 03 <garcia@example.com>",
            ],
            type="array",
            minItems=1,
            title="Customers",
            description="One customer on each line: the name, and the mail address in <>. Without "
            "an address the customer gets no mail.",
        ),
        "smtp_conn_id": Param(
            None,
            type=["null", "string"],
            title="Mail connection",
            description="An SMTP connection such as smtp_default. Leave it empty to read the mails "
            "in the log instead.",
        ),
    },
    default_args={"retries": 2},
) as dag:

    @task
    def customers(params: dict[str, Any]) -> list[dict[str, str]]:
        """Replace this function with your own list of customers: a table, a file, another task."""
        parts = [line.partition("<") for line in params["customers"]]
        return [{"name": name.strip(), "email": mail.strip(" >")} for name, _, mail in parts]

    @task_group(prefix_group_id=False)
    def each_customer(customer: dict[str, str]) -> None:
        """The tasks of one customer. Airflow makes a copy of them for each."""

        @task.platform_chat(
            pool="platform_chats",
            deferrable=True,
            max_rows=20,
            # The name that the task has in the UI, in place of a number.
            map_index_template="{{ task.op_kwargs['customer']['name'] }}",
        )
        def ask(customer: dict[str, str]) -> str:
            """The question about one customer."""
            return f"orders per month for {customer['name']}"

        @task(map_index_template="{{ task.op_kwargs['customer']['name'] }}")
        def mail(customer: dict[str, str], result: dict[str, Any], params: dict[str, Any]) -> None:
            """Send one customer's answer. A mail that fails is tried again by itself."""
            text, subject = text_of(result), f"Your orders, {customer['name']}"
            if not (customer["email"] and params["smtp_conn_id"]):
                log.info("Not sent (no address or no connection): %s\n%s", subject, text)
                return
            from airflow.providers.smtp.hooks.smtp import SmtpHook

            with SmtpHook(params["smtp_conn_id"]) as smtp:
                # The answer is text, not HTML: escape it.
                page = f"<pre>{escape(text)}</pre>"
                smtp.send_email_smtp(to=customer["email"], subject=subject, html_content=page)

        mail(customer=customer, result=ask(customer=customer))

    each_customer.expand(customer=customers())
