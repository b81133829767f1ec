"""``discreet data``: what data sets there are, and fetching those that do not ship."""

from __future__ import annotations

from typing import Annotated

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli import show
from discreet.cli.help import LEARN, Sections, example
from discreet.cli.options import Json
from discreet.cli.waiting import waiting

__all__ = ["fetch", "list_data", "register"]

Name = Annotated[str, typer.Argument(metavar="DATASET", help="The data set, as 'discreet data list' names it.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FOLDER|URL", help="Take the files from this folder or mirror instead.", show_default=False
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--folder", metavar="FOLDER", help="Keep them here, not in the data folder.", show_default=False),
]


app = typer.Typer(
    cls=Sections,
    help="List and fetch public data sets to try things on.",
    no_args_is_help=True,
)


def register(commands: typer.Typer) -> None:
    """Add the group of commands."""
    commands.add_typer(app, name="data", rich_help_panel=LEARN)


@app.command("list", epilog=example("discreet data list"))
def list_data(json: Json = False) -> None:
    """List the public data sets: what they are, how large, under which terms, and whether you have them."""
    from discreet.datasets.catalogue import DATASETS
    from discreet.datasets.fetching import is_here
    from discreet.datasets.files import data_folder

    if json:
        show.as_json(
            [
                {
                    "name": each.name,
                    "about": each.about,
                    "source": each.source,
                    "licence": each.licence,
                    "here": is_here(each),
                    "files": [{"path": f.path, "sha256": f.sha256, "bytes": f.size} for f in each.files],
                }
                for each in DATASETS.values()
            ]
        )
        return
    for each in DATASETS.values():
        place = "ships with discreet" if not each.files else "here" if is_here(each) else "not here"
        size = f"{each.size / 1e6:.1f} MB, " if each.files else ""
        show.say(f"{each.name:<12} {each.about}", f"{'':<12} {size}{each.licence}, {place}; {each.source}")
    show.say(f"folder: {data_folder()} (the variable DISCREET_DATA names another)")


@app.command("fetch", epilog=example("discreet data fetch adult"))
def fetch(name: Name, mirror: Mirror = None, folder: Target = None) -> None:
    """Fetch a public data set from its address, a mirror or a folder, and check it before it is kept."""
    from discreet.datasets import fetching
    from discreet.datasets.catalogue import DATASETS

    with waiting(f"fetching {name}") as told:
        places = fetching.fetch(name, mirror=mirror, folder=folder, progress=told)
    if not places:
        show.say(f"{name} ships with discreet: dp.datasets.{name}()")
        return
    dataset = DATASETS[name]
    for place, file in zip(places, dataset.files, strict=True):
        show.say(f"{place}: {file.size:,} bytes unpacked, sha256 {file.sha256[:16]}... as it should be")
    show.say(f"terms: {dataset.licence}; {dataset.source}")
