"""``python -m searches._fuzz [target ...] [--size N]``: coverage-guided fuzzing of what reads text from strangers.

Each target runs in a process of its own, with bounds on memory and on the time of one input; what breaks a promise is
printed and kept. It needs atheris: pip install atheris (``make fuzz`` does so), which is why ``make search`` leaves it
out.
"""

from __future__ import annotations

import argparse
import logging
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = 1_000_000
SECONDS, MEGABYTES = 30, 2_048  # of one input; of a process
LONGEST = {
    "sql": 512
}  # bytes of one input: SQL's parser goes back and forth, so that length costs much and finds little


def main(size: int | None = None, names: list[str] | None = None, *, seed: int = 0, longest: int | None = None) -> None:
    """Run the targets one after the other; a violation raises. Of one seed the inputs are the same, 0 draws one."""
    from searches._targets import SEEDS, TARGETS

    for name in names or list(TARGETS):
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(SEEDS[name]):
                Path(folder, f"seed{number}").write_bytes(b"\0" + text.encode())
                Path(folder, f"sentence{number}").write_bytes(
                    bytes([2, *(number * 37 * step % 256 for step in range(1, 99))])
                )
            Path(folder, "words").write_text("\n".join(_dictionary(_words(SEEDS[name]))))
            flags = [
                f"-runs={size or SIZE}",
                f"-seed={seed}",
                f"-max_len={longest or LONGEST.get(name, 4_096)}",
                f"-timeout={SECONDS}",
                f"-rss_limit_mb={MEGABYTES}",
                f"-dict={folder}/words",
                f"-artifact_prefix={folder}/",
                "-print_final_stats=1",
                "-verbosity=0",
            ]
            done = subprocess.run(
                [sys.executable, "-m", "searches._fuzz", "--one", name, *flags, folder],
                text=True,
                capture_output=True,
                check=False,
            )
            kept = [
                file.read_bytes()
                for file in Path(folder).iterdir()
                if file.name.startswith(("crash", "timeout", "oom"))
            ]
        ran = re.search(r"number_of_executed_units:\s+(\d+)", done.stderr)
        peak = re.search(r"peak_rss_mb:\s+(\d+)", done.stderr)
        if done.returncode or kept:
            raise AssertionError(f"{name}: {kept}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        print(f"fuzz {name}: {ran and ran[1]} inputs, peak {peak and peak[1]} MB, no violation", flush=True)


def _words(seeds: tuple[str, ...]) -> list[str]:
    """Pieces of good texts: words, signs, and what stands between commas or blanks."""
    return sorted(
        {word for seed in seeds for word in [*re.findall(r"\w+|\W", seed), *re.split(r"(?<=[,\s])", seed)] if word}
    )


def _dictionary(words: list[str]) -> list[str]:
    """Words in libFuzzer's form."""
    return [f'"{word}"' for word in words if re.fullmatch(r"\w+", word)]


def text_of(data: bytes, name: str, words: list[str]) -> str:
    """A third of the inputs are bytes as they are, a third strings of known pieces, a third sentences of a grammar."""
    from searches._grammar import GRAMMARS, Bytes

    way = data[0] % 3 if data else 0
    if way == 1:
        return "".join(words[byte % len(words)] for byte in data[1:])
    return GRAMMARS[name](Bytes(data[1:])) if way == 2 else data[1:].decode("utf-8", "surrogateescape")


def _one(name: str, flags: list[str]) -> None:
    """Fuzz one target in this process, which ends with it."""
    try:
        import atheris
    except ModuleNotFoundError:
        raise SystemExit("This needs atheris: pip install atheris==3.0.0") from None
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # says of every DROP that it is not read
    with atheris.instrument_imports(include=["discreet"]):
        from searches._targets import SEEDS, TARGETS

        target = TARGETS[name]
        for seed in SEEDS[name]:
            target(seed)  # loads what it needs, so that it is instrumented
        words = _words(SEEDS[name])

    def once(data: bytes) -> None:
        target(text_of(data, name, words))

    atheris.Setup([sys.argv[0], *flags], once)
    atheris.Fuzz()


def run() -> None:
    """The command."""
    if sys.argv[1:2] == ["--one"]:
        _one(sys.argv[2], sys.argv[3:])
        return
    parser = argparse.ArgumentParser(prog="python -m searches._fuzz")
    parser.add_argument("name", nargs="*", help="some targets; all of them by default")
    parser.add_argument("--size", type=int, default=None, help=f"inputs a target; {SIZE:,} by default")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs; drawn by default")
    parser.add_argument("--longest", type=int, default=None, help="bytes of one input")
    given = parser.parse_args()
    from searches._targets import TARGETS

    if unknown := sorted(set(given.name) - set(TARGETS)):
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    main(given.size, given.name, seed=given.seed, longest=given.longest)


if __name__ == "__main__":
    run()
