"""The desk's pages: what a browser shows to the analyst who asks, the owner who decides and the officer who checks.

They stand on the services of the desk and add no second way to charge: what a page asks goes through
``Service.release`` with a key, as a client's question does. They are made on the server, of templates that escape
everything; each form works without JavaScript; nothing is fetched from elsewhere.

Decision 580.
"""

from __future__ import annotations

from discreet.desk.pages.routes import page_routes

__all__ = ["page_routes"]
