"""Decides whether a value can be a secret, or is a placeholder, a name or code. Each check is linear in its length."""

import base64
import itertools
import re
import string

from bot.runtime.secrets import words

_WORDS = words(
    "abc123 abc123xyz admin changeit changeme default demo disabled dummy empty enabled example false foo foobar "
    "guest hidden letmein login mypass mypassword mysecret mysql mytoken nil none null optional p@ssw0rd pass "
    "passphrase passw0rd passwd password password1 password123 postgres pwd required root s3cr3t sample secret "
    "secret123 string supersecret test test123 testing testpass testtest tiger token true undefined user username "
    "value yes"
)
_SAMPLES = words(
    "4eC39HqLyjWDarjtT1zdp7dc BQokikJOvBiI2HlWgH4olfQ2 16C7e42F292c6912E7710c838347Ae178B4a "
    "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lI Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq "
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw "
    "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe 3ax6xnjp29jd6fds4gc373sgvjxteol0 "
    "192b9bdd22ab9ed4d12e236c78afcb9a393ec15f71bbf5dc987d54727823bcbf "
    "09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7 "
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ QWxhZGRpbjpPcGVuU2VzYW1l czZCaGRSa3F0Mzpn 2YotnFZFEjr1zCsicMWpAA "
    "tGzv3JOkF0XG5Qx2TlKWIA mF_9.B5f-4.1JqM"
)
"""Credentials in the documentation of Stripe, GitHub, jwt.io, Azure, Google, Mailgun, Flask, FastAPI and MDN, and in
RFC 2617, 6749, 6750 and 7617; `_INSIDE` has those with "example" in them.
"""
_BEGINNING = re.compile(
    r"(?i)[$%{<\[(]|@\w{1,60}@|(?:your|my|the|some|an?|any|insert|replace|put|enter|fake|dummy)[_\- ]|your[A-Z]"
)
_INSIDE = re.compile(
    r"(?i)example|placeholder|redacted|secret1234|blahblah|change_?-?me|your[_\-]"
    r"|(?:[_\- ]|key|password|secret|string|token)here\b|x{4}|(?-i:XXX)|\*{3}|\.{3}|…|<[a-z]|\$\{|\$\(|\{\{"
)
_CODE_PATH = re.compile(r"[A-Za-z_$][\w$]{0,60}(?:(?:\.|::|->|\?\.)[A-Za-z_][\w]{0,60})+(?:\(\))?[!;?]{0,2}")
_PIECE = re.compile(
    r"[0-9]{1,12}|[A-Za-z]|[A-Za-z]{1,3}[0-9]{1,4}(?:(?:alpha|beta)[0-9])?|[A-Za-z][a-z]{1,30}[0-9]{0,4}|[A-Z]{2,30}[0-9]{0,4}"
)
_PIECES = re.compile(r"[_\-./:@+=]|(?<=[a-z])(?=[A-Z])")
_LONGEST_NAME, _SHORT_PIECE = 120, 2.5
"""Characters. A random value is split into short pieces, because upper and lower case alternate."""
_REGULAR, _LONGEST_REGULAR = 0.7, 50


def is_common_word(value: str) -> bool:
    """Returns whether a value is a word that is common in examples, or as a password."""
    return value.lower() in _WORDS


def is_placeholder(value: str) -> bool:
    """Returns whether a value is a sample, or a placeholder for a value that the reader has to fill in."""
    return reads_as_placeholder(value) or _is_regular(value) or any(sample in value for sample in _SAMPLES)


def reads_as_placeholder(value: str) -> bool:
    """Returns whether a value contains words or signs that mark it as a placeholder."""
    bare = value.strip("\"'`")
    return is_common_word(bare) or bool(_BEGINNING.match(bare) or _INSIDE.search(bare))


def _is_regular(value: str) -> bool:
    """Returns whether nearly every character repeats, or directly follows in the alphabet, the one before it."""
    beginning = value[:_LONGEST_REGULAR].encode(errors="replace")
    steps = [after - before for before, after in itertools.pairwise(beginning)]
    return max(steps.count(0), steps.count(1)) > _REGULAR * len(beginning)


