"""What data there is: where each set comes from, under which terms, how large its files are, and their checksums.

Adult ships with the package. The others are fetched (``discreet data fetch NAME``, ``fetch``) from their public
addresses, or taken from a folder that has them. A checksum is that of what a file holds once it is unpacked, so that
it does not matter who compressed it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DATASETS", "DataSet", "StoredFile", "stored_file"]

_CS208 = "https://raw.githubusercontent.com/privacytoolsproject/cs208/master/data"
_DPCOMP = "https://raw.githubusercontent.com/dpcomp-org/dpcomp_core/master/dpcomp_core/datafiles/1D"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file by its path in the folder; what it holds unpacked; and, if there is one, the address of those bytes."""

    path: str
    sha256: str
    size: int  # in bytes, unpacked
    address: str | None


@dataclass(frozen=True, slots=True)
class DataSet:
    """A set of data: what it is, where it is described, its terms, and its files; none where it ships."""

    name: str
    about: str
    source: str
    licence: str
    files: tuple[StoredFile, ...]

    @property
    def size(self) -> int:
        """In bytes, unpacked."""
        return sum(file.size for file in self.files)

    @property
    def has_addresses(self) -> bool:
        """Whether every file can be fetched; otherwise a folder must hold them."""
        return all(file.address is not None for file in self.files)


def _dpbench(name: str, sha256: str) -> StoredFile:
    return StoredFile(f"dpbench/{name}.n4096.npy", sha256, 32_848, f"{_DPCOMP}/{name}.n4096.npy")


def _mnist(name: str, sha256: str, size: int) -> StoredFile:
    return StoredFile(f"mnist/{name}-ubyte.gz", sha256, size, f"{_MNIST}/{name}-ubyte.gz")


_EVERY = (
    DataSet(
        "adult",
        "UCI Adult: 48,842 people of the 1994 census, 15 columns",
        "https://doi.org/10.24432/C5XW20",
        "CC BY 4.0",
        (),
    ),
    DataSet(
        "dpbench",
        "four histograms of 4,096 cells from the DPBench study",
        "https://github.com/dpcomp-org/dpcomp_core",
        "none stated",
        (
            _dpbench("ADULTFRANK", "d85d9b9fe1ff128820cd103f710200affee71859f721ccb9ecc6e020325e4705"),
            _dpbench("HEPTH", "a39f1283608ac1eae6d1d5bc289e6eb7a42687b765f5f80af1b40566ff853884"),
            _dpbench("INCOME", "2bdb4bb9625d836ad923b280d303860dd12034ef3ae0cf9658e834cb95d8a0c5"),
            _dpbench("MEDCOST", "98ac6a1fb0ccdb0e249a7df49a238145eb971fdbebe1ee805174f99d28ef0dd3"),
        ),
    ),
    DataSet(
        "mnist",
        "70,000 handwritten digits of 28 x 28 grey levels",
        "https://yann.lecun.com/exdb/mnist/",
        "none stated",
        (
            _mnist("train-images-idx3", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", 47_040_016),
            _mnist("train-labels-idx1", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 60_008),
            _mnist("t10k-images-idx3", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 7_840_016),
            _mnist("t10k-labels-idx1", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 10_008),
        ),
    ),
    DataSet(
        "pums",
        "25,766 people of Fulton County, Georgia, in the 2000 census, 18 columns",
        "https://github.com/privacytoolsproject/cs208",
        "public-use microdata of the US census",
        (
            StoredFile(
                "pums/FultonPUMS5full.csv.gz",
                "0fe7af5cb71ff1713b0960c81e87fa1684a6234560353e4d82be8cf854dbce31",
                1_264_220,
                f"{_CS208}/FultonPUMS5full.csv",
            ),
        ),
    ),
    DataSet(
        "shakespeare",
        "1,115,394 characters of Shakespeare",
        "https://github.com/karpathy/char-rnn",
        "public domain",
        (
            StoredFile(
                "tinyshakespeare/input.txt.gz",
                "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                1_115_394,
                f"{_SHAKESPEARE}/input.txt",
            ),
        ),
    ),
    DataSet(
        "warfarin",
        "5,700 patients of the International Warfarin Pharmacogenetics Consortium (NEJM 2009), as CSV",
        "https://www.pharmgkb.org/downloads",
        "CC BY-SA 4.0",
        (
            StoredFile(
                "iwpc-warfarin/warfarin.csv.gz",
                "13c37c04d28bee5c02b2ff55afbc256b11aec74b2d2eea284744dce1af697810",
                1_869_317,
                None,  # it is published as a workbook; other bytes than these
            ),
        ),
    ),
)
DATASETS = {each.name: each for each in _EVERY}


def stored_file(path: str) -> tuple[DataSet, StoredFile]:
    """The file of that path, and the set that it belongs to.

    >>> stored_file("pums/other.csv")
    Traceback (most recent call last):
    ...
    ValueError: name is 'pums/other.csv', but must be one of dpbench/ADULTFRANK.n4096.npy, ...
    """
    every = {file.path: (each, file) for each in DATASETS.values() for file in each.files}
    if path not in every:
        raise ValueError(f"name is {path!r}, but must be one of {', '.join(every)}.")
    return every[path]
