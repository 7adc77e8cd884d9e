"""Recognizes messages that consist only of thanks or emoji, which are no work for the agent.

A message is thanks if it consists only of the phrases below, at least one of them a thanks. `ok`, `yes`, `no` and
`go ahead` are answers, so no phrase contains them.
"""

import re
import unicodedata
from itertools import product

from bot.domain.context.message_text import with_names

# Which messages hold nothing but emoji: people cheer with them, and no agent has anything to do. Source:
# docs.slack.dev, "Formatting message text": emoji come as `:tada:`, with a skin tone as `:wave::skin-tone-2:`; those
# that somebody's keyboard typed can come as the characters themselves (unicode.org, emoji-data.txt).

_EMOJI = re.compile(
    r":[\w+\-]++:"
    r"|[0-9#*]\ufe0f?\u20e3"
    "|[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff]"
    "|[\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\u200d\ufe0e\ufe0f\U000e0020-\U000e007f]"
    r"|\s"
)


def without_emoji(words: str) -> str:
    """Returns a text with a blank where each emoji was."""
    return _EMOJI.sub(" ", words)


def is_only_emoji(words: str) -> bool:
    """Returns whether a text is made of emoji alone."""
    return bool(words.strip()) and not _EMOJI.sub("", words)


_LONGEST = 120
"""Characters; a longer message says more than thanks."""
_WORD = re.compile(r"[^\W_]+(?:['\u2019\-][^\W_]+)*")
"""A word in letters of any script, which may contain apostrophes and hyphens."""
_COMBINING = "Mn", "Mc"

_THANKS = """
    thanks | big thanks | thank you | thank u | thankyou | thx | thnx | tnx | ty | tysm | tyvm | cheers | many thanks
    kudos | much appreciated | appreciated | appreciate it | i appreciate it
    danke | danke schön | dankeschön | danke dir | danke euch | danke ihnen | vielen dank | besten dank
    herzlichen dank | tausend dank | merci | merci bien | mille mercis | un grand merci | gracias
    muchas gracias | mil gracias | obrigado | obrigada | muito obrigado | muito obrigada | valeu
    grazie | grazie mille | tante grazie | mille grazie
    bedankt | dank je | dank je wel | dank u | dank u wel | dankjewel | tack | tack så mycket | tusen tack
    takk | tusen takk | tak | mange tak | tusind tak | kiitos | kiitti | paljon kiitoksia | dziękuję | dzięki | dziekuje
    děkuji | díky | ďakujem | köszönöm | köszi | mulțumesc | multumesc | hvala | hvala lepa | hvala lijepa
    спасибо | большое спасибо | спасибо большое | дякую | благодаря | ευχαριστώ | teşekkürler | teşekkür ederim | sağ ol
    terima kasih | makasih | cảm ơn | salamat | asante | धन्यवाद | شكرا | شكرا لك | תודה | תודה רבה
    ありがとう | ありがとうございます | ありがとうございました | 谢谢 | 謝謝 | 多谢 | 多謝 | 感谢 | 感謝
    감사합니다 | 고마워 | 고마워요 | 고맙습니다 | ขอบคุณ | ขอบคุณครับ | ขอบคุณค่ะ
"""
_BESIDE = """
    again | so much | very much | a lot | lots | a bunch | a ton | a million | all | everyone | everybody | team | folks
    guys | mate | pagehand | bot | for everything | for that | for this | sehr | beaucoup | viel | much
    great | good | nice | perfect | awesome | amazing | excellent | brilliant | fantastic | lovely | wonderful | superb
    super | cool | neat | sweet | wow | yay | beautiful | love it | lgtm | well done | looks good | looks great
    looks perfect | that's great | that's perfect | that is great | that is perfect | toll | prima | klasse | perfekt
    parfait | génial | genial | perfecto | excelente | perfetto | ottimo | perfeito
"""
_PRAISED_WORK = (
    (*before, praise, what)
    for before, praise, what in product(
        ((), ("for", "the"), ("for", "your"), ("what", "a")),
        ("great", "good", "nice", "awesome", "amazing", "excellent", "quick", "fast", "fantastic"),
        ("job", "work", "help"),
    )
)
_HELP = {(*before, what) for before in (("for", "the"), ("for", "your")) for what in ("help", "work")}


def _phrases(listed: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(_words(phrase)) for phrase in re.split(r"[|\n]", listed) if phrase.strip())


def _words(text: str) -> list[str]:
    """Returns the words of a text, in lower case and without accents."""
    plain = unicodedata.normalize("NFKD", text.casefold().replace("\u2019", "'"))
    return _WORD.findall("".join(sign for sign in plain if unicodedata.category(sign) not in _COMBINING))


_SAYS_THANKS = _phrases(_THANKS)
_SAYS_NOTHING_MORE = _phrases(_BESIDE) | _HELP | frozenset(_PRAISED_WORK)
_KNOWN = _SAYS_THANKS | _SAYS_NOTHING_MORE
_MOST_WORDS = max(map(len, _KNOWN))


def is_only_thanks(text: str) -> bool:
    """Returns whether a recorded text only says thanks."""
    if not text or len(text) > _LONGEST or "?" in text:
        return False
    words, thanks, at = _words(without_emoji(with_names(text, {}).replace("<3", " "))), False, 0
    while at < len(words):
        phrase = next(
            (each for length in range(_MOST_WORDS, 0, -1) if (each := tuple(words[at : at + length])) in _KNOWN), None
        )
        if phrase is None:
            return False
        thanks, at = thanks or phrase in _SAYS_THANKS, at + len(phrase)
    return thanks
