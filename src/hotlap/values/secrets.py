"""Takes secrets out of command lines and environment values before they are recorded.

Two kinds of evidence count: the *name* that a value is given under (``--api-key X``,
``logger.password=X``), and the *shape* of the value itself (``hf_…``, a signed URL). A value that
only looks random, such as a hash, stays: without a name it is more often data than a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "***"
"""What stands in the place of a secret."""

_ALWAYS_SECRET: Final = frozenset(
    "password passwd passphrase pwd secret secrets credential credentials apikey authtoken "
    "accesskey secretkey accesstoken apitoken authorization bearer".split()
)
"""Last words of a name that is a secret whatever stands before."""

_SECRET_TOKENS: Final = frozenset(
    "access api auth bearer bot comet deploy gh github gitlab hf hub huggingface id login neptune "
    "oauth personal private refresh secret security service session slack user wandb".split()
)
"""Words before ``token`` that make it a credential (``pad_token`` and ``max_tokens`` are none)."""

_SECRET_KEYS: Final = frozenset(
    "access account api auth comet deploy encryption license master private secret service "
    "signing ssh storage subscription wandb".split()
)
"""Words before ``key`` that make it a credential (``--key label`` is a column of the data)."""

_HARMLESS: Final = frozenset(("", "true", "false", "none", "null", "yes", "no"))
"""Values that give nothing away even under a secret's name (``use_auth_token=True``)."""

_SIGNED_PARAMETERS: Final = frozenset(
    "awsaccesskeyid key sig signature sv_sig token x-amz-credential x-amz-security-token "
    "x-amz-signature x-goog-credential x-goog-signature".split()
)
"""Query parameters of a URL, in lower case, that carry or are a signature."""

_SHAPES: Final[tuple[re.Pattern[str], ...]] = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])",  # AWS access key id
        r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}",  # Hugging Face
        r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{16,}",  # GitHub
        r"(?<![A-Za-z0-9])github_pat_\w{16,}",
        r"(?<![A-Za-z0-9])glpat-[\w-]{16,}",  # GitLab
        r"(?<![A-Za-z0-9])sk-(?=[\w-]*[A-Za-z0-9]{16})[\w-]{20,}",  # OpenAI, Anthropic
        r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
        r"(?<![A-Za-z0-9])xox[abeoprs]-[\w-]{10,}",  # Slack
        r"(?<![A-Za-z0-9])AIza[\w-]{35}",  # Google
        r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{30,}",
        r"(?<![A-Za-z0-9])pypi-[\w-]{40,}",
        r"(?<![A-Za-z0-9])wandb_v\d+_\w{16,}",
        r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # JSON web token
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*",
    )
)

_ASSIGNMENT: Final = re.compile(r"(?s)^(-{0,2}|\+{1,2})([A-Za-z_][\w.\-/@]*)=(.*)$")
_FLAG: Final = re.compile(r"^--?([A-Za-z_][\w.\-]*)$")
_URL_PASSWORD: Final = re.compile(r"([A-Za-z][\w+.\-]*://[^\s/:@?#]*):([^\s/@]+)@")
_URL_TOKEN: Final = re.compile(r"([A-Za-z][\w+.\-]*://)[A-Za-z0-9_\-]{20,}@")
_QUERY: Final = re.compile(r"([?&;])([\w.\-]+)=([^&;\s#\"']+)")
_QUOTED: Final = re.compile(r"""(["']?)([A-Za-z_][\w\-]*)\1(\s*:\s*)(["'])((?:(?!\4).)*)\4""")
_PAIR: Final = re.compile(r"(?<![\w?&\-.])([A-Za-z_][\w.\-]*)=([^\s,;&\"'}]+)")
_OPTION: Final = re.compile(r"(?<!\S)(--?)([A-Za-z_][\w.\-]*)(\s+)([^\s\-]\S*)")
_AUTHORIZATION: Final = re.compile(r"(?i)\b(authorization\s*[:=]\s*(?:\w+\s+)?)\S+")
_BEARER: Final = re.compile(r"(?i)\b(bearer\s+)[\w\-.~+/=]{8,}")


def is_secret_name(name: str) -> bool:
    """Tell whether a value under this name is to be hidden.

    name: an option, variable or setting, in any of the usual spellings (``--api-key``,
        ``API_KEY``, ``apiKey``, ``logger.api_key``).
    """
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    words = [word.lower() for word in re.split(r"[^A-Za-z0-9]+", spaced) if word]
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _ALWAYS_SECRET:
        return True
    if last == "token":
        return not before or before in _SECRET_TOKENS
    if last == "id":
        return before == "key" and "access" in words
    return last == "key" and before in _SECRET_KEYS


def redacted_value(name: str, value: str) -> str:
    """Return what may be recorded of a value that stands under a name."""
    if is_secret_name(name) and value.strip().lower() not in _HARMLESS:
        return HIDDEN
    return redacted_text(value)


def redacted_text(text: str) -> str:
    """Return the text with everything in it that has the shape of a secret hidden."""
    text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
    text = _URL_TOKEN.sub(rf"\1{HIDDEN}@", text)
    text = _QUERY.sub(_query, text)
    text = _QUOTED.sub(_quoted, text)
    text = _PAIR.sub(_pair, text)
    text = _OPTION.sub(_option, text)
    text = _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    for shape in _SHAPES:
        text = shape.sub(HIDDEN, text)
    return text


def redacted(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command line with its secrets replaced by ``***``; the number of words stays.

    words: the command line as it was given to the operating system.
    """
    shown: list[str] = []
    before = ""
    is_login = False
    for word in words:
        flag = _FLAG.match(before)
        if flag and is_secret_name(flag[1]) and not word.startswith("--"):
            shown.append(redacted_value(flag[1], word))
        elif is_login and re.fullmatch(r"[0-9A-Za-z_]{32,}", word):
            shown.append(HIDDEN)
        else:
            shown.append(_word(word))
        is_login = is_login or (word == "login" and before.endswith("wandb"))
        before = word
    return tuple(shown)


def _word(word: str) -> str:
    """Return one word of a command line, with its own name (``name=value``) looked at."""
    assignment = _ASSIGNMENT.match(word)
    if assignment is None:
        return redacted_text(word)
    dashes, name, value = assignment.groups()
    return f"{dashes}{name}={redacted_value(name, value)}"


def _query(match: re.Match[str]) -> str:
    mark, name, value = match.groups()
    hide = name.lower() in _SIGNED_PARAMETERS or is_secret_name(name)
    return f"{mark}{name}={HIDDEN if hide else value}"


def _quoted(match: re.Match[str]) -> str:
    quote, name, colon, mark, value = match.groups()
    return f"{quote}{name}{quote}{colon}{mark}{_hidden(name, value)}{mark}"


def _pair(match: re.Match[str]) -> str:
    name, value = match.groups()
    return f"{name}={_hidden(name, value)}"


def _option(match: re.Match[str]) -> str:
    dashes, name, space, value = match.groups()
    return f"{dashes}{name}{space}{_hidden(name, value)}"


def _hidden(name: str, value: str) -> str:
    """Return the value, hidden when its name says so; its shape is not looked at."""
    hide = is_secret_name(name) and value.strip().lower() not in _HARMLESS
    return HIDDEN if hide else value