def is_drawn(value: str) -> bool:
    """Returns whether a value mixes letters and digits, and is neither a name nor code."""
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return mixed and not (is_code(value) or is_name(value))


_HEX = re.compile(r"[0-9a-f_.\-]{2,}|[0-9A-F_.\-]{2,}")
_NOT_CORE = re.compile(r"[^A-Za-z0-9]+")
_CLASSES = str.maketrans(string.ascii_letters + string.digits, "a" * 26 + "A" * 26 + "0" * 10)
_CHANGE = re.compile(r"a(?=[A0])|A(?=[a0])|0(?=[aA])")
_PAIR = re.compile(r"(?=([a-z]{2}|[A-Z]{2}|[A-Z][a-z]))")
_COMMON_PAIRS = words(
    "er re in en te es on ti de nt at se st le or ar an li al ra ri co ed ec me ng ta et la ro io ic ce nd it el ne "
    "ma na tr as ve is to si ns ie pr ad ch ac ge di ss rs am ca il un fi em he pe ni lo ut ur pa da ea ou ll cr id "
    "nc mi po rt us ir os do ct th om ts vi ol ex ab ke ul au ia ha ef sa im ap be sc ig iz pl so ci od sp mp ba mo "
    "va ue cl su bi ai ep ck qu no ei bl rm ot lt ag tt rd fo rn ru ly tu iv lu op sh"
)
"""They are three quarters of the neighbours in words of English documents and names, and a fifth of random ones."""
_MOST_COMMON = 0.5


def is_hex(value: str) -> bool:
    """Returns whether a value consists of hexadecimal digits in one case, perhaps in groups."""
    return _HEX.fullmatch(value) is not None


def is_random(value: str, changes: float) -> bool:
    """Returns whether capitals, small letters and digits alternate at this share of a value's steps (random ones do at
    three of five), and its letters do not follow each other as in words.
    """
    core = _NOT_CORE.sub("", value).translate(_CLASSES)
    return len(_CHANGE.findall(core)) >= changes * (len(core) - 1) > 0 and not reads_as_words(value)


def reads_as_words(value: str) -> bool:
    """Returns whether letters follow each other as in words."""
    pairs = _PAIR.findall(value)
    return sum(pair.lower() in _COMMON_PAIRS for pair in pairs) > _MOST_COMMON * len(pairs)


def is_code(value: str) -> bool:
    """Returns whether a value is an expression of code, a file's path, or a URL rather than a secret."""
    if "://" in value or value.startswith(("/", "./", "../", "~/", "#", "--", "urn:", "arn:")) or value.endswith("("):
        return True
    return _CODE_PATH.fullmatch(value) is not None


def is_name(value: str) -> bool:
    """Returns whether a value consists of words and short numbers, as names do."""
    if len(value) > _LONGEST_NAME:
        return False
    pieces = [piece for piece in _PIECES.split(value) if piece]
    mean = sum(map(len, pieces)) / max(len(pieces), 1)
    return mean > _SHORT_PIECE and all(map(_PIECE.fullmatch, pieces))


_HEX_TEXT = re.compile(r"(?:[2-7][0-9a-fA-F]|0[9adAD])+")
_LONGEST, _LONG = 4_096, 20
"""Characters: no more are decoded, and if as many as the latter are text, then not by chance."""


def decoded_text(value: str) -> str:
    """Returns decoded base64 if it is ASCII text; otherwise an empty text. A short value has to be complete."""
    if len(value) % 4 and len(value) <= _LONG:
        return ""
    whole = value[:_LONGEST].rstrip("=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    try:
        text = base64.b64decode(whole + "=" * (-len(whole) % 4), altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        return ""
    return text.strip("\r\n") if re.sub(r"[\r\n\t]", "", text).isprintable() else ""


def decoded(word: str) -> str:
    """Returns the text that a word holds in base64 or hexadecimal digits; empty if it holds none."""
    is_text = len(word) % 2 == 0 and _HEX_TEXT.fullmatch(word)
    return bytes.fromhex(word).decode("ascii") if is_text else decoded_text(word)
