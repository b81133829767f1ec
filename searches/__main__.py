"""``python -m searches [name ...] [--size N] [--seed N] [--part P ...]``: every search, or the named ones.

Each module here has ``main(size)``, or ``main(size, seed)`` where it draws at random: from another seed every time,
which is printed, unless one is given; or ``main(size, parts)`` where it runs in parts. What breaks a promise is saved
(``_cases``), and replayed by the tests.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import secrets

import searches


def main() -> None:
    """Run the chosen searches, one after the other; a found violation raises."""
    names = sorted(item.name for item in pkgutil.iter_modules(searches.__path__) if not item.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m searches", description="Searches for broken promises.")
    parser.add_argument("name", nargs="*", help=f"some of {', '.join(names)}; all of them by default")
    parser.add_argument(
        "--size", type=int, default=None, help="how many cases a search tries; its own default otherwise"
    )
    parser.add_argument("--seed", type=int, default=None, help="where to begin, as an earlier run has printed it")
    parser.add_argument("--part", action="append", help="one part of a search that has parts; may be given again")
    given = parser.parse_args()
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    print(f"seed {seed}: python -m searches --seed {seed} draws the same", flush=True)
    if unknown := sorted(set(given.name) - set(names)):
        parser.error(f"there is no search {unknown[0]!r}; there are {', '.join(names)}")
    for name in given.name or names:
        search = importlib.import_module(f"searches.{name}").main
        wanted = {"seed": seed, "parts": given.part}
        search(given.size, **{key: wanted[key] for key in wanted if key in inspect.signature(search).parameters})


if __name__ == "__main__":
    main()
