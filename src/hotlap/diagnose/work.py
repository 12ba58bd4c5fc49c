"""What a line does, in plain words, told by the library functions that it spends its time in.

Only names of public libraries are known here, never names of a script. Each kind says what it is
called and what a person would do about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.diagnose.costs import Cost


@dataclass(frozen=True)
class Kind:
    """A kind of work. pattern: matched against ``module.function`` and the source expression.

    noun: what it is, for "spends its time in …". advice: what to do, an imperative clause.
    """

    name: str
    pattern: re.Pattern[str]
    noun: str
    advice: str


def _kind(name: str, pattern: str, noun: str, advice: str) -> Kind:
    return Kind(name, re.compile(pattern), noun, advice)


KINDS: Final[tuple[Kind, ...]] = (
    _kind(
        "sleep",
        r"\btime\.sleep\b|(?<![\w.])sleep\(|asyncio\.sleep",
        "sleeping: a wait that the code asks for",
        "remove the wait, or let it overlap with the training",
    ),
    _kind(
        "fsync",
        r"\bfsync\b|\bfdatasync\b|\bos\.sync\b",
        "forcing writes to the disk (fsync)",
        "flush rarely, or leave it to the system",
    ),
    _kind(
        "network",
        r"\b(urllib|http\.client|requests|socket|ssl|aiohttp|urllib3|boto\w*|s3fs|gcsfs)\b|urlopen",
        "network requests to remote storage",
        "cache the data locally, or fetch it ahead with more concurrent readers",
    ),
    _kind(
        "pipes",
        r"\bmultiprocessing\.(connection|queues|pool)\b|\b(pipe|conn)\w*\.(send|recv)\(",
        "talking to other processes through pipes (pickling, and waking each other)",
        "do the work in this process, or send more at a time",
    ),
    _kind(
        "subprocess",
        r"\bsubprocess\b|os\.system|os\.popen",
        "starting other programs",
        "call a library instead, or do it once",
    ),
    _kind(
        "deepcopy",
        r"\bdeepcopy\b|\bcopy\.(deepcopy|copy|_deepcopy\w*|_reconstruct)\b",
        "deep copies of Python objects (deepcopy)",
        "update a copy in place instead of making it anew",
    ),
    _kind(
        "walks through the model",
        r"\bnamed_(parameters|modules|buffers|children)\b|_named_members",
        "walking through the model's modules and parameters by name (named_parameters)",
        "make a list or dictionary of them once",
    ),
    _kind(
        "joining outputs",
        r"nested_concat|pad_and_concatenate|trainer_pt_utils\.EvalLoopContainer",
        "joining the outputs (logits) of all batches so far, again at each batch",
        "keep only what the metric needs (preprocess_logits_for_metrics)",
    ),
    _kind(
        "all pairs",
        r"(\[[^\]]*\bNone\b[^\]]*\]|unsqueeze\([^)]*\))\s*-\s*[\w.]+"
        r"(\[[^\]]*\bNone\b[^\]]*\]|\.unsqueeze\([^)]*\))",
        "the differences of all pairs, written to memory by broadcasting",
        "take distances from torch.cdist or from a matrix product",
    ),
    _kind(
        "collector",
        r"\bgc\.collect\b|empty_cache",
        "explicit garbage collection",
        "drop the call, or make it once an epoch",
    ),
    _kind(
        "checkpoint",
        r"\btorch\.save\b|serialization\.(save|_save)|save_checkpoint|safetensors",
        "writing checkpoints (saving the model)",
        "save less often, or in the background",
    ),
    _kind(
        "image decoding",
        r"\bPIL\.(?!Image\.Image\.(resize|convert|rotate|transform))|Image\.open|imread|"
        r"imdecode|decode_(jpeg|png|image)|\bimageio\b",
        "decoding images",
        "store them smaller or already decoded, or use a faster decoder",
    ),
    _kind(
        "image transforms",
        r"\.(resize|rotate|filter|transform|affine)\(|\bcv2\.|torchvision\.transforms|"
        r"\balbumentations\b|ImageFilter|ImageOps|ImageEnhance",
        "transforming images (resize, rotate, filter)",
        "do it once ahead of the training, or on smaller images",
    ),
    _kind(
        "compression",
        r"(?<!de)compress\(|savez_compressed|_ZipWriteFile|"
        r"\b(lzma|bz2|gzip)\.open\([^)]*[\"'][wax]",
        "compressing data (zip, gzip, lzma)",
        "use the fastest level or none, or do it in the background",
    ),
    _kind(
        "decompression",
        r"\b(zlib|gzip|bz2|lzma|zipfile|tarfile|zstandard|blosc\w*|snappy)\b|decompress",
        "decompressing archives",
        "keep the data uncompressed or in a faster format, and open the archive once",
    ),
    _kind(
        "parsing",
        r"\b(json|csv|pickle|yaml|xml|ast)\b\.?"
        r"(loads?|dumps?|reader|writer|literal_eval|parse)?|\bread_csv\b|"
        r"loadtxt|genfromtxt|\bpickle\.loads?\b",
        "reading and writing text formats or pickles (json, csv, pickle)",
        "do it once, and keep the result as arrays",
    ),
    _kind(
        "tokenising",
        r"\bre\.|\bregex\b|tokeni[sz]|\bfindall\b|\.split\(|sre_",
        "tokenising text (regular expressions, string work)",
        "tokenise once ahead of the training and keep the ids",
    ),
    _kind(
        "hashing",
        r"\bhashlib\b|\bhashlib\.|md5|sha\d+|crc32",
        "hashing data (checksums)",
        "check once, or not at every use",
    ),
    _kind(
        "tables",
        r"\bpandas\b|\.iloc\b|\.loc\[",
        "indexing pandas tables row by row",
        "turn the columns into arrays or tensors once",
    ),
    _kind(
        "plotting",
        r"\bmatplotlib\b|savefig|make_grid|save_image|\.save\(",
        "drawing and saving pictures",
        "draw rarely, or in the background",
    ),
    _kind(
        "logged metrics",
        r"\blogger_connector\b|(?<![\w.])self\.log(_dict)?\(",
        "a framework's bookkeeping for each logged value (self.log)",
        "log fewer values, as one tensor, or once an epoch",
    ),
    _kind(
        "printing",
        r"(?<![\w.])print\(|sys\.stdout|\blogging\b|\blogger\.|\btqdm\b|\.flush\(|\.write\(|"
        r"writerow|writelines|add_scalar|add_histogram|log_metrics",
        "printing and writing logs",
        "log every n steps, and let the file buffer",
    ),
    _kind(
        "reading files",
        r"(?<![\w.])open\(|\.read\(|read_bytes|read_text|np\.load|numpy\.lib\.(npyio|_npyio)|"
        r"np\.fromfile|\bio\.|h5py|lmdb|os\.(stat|listdir|scandir|walk)|glob|torch\.load|sqlite3",
        "opening and reading files",
        "open once and keep the handle, pack small files together, or cache them in memory",
    ),
    _kind(
        "random access to many records",
        r"\bbisect\b|searchsorted",
        "searching for records",
        "index them once",
    ),
    _kind(
        "decompositions",
        r"\b(eigh?|eigvalsh?|svd|svdvals|qr|cholesky\w*|lstsq|pinv|inv|inverse|matrix_exp|"
        r"matrix_power|lu_factor|slogdet)\(|linalg\.(eig|svd|qr|cholesky|inv|pinv|lstsq|solve|det)",
        "matrix decompositions (eigenvalues, SVD, inverses)",
        "do it once or every n steps, or approximate it",
    ),
    _kind(
        "memory map",
        r"memmap|\bmmap\b",
        "reading out of a memory-mapped array (mmap, page by page)",
        "read it into memory once, or store it in the order in which it is read (contiguous rows)",
    ),
    _kind(
        "building arrays",
        r"torch\.(tensor|as_tensor|FloatTensor|LongTensor)\(|np\.(array|asarray)\(",
        "building arrays and tensors: copies, or conversions of Python lists",
        "stack arrays or allocate once, and convert the whole",
    ),
    _kind(
        "formatting tensors",
        r"_tensor_str\.",
        "turning tensors into text (formatting, f-strings, repr)",
        "do it only where the text is shown, or every n steps",
    ),
    _kind(
        "moving values to Python",
        r"\.(item|tolist|numpy|cpu)\(",
        "reading tensors value by value into Python (.item(), .tolist(), .cpu())",
        "keep them as tensors and read the result once",
    ),
    _kind(
        "norms",
        r"clip_grad|\.norm\(|grad_norm",
        "gradient norms computed one parameter at a time",
        "use torch.nn.utils.clip_grad_norm_ or torch._foreach_norm",
    ),
    _kind(
        "histograms",
        r"histogram|\bhistc\b|bincount|confusion",
        "histograms and counts for monitoring",
        "compute them rarely",
    ),
    _kind(
        "sorting",
        r"\bsorted\(|\.sort\(|argsort|np\.sort|topk",
        "sorting",
        "sort once, or only what is needed",
    ),
    _kind(
        "spectral transforms",
        r"\bfft\b|stft|spectrogram|dct\(",
        "spectral transforms (FFT)",
        "compute them once and store the result",
    ),
    _kind(
        "concatenation",
        r"torch\.(cat|stack|hstack|vstack)\(|np\.(concatenate|append|vstack|hstack)\(",
        "growing arrays by concatenation",
        "collect in a list and concatenate once, or allocate ahead",
    ),
    _kind(
        "copies of tensors",
        r"\.(contiguous|clone|to|copy_|float|double|permute|repeat)\(",
        "copies and conversions of tensors",
        "keep one layout and one type, and convert once",
    ),
    _kind(
        "random numbers",
        r"np\.random\.|torch\.(randn?|randint|randperm|multinomial|normal)\b|"
        r"random\.(choices|sample|shuffle)",
        "drawing random numbers",
        "draw them for a whole batch at once",
    ),
    _kind(
        "locks",
        r"\block\b|Lock|acquire\(|Semaphore|Condition|Event\(",
        "waiting for a lock",
        "give each worker its own resource",
    ),
    _kind(
        "numpy",
        r"\bnp\.|\bnumpy\b|\bscipy\b|sklearn",
        "array work in numpy",
        "compute once ahead of the training, in float32, or for a whole batch",
    ),
)


def kind_of(cost: Cost) -> Kind | None:
    """Return the kind of work that takes most of a line's time, or None when it is not known.

    The source expression is asked before the library function that was running inside it.
    """
    votes: dict[str, float] = {}
    for texts, weight in ((cost.expressions, 1.0), (cost.leaves, 0.6)):
        whole = sum(ns for _, ns in texts) or 1.0
        for text, ns in texts:
            for kind in KINDS:
                if kind.pattern.search(text):
                    votes[kind.name] = votes.get(kind.name, 0.0) + weight * ns / whole
                    break
    if not votes:
        return None
    name = max(votes, key=lambda one: votes[one])
    return next(kind for kind in KINDS if kind.name == name)


def region_kind(costs: Sequence[Cost]) -> Kind | None:
    """Return the kind of work that takes most of several lines' time, or None."""
    votes: dict[str, float] = {}
    known: dict[str, Kind] = {}
    for one in costs:
        kind = kind_of(one)
        if kind is not None:
            known[kind.name] = kind
            votes[kind.name] = votes.get(kind.name, 0.0) + one.ns
    if not votes:
        return None
    name = max(votes, key=lambda one: votes[one])
    enough = votes[name] >= 0.25 * sum(one.ns for one in costs)
    return known[name] if enough else None


def is_never_arithmetic(kind: Kind | None) -> bool:
    """Tell whether a kind of work is beside the model, whatever library does it."""
    return kind is not None and kind.name in _BESIDE


_BESIDE: Final = frozenset(
    (
        "sleep",
        "fsync",
        "network",
        "subprocess",
        "deepcopy",
        "walks through the model",
        "joining outputs",
        "collector",
        "checkpoint",
        "parsing",
        "hashing",
        "plotting",
        "logged metrics",
        "pipes",
        "printing",
        "reading files",
        "moving values to Python",
        "formatting tensors",
        "locks",
    )
)
