"""Finds secrets that are recognized by themselves: by a prefix, or because a long word is random.

Prefixes are from gitleaks 8 (github.com/gitleaks/gitleaks, MIT; none of its code is used) and issuers' documentation.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from bot.runtime.secrets import FoundSecret, SecretKind
from bot.runtime.secrets.patterns import START
from bot.runtime.secrets.plausibility import decoded, is_drawn, is_hex, is_name, is_placeholder, is_random

_K = SecretKind
PREFIXES = {
    "aws-access-key-id": (_K.AWS, "AKIA ASIA ABIA ACCA A3T ABSK bedrock-api-key-"),
    "google-key": (_K.GOOGLE, "AIza GOCSPX- ya29. 1//0"),
    "github-token": (_K.GITHUB, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"),
    "gitlab-token": (_K.GITLAB, (
        "glpat- gldt- glrt- glptt- glsoat- glft- glffct- glimt- glagent- gloas- glcbt- glrtr- GR1348941 "
        "_gitlab_session=")),
    "slack-token": (_K.SLACK, "xoxb- xoxp- xoxa- xoxr- xoxs- xoxc- xoxd- xoxo- xoxe- xoxe.xoxp- xoxe.xoxb- xapp-"),
    "stripe-key": (_K.STRIPE, "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_"),
    "model-api-key": (_K.MODEL_API, "sk- pplx- gsk_ xai- nvapi- fw_"),
    "npm-token": (_K.NPM, "npm_"),
    "pypi-token": (_K.PYPI, "pypi-"),
    "age-key": (_K.PRIVATE_KEY, "AGE-SECRET-KEY-1"),
    "service-token": (_K.SERVICE, (
        "access-development- access-production- access-sandbox- API- api_org_ ATATT3 bkua_ CLOJARS_ dapi dnkey- "
        "doo_v1_ dop_v1_ dor_v1_ dp.pt. dt0c01. EAAM EZAK EZTK fio-u- FLWPUBK_TEST- FLWSECK- FLWSECK_TEST- fm1a_ "
        "fm1r_ fm2_ glc_ hcaik_ hf_ key- live_ lsv2_pt_ lsv2_sk_ LTAI napi_ NRAK- NRII- NRJS- ops_eyJ oy2 p8e- pat "
        "pat-eu1- pat-na1- PMAK- pscale_oauth_ pscale_pw_ pscale_tkn_ pul- rubygems_ s-s4t2af- s-s4t2ud- sat. sbp_ "
        "sc_ SG. sgp_ shippo_ shpat_ shpca_ shppa_ shpss_ signkey- SK sk-lf- sm_aat_ sm_pat_ sm_sat_ sntrys_ sntryu_ "
        "sqa_ sqp_ squ_ test_ lin_api_")),
}  # fmt: skip
"""Rules by their names: what they find, and the prefixes of its values. Tokens that look random need no prefix here."""
_IN_BASE64 = frozenset(
    ("1//0", "ABSK", "bedrock-api-key-", "fm1a_", "fm1r_", "fm2_", "glc_", "ops_eyJ", "sc_", "sntrys_", "whsec_")
)
_RULE_OF = {prefix: rule for rule, (_, prefixes) in PREFIXES.items() for prefix in prefixes.split()}
TOKEN_RULES = frozenset((*PREFIXES, "prefixed-token", "random-word", "encoded-secret"))

_WORD = re.compile(rf"{START}(?<![_/.~\-])[A-Za-z0-9_\-+/.~]{{14,}}+={{0,3}}", re.ASCII)
_PREFIX = re.compile(rf"{START}(?:{'|'.join(map(re.escape, sorted(_RULE_OF, key=len, reverse=True)))})")
_BODY = re.compile(r"[\w\-+/=]+(?:[.~]+(?=[a-z\-=]{0,20}[A-Z0-9_])[\w\-+/=]+)*", re.ASCII)
_SHORTEST_BODY, _SHORTEST_AFTER_LETTERS, _SHORTEST_UNKNOWN, _SHORTEST_BARE, _SHORTEST_SEGMENT = 12, 24, 18, 32, 8
_MOST_PREFIXES, _LONGEST_CHECKED, _LONGEST_BARE, _LONG_LINE, _URL_LENGTH = 8, 1_000, 180, 60, 400
_ANY_PREFIX = re.compile(r"(?:[A-Za-z][A-Za-z0-9]{0,15}[_.\-]){1,4}")
_TELLING = re.compile(r"(?i)(?:^|[_.\-])(?:live|test|prod|key|token|secret|sk|pat|api|tok|tkn)[_.\-]")
_BLOCK = re.compile(r"(?<![\w+/])[\w+/]{48,}+=?\r?\n[ \t>#*]{0,12}\Z")
_BLOCK_GOES_ON = re.compile(r"\r?\n[ \t>#*]{0,12}[\w+/=]{4,}={0,2}(?:\s|\Z)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PUBLIC = re.compile(
    r"sha[0-9]{1,3}-|nonce-|0x|[\w\-]{1,63}\.[0-9]{1,4}\.[a-z0-9]{25}$|AAAA[BCE]|MIGf|MII[BCD][a-zA-Z]"
    r"|MFkw|MCow|iVBOR|R0lGOD|/9j/|PHN2|JVBERi|UklGR|d09GM|UEsDB|H4sI|age1|bafy|Qm[1-9A-HJ-NP-Za-km-z]{44}$"
)
"""How public keys, certificates and files begin in base64; and content identifiers."""
_DIGEST = re.compile(
    r"(?i)(?:sha-?[0-9]{1,3}|md5|h1|integrity|checksum|hash|digest|public[ _\-]?key|fingerprint|nonce|etag|base64"
    r"|signature|csrf\w{0,20})[\"'`)\]]{0,2}[ \t]{0,3}[:=,\-]{0,2}[ \t]{0,3}[\"'`(<]{0,2}\Z"
)


def secrets_in_words(text: str, find: Callable[[str], list[FoundSecret]]) -> Iterator[FoundSecret]:
    """Yields long words that begin like a token, are random, or hide a secret. `find` searches a decoded text."""
    for match in _WORD.finditer(text):
        start, end = match.span()
        prefixed = _prefixed(text, start, end)
        if prefixed is not None:
            yield prefixed
            continue
        word = match[0].rstrip("./-+~")
        hidden = decoded(word)
        rule = _free(word) if not hidden else "encoded-secret" if find(hidden) else ""
        is_token = rule == "prefixed-token"
        if rule and not _is_public(text, start, start + len(word)):
            yield FoundSecret(start, start + len(word), _K.SERVICE if is_token else _K.ASSIGNMENT, rule)


def _prefixed(text: str, start: int, end: int) -> FoundSecret | None:
    """Returns the first token with a known prefix in a word."""
    for match in islice(_PREFIX.finditer(text, start, end), _MOST_PREFIXES):
        prefix = match[0]
        body = _BODY.match(text, match.end())
        value = body[0].rstrip("/") if body else ""
        if prefix not in _IN_BASE64:
            value = value.partition("/")[0]  # the rest is a path
        if _is_body(value[:_LONGEST_CHECKED], prefix):
            rule = _RULE_OF[prefix]
            return FoundSecret(match.start(), match.end() + len(value), PREFIXES[rule][0], rule)
    return None


def _is_body(value: str, prefix: str) -> bool:
    separated = prefix[-1] in "_-.=~"
    shortest = _SHORTEST_BODY if separated or prefix.isupper() else _SHORTEST_AFTER_LETTERS
    if len(value) < shortest or is_placeholder(prefix + value) or is_name(value):
        return False
    return is_random(value, 0.2) or (is_drawn(value) and (separated or value.replace(".", "").isalnum()))


def _free(word: str) -> str:
    """Returns the rule by which a word without a known prefix is a secret; empty if it is none."""
    prefix = _ANY_PREFIX.match(word)
    if (prefix is None and len(word) < _SHORTEST_BARE) or _UUID.search(word):
        return ""
    if is_placeholder(word) or is_name(word) or ("/" in word and not _is_base64(word)):
        return ""
    beginning = prefix[0] if prefix else word
    body = word[len(beginning) :]
    drawn = is_drawn(body) and _TELLING.search(beginning) if is_hex(body) else is_random(body, 0.3)
    if drawn and len(body) >= _SHORTEST_UNKNOWN:
        return "prefixed-token"
    bare = word.rstrip("=")
    fits = _SHORTEST_BARE <= len(bare) <= _LONGEST_BARE and not is_hex(bare)
    return "random-word" if fits and is_random(bare, 0.3 if bare.isupper() else 0.4) else ""


def _is_base64(word: str) -> bool:
    segments = word.split("/")
    return bool(segments[0]) and not re.search("[_.~-]", word) and max(map(len, segments)) >= _SHORTEST_SEGMENT


def _is_public(text: str, start: int, end: int) -> bool:
    """Returns whether a random word is a digest, a public key, part of a URL, or a line of a longer block."""
    before = text[max(start - _URL_LENGTH, 0) : start]
    _, address, path = before.rpartition("://")
    if (address and not re.search(r"[\s\"'`<>()]", path)) or before.endswith(("base64,", "/")):
        return True
    if _PUBLIC.match(text, start, end) or _DIGEST.search(before[-60:]) or _BLOCK.search(before[-140:]):
        return True
    return end - start >= _LONG_LINE and _BLOCK_GOES_ON.match(text, end) is not None
