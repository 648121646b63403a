"""Add, edit and test a connection on Airflow's connection page, as a user does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from airflow_provider_platform.client.connection_fields import EXTRA_FIELDS
from airflow_provider_platform.hooks.connection_type import HOOK_NAME

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from airflow_provider_platform.client.connection_fields import AnyField

_FIELDS = {field.name: field for field in EXTRA_FIELDS}


class ConnectionPage:
    """The list of connections and its dialog."""

    def __init__(self, page: Page, server: str) -> None:
        self.page = page
        page.goto(f"{server}/connections")

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    def add(self, conn_id: str) -> None:
        """Open the dialog for a new connection of our type."""
        self.page.get_by_role("button", name="Add Connection").click()
        self.dialog.locator("input[name=connection_id]").fill(conn_id)
        self.dialog.get_by_role("combobox").first.click()
        self.page.get_by_role("option", name=HOOK_NAME).click()

    def edit(self, conn_id: str) -> None:
        self.row(conn_id).get_by_role("button", name="Edit Connection").click()
        expect(self.dialog.locator("input[name=connection_id]")).to_have_value(conn_id)

    def save(self, conn_id: str) -> None:
        """Save, and wait until the list shows it."""
        self.dialog.get_by_role("button", name="Save").click()
        expect(self.dialog).to_be_hidden()
        expect(self.row(conn_id)).to_be_visible()

    def test(self, conn_id: str, *said: str) -> None:
        """Press the Test button, and wait until the page says the texts in a message."""
        self.row(conn_id).get_by_role("button", name="Test Connection").click()
        toasts = self.page.locator("[data-scope=toast][data-part=root]")
        for text in said:
            expect(toasts.filter(has_text="Test Connection").first).to_contain_text(text)

    def row(self, conn_id: str) -> Locator:
        cell = self.page.get_by_role("cell", name=conn_id, exact=True)
        return self.page.get_by_role("row").filter(has=cell)

    def open_section(self, name: str) -> None:
        trigger = self.dialog.get_by_role("button", name=name, exact=True)
        heading = self.dialog.get_by_role("heading", name=name, exact=True)
        expect(trigger.or_(heading).first).to_be_visible()
        if not trigger.count():  # Airflow 3.4 and later show every section open
            return
        if trigger.get_attribute("aria-expanded") != "true":
            trigger.click()
        expect(trigger).to_have_attribute("aria-expanded", "true")

    def fill_standard(self, **values: str) -> None:
        self.open_section("Standard Fields")
        for name, value in values.items():
            self.dialog.locator(f"[name={name}]").fill(value)

    def fill(self, name: str, value: Any) -> None:
        """Enter one of our own fields, as its kind is entered."""
        field = _FIELDS[name]
        self.open_section(field.section)
        if field.choices:
            self.dialog.locator(f"#element_{name}").click()
            self.page.get_by_role("option", name=value).click()
        elif field.kind == "object":
            self.page.evaluate("text => navigator.clipboard.writeText(text)", json.dumps(value))
            self.dialog.locator(f"#element_{name} .monaco-editor").click()
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.press("ControlOrMeta+v")
            expect(self.dialog.locator(f"#element_{name} .view-line").nth(1)).to_be_visible()
        elif field.kind == "switch":
            if self.shown(name) != value:
                self._switch(name).locator("[data-part=control]").click()
        else:
            self._input(field).fill(str(value))
            self._input(field).press("Tab")

    def type_external_id(self, external_id: str) -> None:
        """Type between the quotes that the session settings begin with."""
        self.open_section(_FIELDS["session_settings"].section)
        self.dialog.locator("#element_session_settings .view-line").nth(1).click()
        self.page.keyboard.press("End")
        self.page.keyboard.press("ArrowLeft")
        self.page.keyboard.type(external_id)

    def expect_shown(self, values: dict[str, Any]) -> None:
        """Wait until every field shows its value: the dialog opens before its values are there, and
        an editor draws its text later still."""
        waited = 0
        while (shown := {name: self.shown(name) for name in values}) != values:
            assert waited < 60_000, f"the form shows {shown} instead of {values}"
            self.page.wait_for_timeout(200)
            waited += 200

    def shown(self, name: str) -> Any:
        """Return the value that a field shows, or the text of an editor that is still drawing."""
        field = _FIELDS[name]
        self.open_section(field.section)
        if field.choices:
            return self.dialog.locator(f"input[name=element_{name}]").input_value()
        if field.kind == "object":
            editor = self.dialog.locator(f"#element_{name} .view-lines")
            text = editor.inner_text().replace("\xa0", " ")
            try:
                return json.loads(text)
            except ValueError:
                return text
        if field.kind == "switch":
            return self._switch(name).get_attribute("data-state") == "checked"
        return self._input(field).input_value()

    def _switch(self, name: str) -> Locator:
        return self.dialog.locator(f"[id='switch:element_{name}']")

    def _input(self, field: AnyField) -> Locator:
        if field.kind == "integer":
            return self.dialog.locator(f"[id='number-input:element_{field.name}'] input")
        return self.dialog.locator(f"#element_{field.name}")
