"""Recognizes messages that consist only of thanks or emoji, which are no work for the agent."""

import re

from bot.domain.commands.signs import latin

# Source: docs.slack.dev, "Formatting message text": emoji come as `:tada:`, with a skin tone as `:wave::skin-tone-2:`;
# those that somebody's keyboard typed can come as the characters themselves (unicode.org, emoji-data.txt).
_EMOJI = re.compile(
    r":[\w+\-]++:"
    r"|[0-9#*]\ufe0f?\u20e3"
    "|[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff]"
    "|[\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\u200d\ufe0e\ufe0f\U000e0020-\U000e007f]"
    r"|\s"
)
_LONGEST = 120
"""Characters; a longer message says more than thanks."""
_AROUND_WORDS = "!\"'()*,-.:;_`~\u2013\u2014\u2026"
_THANKS = """
    thanks thankyou thx thnx tnx ty tysm tyvm cheers kudos appreciated danke dankeschön dank merci gracias obrigado
    obrigada valeu grazie bedankt dankjewel tack takk kiitos dziękuję dzięki děkuji díky ďakujem köszönöm mulțumesc
    hvala спасибо дякую благодаря ευχαριστώ teşekkürler teşekkür धन्यवाद شكرا תודה ありがとう ありがとうございます
    ありがとうございました 谢谢 謝謝 多谢 多謝 感谢 感謝 감사합니다 고마워요 고맙습니다 ขอบคุณ
"""
_BESIDE = """
    <3 a again all amazing awesome beautiful big bot brilliant bunch cool everybody everyone everything excellent
    fantastic folks for great good guys help job lgtm looks lot lots lovely many mate million much neat nice pagehand
    perfect quick so super sweet team that that's the this ton u very well done wonderful work wow yay you your
    besten dir euch herzlichen ihnen klasse perfekt prima schön sehr tausend toll viel vielen
    beaucoup bien grand mille parfait un muchas mil perfecto muito perfeito tante perfetto je wel mange tusen så mycket
    большое ederim
"""
"""What people write beside thanks. No word here is an answer or asks for something."""


def is_only_emoji(words: str) -> bool:
    """Returns whether a text is made of emoji alone."""
    return bool(words.strip()) and not _EMOJI.sub("", words)


def is_only_thanks(text: str) -> bool:
    """Returns whether a text says thanks and nothing else."""
    if len(text) > _LONGEST:
        return False
    plain = latin(_EMOJI.sub(" ", text)).casefold().replace("\u2019", "'").replace("thank you", "thanks")
    words = {word.strip(_AROUND_WORDS) for word in plain.split()} - {""}
    thanks = words.intersection(_THANKS.split())
    return bool(thanks) and words - thanks <= set(_BESIDE.split())
