"""What a form sent, as text: bounded, each field once or as a list."""

from __future__ import annotations

from urllib.parse import parse_qsl

from discreet.desk.errors import Refusal

__all__ = ["PageForm"]

MOST_FIELDS = 500


class PageForm:
    """The fields of a form, or of an address's query.

    >>> form = PageForm(b"sql=SELECT+1&by=ward&by=sex")
    >>> form.text("sql"), form.texts("by"), form.text("epsilon")
    ('SELECT 1', ['ward', 'sex'], '')
    """

    def __init__(self, encoded: bytes) -> None:
        try:
            text = encoded.decode("ascii")
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
        except ValueError:
            raise Refusal(422, "invalid", "The form cannot be read: send it again from its page.") from None
        self._fields: dict[str, list[str]] = {}
        for name, value in pairs:
            self._fields.setdefault(name, []).append(value.replace("\r\n", "\n"))

    def text(self, name: str, usual: str = "") -> str:
        """The last value of a field, without spaces around it."""
        return self._fields.get(name, [usual])[-1].strip()

    def texts(self, name: str) -> list[str]:
        """All values of a field."""
        return list(self._fields.get(name, []))

    def number(self, name: str) -> float | None:
        """A field as a number, none where it is empty; another text is refused by name."""
        text = self.text(name).replace(",", ".")
        if not text:
            return None
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{name} is {text[:40]!r}, but must be a number.") from None
