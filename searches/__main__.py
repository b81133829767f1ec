"""``python -m searches [name ...] [--size N]``: every search, or the named ones;
each module here has ``main(size)``.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import searches


def main() -> None:
    """Run the chosen searches, one after the other; a found violation raises."""
    names = sorted(item.name for item in pkgutil.iter_modules(searches.__path__) if not item.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m searches", description="Searches for broken promises.")
    parser.add_argument("name", nargs="*", help=f"some of {', '.join(names)}; all of them by default")
    parser.add_argument(
        "--size", type=int, default=None, help="how many cases a search tries; its own default otherwise"
    )
    given = parser.parse_args()
    if unknown := sorted(set(given.name) - set(names)):
        parser.error(f"there is no search {unknown[0]!r}; there are {', '.join(names)}")
    for name in given.name or names:
        importlib.import_module(f"searches.{name}").main(given.size)


if __name__ == "__main__":
    main()
