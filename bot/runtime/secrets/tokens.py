"""Finds secrets that are recognized by themselves: by a prefix, by a format, or because a long word is random.

Formats are from gitleaks 8 (github.com/gitleaks/gitleaks, MIT; none of its code is used) and issuers' documentation.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from bot.runtime.secrets.kinds import FoundSecret, SecretKind, words
from bot.runtime.secrets.plausibility import (
    core_length,
    decoded_text,
    has_drawn_characters,
    is_hex,
    is_name,
    is_placeholder,
    is_random,
)

_K = SecretKind
PREFIXES = {
    "aws-access-key-id": (_K.AWS, "AKIA ASIA ABIA ACCA A3T ABSK bedrock-api-key-"),
    "google-key": (_K.GOOGLE, "AIza GOCSPX- ya29. 1//0"),
    "github-token": (_K.GITHUB, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"),
    "gitlab-token": (
        _K.GITLAB,
        ("glpat- gldt- glrt- glptt- glsoat- glft- glffct- glimt- glagent- gloas- glcbt- glrtr- GR1348941 "
        "_gitlab_session="),
    ),
    "slack-token": (_K.SLACK, "xoxb- xoxp- xoxa- xoxr- xoxs- xoxc- xoxd- xoxo- xoxe- xoxe.xoxp- xoxe.xoxb- xapp-"),
    "stripe-key": (_K.STRIPE, "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_"),
    "model-api-key": (_K.MODEL_API, "sk- pplx- gsk_ xai- nvapi- fw_"),
    "npm-token": (_K.NPM, "npm_"),
    "pypi-token": (_K.PYPI, "pypi-"),
    "age-key": (_K.PRIVATE_KEY, "AGE-SECRET-KEY-1"),
    "service-token": (
        _K.SERVICE,
        ("A3- AKCp AKCP API- AQVN ATATT3 ATBB CCIPAT_ CFPAT- CLOJARS_ EAAA EAAC EAAG EAAM EZAK EZTK 4b1d FLWPUBK_TEST- "
        "FLWSECK- FLWSECK_TEST- HRKU-AA LTAI AKID NRAK- NRII- NRJS- PMAK- SG. SK access-development- "
        "access-production- access-sandbox- api_org_ bkua_ cfat_ cfk_ cfut_ cio cmVmd dapi dckr_oat_ dckr_pat_ dnkey- "
        "doo_v1_ dop_v1_ dor_v1_ dp.pt. dp.st. dt0c01. duffel_ eyJrIjoi fio-u- figd_ fm1a_ fm1r_ fm2_ fo1_ glc_ glsa_ "
        "hcaik_ hf_ hvb. hvr. hvs. ico- jina_ key- lin_api_ lin_oauth_ live_ test_ lsv2_pt_ lsv2_sk_ napi_ nfp_ ntn_ "
        "ops_eyJ oy2 p8e- pat pat. pat-na1- pat-eu1- pnu_ pscale_oauth_ pscale_pw_ pscale_tkn_ pul- r8_ rdme_ "
        "rubygems_ s-s4t2af- s-s4t2ud- s. sat. sbp_ sc_ ext_ scauth_ authress_ sgp_ sha256~ shippo_ shpat_ shpca_ "
        "shppa_ shpss_ signkey- sk-lf- sk.eyJ sl. sm_aat_ sm_pat_ sm_sat_ sntrys_ sntryu_ sq0atp- sq0csp- sqa_ sqp_ "
        "squ_ tfp_ tk-us- tskey- xkeysib- xsmtpsib-"),
    ),
}  # fmt: skip
"""Rules by their names: what they find, and the prefixes of its values."""
_BASE64_PREFIXES = words("ABSK bedrock-api-key- whsec_ ops_eyJ glc_ sntrys_ fm1a_ fm1r_ fm2_ cmVmd sc_ ext_ 1//0")
_RULE_OF = {prefix: rule for rule, (_, prefixes) in PREFIXES.items() for prefix in prefixes.split()}
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
FORMATS = (
    ("jwt", _K.JWT, "eyj", 0, r"eyJ[\w\-]{10,8000}+\.ey[\w\-]{2,8000}+(?:\.[\w\-]{0,8000}+)?"),
    ("slack-webhook", _K.SLACK_WEBHOOK, "hooks.slack", 0, r"hooks\.slack(?:-gov)?\.com/[a-z]{8,9}/[\w/+\-]{20,300}"),
    ("teams-webhook", _K.WEBHOOK, "webhookb2/", 0, r"webhookb2/[\w@\-]{30,100}/IncomingWebhook/[\w/\-]{30,120}"),
    ("discord-webhook", _K.WEBHOOK, "webhooks/", 0, r"webhooks/[0-9]{15,20}/[\w\-]{50,90}"),
    ("zapier-webhook", _K.WEBHOOK, "hooks.zapier.com/", 0, r"hooks\.zapier\.com/hooks/catch/[\w/]{10,60}"),
    ("azure-client-secret", _K.AZURE, "q~", 4, r"[\w.~]{3}[0-9]Q~[\w.~\-]{31,34}"),
    ("telegram-bot-token", _K.SERVICE, ":a", 10, r"[0-9]{9,10}:A[\w\-]{34}"),
    ("terraform-token", _K.SERVICE, ".atlasv1.", 14, r"[A-Za-z0-9]{14}\.atlasv1\.[\w\-=]{50,70}"),
    ("mailchimp-key", _K.SERVICE, "-us", 32, r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("maxmind-key", _K.SERVICE, "_mmk", 36, r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("facebook-app-token", _K.SERVICE, "|", 15, r"[0-9]{15}\|[\w\-]{27,40}"),
    ("asana-token", _K.SERVICE, "1/", 0, r"1/[0-9]{16}:[0-9a-f]{32}"),
    ("paypal-token", _K.SERVICE, "access_token$", 0, r"access_token\$[a-z]{4,20}\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("origin-ca-key", _K.SERVICE, "v1.0-", 0, r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,146}"),
    ("password-hash", _K.HASH, "$", 0, r"\$(?:[1-9][abxy]?|[a-z][\w\-]{2,15})\$(?:[\w./+=\-$]|,(?=[a-z]=)){20,400}"),
    ("password-hash", _K.HASH, "pbkdf2", 0, r"pbkdf2[_:][\w\-]{2,10}[$:][0-9]{3,8}\$[^\s\"'<>]{20,300}"),
    ("password-hash", _K.HASH, "scrypt:", 0, r"scrypt:[0-9]{2,8}:[0-9]:[0-9]\$[^\s\"'<>]{20,300}"),
    ("password-hash", _K.HASH, "scram-sha-", 0, r"SCRAM-SHA-[0-9]{1,3}\$[0-9]{3,8}:[\w+/=]{8,64}\$[\w+/=:]{40,200}"),
    ("password-hash", _K.HASH, "sha", 1, r"\{S?SHA(?:256|384|512)?\}[\w+/]{26,140}={0,2}"),
    ("password-hash", _K.HASH, ":::", 66, r":[0-9a-fA-F]{32}:[0-9a-fA-F]{32}"),
)
"""Rules by format: name, kind, a word in it in lower case, how far into the value that is, and the format."""
TOKEN_RULES = frozenset((*PREFIXES, *(name for name, *_ in FORMATS), "prefixed-token", "random-word", "encoded-secret"))
_COMPILED = [(name, kind, word, ahead, re.compile(expression)) for name, kind, word, ahead, expression in FORMATS]

_WORD = re.compile(r"(?<![\w+/.~\-])[A-Za-z0-9_\-+/.~]{14,}+={0,3}", re.ASCII)
_PREFIX = re.compile(rf"(?<![A-Za-z0-9+])(?:{'|'.join(map(re.escape, sorted(_RULE_OF, key=len, reverse=True)))})")
_BODY = re.compile(r"[\w\-]+(?:(?:[.~]+(?=[a-z\-=]{0,20}[A-Z0-9_])|={1,3})[\w\-]+)*={0,2}", re.ASCII)
_BASE64_BODY = re.compile(r"[\w\-+/.]+(?:=[\w\-+/]+)*={0,2}", re.ASCII)
_SHORTEST_BODY, _SHORTEST_UNKNOWN, _SHORTEST_BARE, _LONGEST_BARE, _LONG_LINE = 12, 18, 32, 180, 60
_SHORTEST_AFTER_LETTERS, _SHORTEST_SEGMENT, _MOST_PREFIXES, _LONGEST_CHECKED = 24, 8, 8, 1_000
_ANY_PREFIX = re.compile(r"(?:[A-Za-z][A-Za-z0-9]{0,15}[_.\-]){1,4}")
_TELLING = re.compile(r"(?:^|[_.\-])(?:live|test|prod|key|token|secret|sk|pat|api|tok|tkn)[_.\-]", re.IGNORECASE)
_ESCAPED = re.compile(r"(?:\\[nrt]|%[0-9A-F]{2})\Z")
_FILE = re.compile(r"\.[a-z]{1,5}[0-9]?\Z")
_PUBLIC = re.compile(
    r"sha[0-9]{1,3}-|nonce-|0x|00-[0-9a-f]{32}-|[\w\-]{1,63}\.[0-9]{1,4}\.[a-z0-9]{25}$|AAAA[BCE]|MIGf|MII[BCD][a-zA-Z]"
    r"|MFkw|MCow|iVBOR|R0lGOD|/9j/|PHN2|JVBERi|UklGR|d09GM|UEsDB|H4sI|age1|bafy|Qm[1-9A-HJ-NP-Za-km-z]{44}$"
)
"""How public keys, certificates and files begin in base64; and content identifiers."""
_DIGEST = re.compile(
    r"(?i)(?:sha-?[0-9]{1,3}|md5|h1|integrity|checksum|hash|digest|public[ _\-]?key|fingerprint|nonce|etag|base64"
    r"|signature|csrf\w{0,20})[\"'`)\]]{0,2}[ \t]{0,3}[:=,\-]{0,2}[ \t]{0,3}[\"'`(<]{0,2}\Z"
)
_BLOCK = re.compile(r"(?<![\w+/])[\w+/]{48,}+=?\r?\n[ \t>#*]{0,12}\Z")
_BLOCK_GOES_ON = re.compile(r"\r?\n[ \t>#*]{0,12}[\w+/=]{4,}={0,2}(?:\s|\Z)")
_HEX_TEXT = re.compile(r"(?:[2-7][0-9a-fA-F]|0[9adAD])+")
_URL_LENGTH = 400

Find = Callable[[str], list[FoundSecret]]


def formatted_tokens(text: str, lower: str) -> Iterator[FoundSecret]:
    """Yields what has the format of a secret. `lower` is the text in lower case."""
    for name, kind, word, ahead, pattern in _COMPILED:
        done, at = 0, lower.find(word)
        while at >= 0:
            start = at - ahead
            match = pattern.match(text, start) if start >= done else None
            if match is not None and (kind is _K.HASH or not is_placeholder(match[0])) and _begins(text, start):
                done = match.end()
                yield FoundSecret(start, done, kind, name)
            at = lower.find(word, max(at + 1, done))


def _begins(text: str, at: int) -> bool:
    """Returns whether a token can start here: not inside a word, unless an escaped character precedes it."""
    before = text[max(at - 3, 0) : at]
    ends_word = before[-1:].isascii() and before[-1:].isalnum() and text[at].isalnum()
    return not ends_word or _ESCAPED.search(before) is not None


def random_tokens(text: str, find: Find) -> Iterator[FoundSecret]:
    """Yields long words that begin like a token, are random, or hide a secret. `find` searches a decoded text."""
    for match in _WORD.finditer(text):
        start, word = match.start() + _escaped(text, match), match[0]
        prefixed = _prefixed(text, start, match.end())
        if prefixed is not None:
            yield prefixed
            continue
        word = word.rstrip("./-+~") if word[-1] != "=" else word
        end = match.start() + len(word)
        decoded = _decoded(word)
        rule = _free(text[start:end]) if not decoded else "encoded-secret" if find(decoded) else ""
        if rule and not _is_public(text, match.start(), end):
            yield FoundSecret(start, end, _K.SERVICE if rule == "prefixed-token" else _K.ASSIGNMENT, rule)


def _escaped(text: str, word: re.Match[str]) -> int:
    """Returns how many characters of a word belong to an escape before it."""
    before = text[word.start() - 1 : word.start()]
    if before == "\\" and word[0][0] in "nrt":
        return 1
    return 2 if before == "%" and is_hex(word[0][:2].lower()) else 0


def _prefixed(text: str, start: int, end: int) -> FoundSecret | None:
    """Returns the first token with a known prefix in a word."""
    for match in islice(_PREFIX.finditer(text, start, end), _MOST_PREFIXES):
        prefix = match[0]
        body = (_BASE64_BODY if prefix in _BASE64_PREFIXES else _BODY).match(text, match.end())
        value = body[0].rstrip(".") if body else ""
        if _is_body(value[:_LONGEST_CHECKED], prefix):
            rule = _RULE_OF[prefix]
            return FoundSecret(match.start(), match.end() + len(value), PREFIXES[rule][0], rule)
    return None


def _is_body(value: str, prefix: str) -> bool:
    separated = prefix[-1] in "_-.=~" and prefix != "s."
    shortest = _SHORTEST_BODY if separated or prefix.isupper() else _SHORTEST_AFTER_LETTERS
    if core_length(value) < shortest or is_placeholder(prefix + value) or is_name(value.partition("=")[0]):
        return False
    return is_random(value, 0.2) or (has_drawn_characters(value) and (separated or value.replace(".", "").isalnum()))


def _free(word: str) -> str:
    """Returns the rule by which a word without a known prefix is a secret; empty if it is none."""
    prefix = _ANY_PREFIX.match(word)
    if (prefix is None and len(word) < _SHORTEST_BARE) or _UUID.search(word) or _FILE.search(word):
        return ""
    if is_placeholder(word) or is_name(word) or ("/" in word and not _is_base64(word)):
        return ""
    if prefix is not None and _follows(prefix[0], word[prefix.end() :]):
        return "prefixed-token"
    bare = word.rstrip("=")
    fits = _SHORTEST_BARE <= len(bare) <= _LONGEST_BARE and not is_hex(re.sub("[_-]", "", bare))
    return "random-word" if fits and is_random(bare, 0.3 if bare.isupper() else 0.4) else ""


def _follows(prefix: str, body: str) -> bool:
    """Returns whether a body can be a token's behind an unknown prefix."""
    plain = re.sub("[_.-]", "", body)
    if core_length(body) < _SHORTEST_UNKNOWN or "/" in body or "+" in body:
        return False
    if is_hex(plain):
        return has_drawn_characters(plain) and _TELLING.search(prefix) is not None
    return is_random(body, 0.3)


def _is_base64(word: str) -> bool:
    segments = word.split("/")
    return bool(segments[0]) and not re.search("[_.~-]", word) and max(map(len, segments)) >= _SHORTEST_SEGMENT


def _is_public(text: str, start: int, end: int) -> bool:
    """Returns whether a random word is a digest, a public key, part of a URL, or a line of a longer block."""
    before = text[max(start - _URL_LENGTH, 0) : start]
    _, address, path = before.rpartition("://")
    if (address and not re.search(r"[\s\"'`<>()]", path)) or before.endswith(("base64,", "/")):
        return True
    if _PUBLIC.match(text[start:end]) or _DIGEST.search(before[-60:]) or _BLOCK.search(before[-140:]):
        return True
    return end - start >= _LONG_LINE and _BLOCK_GOES_ON.match(text, end) is not None


def _decoded(word: str) -> str:
    """Returns the text that a word holds in base64 or hexadecimal digits; empty if it holds none."""
    is_text = len(word) % 2 == 0 and _HEX_TEXT.fullmatch(word)
    return bytes.fromhex(word).decode("ascii") if is_text else decoded_text(word)
