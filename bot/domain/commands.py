"""Parses what people type: the slash command, its options, words for Pagehand itself, and replies in a thread. Pure."""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from bot.domain.messages import BLANKS, unescape_keeping_mentions, with_names
from bot.jobapi.models import Mode
from bot.runtime.text import without_misleading

_LINE_BREAKS = frozenset("\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_SIGNS = (
    {ord(sign): " " for sign in filter(str.isspace, map(chr, range(0x3001))) if sign not in _LINE_BREAKS}
    | {full: chr(full - 0xFEE0) for full in range(0xFF01, 0xFF5F)}
    | {0x3001: ",", 0x3002: ".", 0xFF61: ".", 0xFF64: ","}
)
"""Other spaces, full-width letters and signs, and the comma and full stop of Chinese and Japanese."""


def latin(text: str) -> str:
    """Returns the text with these signs replaced, one by one, so that each place in it is the same as in `text`."""
    return text.translate(_SIGNS)


MAX_NAME = 200
"""Characters of a project's or model's name that are kept."""
_OPTION = re.compile(
    r"(?:--|\u2014|\u2013)(?i:(?P<flag>quiet)(?=\s|\Z)|(?P<dashed_short>plan|ask)(?::|(?=\s|\Z))"
    r"|(?P<dashed>project|mode|model|effort)(?:[:=]|\s++|\Z))"
    r"|(?P<word>quiet)(?=\s|\Z)|(?P<project>(?i:project))[:=]|(?P<bare>(?i:mode|model|effort))[:=]\s*+"
    r"|(?P<mark>[*_`])?(?P<short>(?i:plan|ask))(?(mark)[*_`]?+)[^\S\r\n]?:(?(mark)[*_`]?+)"
)
"""Dashes in front are accepted, as in a terminal. `Quiet` without them may begin a sentence. Before words, or above
them, `plan:` is an option however it is written, as on a phone, in French or in bold: who is not shown a plan first
cannot take back what is done.
"""
_NAME_OF = {"flag": "quiet", "word": "quiet", "short": "mode", "dashed_short": "mode"}
_OF_AGENT = frozenset({"mode", "model", "effort"})
_QUOTATION_MARKS = "\"'`\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u300c\u300d"
"""A name is one word, so it needs none."""


@dataclass(frozen=True)
class AgentOptions:
    """How the agent is to work: in which mode, and with which model and effort. None and empty: the request does not
    say.
    """

    mode: Mode | None = None
    model: str = ""
    effort: str = ""


@dataclass(frozen=True)
class Options:
    """The options: the project as typed (empty: none), whether the end mentions nobody, and those for the agent."""

    project: str = ""
    quiet: bool = False
    agent: AgentOptions = AgentOptions()


NO_OPTIONS = Options()


@dataclass(frozen=True)
class WrongOption:
    """An option is malformed or there twice, so that nothing is started."""

    name: str = field(default="", compare=False)


def split_options(words: str) -> tuple[Options, str] | WrongOption:
    """Returns the options in front of a prompt, and the prompt."""
    said: dict[str, str] = {}
    words = words.strip(BLANKS)
    rest = latin(words)
    while (match := _OPTION.match(rest)) is not None and not _begins_a_sentence(match):
        group, written, after = str(match.lastgroup), match[str(match.lastgroup)].lower(), rest[match.end() :]
        name = _NAME_OF.get(group, written)
        value = (written, after) if group in _NAME_OF else _value(after)
        if name in said or value is None or (name == "mode" and value[0].lower() not in set(Mode)):
            return WrongOption(name)
        said[name], rest = with_names(value[0], {})[:MAX_NAME], value[1].lstrip(BLANKS)
    mode = Mode(said["mode"].lower()) if "mode" in said else None
    agent = AgentOptions(mode, said.get("model", ""), said.get("effort", ""))
    return Options(said.get("project", ""), quiet="quiet" in said, agent=agent), words[len(words) - len(rest) :]


def asks_for_another_way(words: str) -> bool:
    """Returns whether words begin with options about how the agent is to work, which only a new job can have."""
    split = split_options(words)
    return split.name in _OF_AGENT if isinstance(split, WrongOption) else split[0].agent != AgentOptions()


def has_wrong_option(words: str) -> bool:
    """Returns whether words begin with an option that cannot be read, so that they start nothing."""
    return isinstance(split_options(words), WrongOption)


def _begins_a_sentence(match: re.Match[str]) -> bool:
    """Returns whether `Model: the new one` is about a model: after a blank, only what is nearly a mode is an option."""
    name, after = match["bare"], match.string[match.end() :]
    if name is None or not after or not match[0][-1].isspace():
        return False
    first = after.split(maxsplit=1)[0].strip(_PUNCTUATION).lower()
    return name.lower() != "mode" or not any(_is_near(first, mode) for mode in Mode)


def _value(text: str) -> tuple[str, str] | None:
    """Returns an option's value and what follows it; None if it is empty."""
    written = text[: next((at for at, character in enumerate(text) if character in BLANKS), len(text))]
    value = written.strip(_QUOTATION_MARKS)
    return (value, text[len(written) :]) if value else None


class ThreadWord(StrEnum):
    """A word for Pagehand itself, as the whole message in a job's thread, with `!` before it."""

    STATUS = "status"
    MUTE = "mute"
    UNMUTE = "unmute"
    STOP = "stop"
    RETRY = "retry"
    DISCARD = "discard"
    """Discards the work that the agent had done before it failed."""
    NEW = "new"
    """Starts another job with the prompt that follows."""
    HELP = "help"


@dataclass(frozen=True)
class Word:
    """A word for Pagehand; with NEW, also the prompt of another job."""

    word: ThreadWord
    prompt: str = ""


@dataclass(frozen=True)
class UnclearWord:
    """A message that was probably meant as a word for Pagehand: its writer is asked, and the agent does not get it."""

    meant: ThreadWord


_MARK = re.compile(r"[`*_~]{0,3}!{1,2}(?!!)[^\S\n]{0,3}")
"""With which a word for Pagehand begins, also as it comes along when it is copied from a message. Three begin a note in
Markdown.
"""
_NEW = re.compile(r"(new)([:,]?)(?:\s++(.*+))?", re.DOTALL | re.IGNORECASE)
_PUNCTUATION = ".,;:!\u2026`*_~\"'()"
_UNMISTAKABLE = {str(word): word for word in ThreadWord if word is not ThreadWord.NEW} | dict.fromkeys(
    ("cancel", "halt", "abort"), ThreadWord.STOP
)
_PROBABLY = _UNMISTAKABLE | {
    "new": ThreadWord.NEW,
    "again": ThreadWord.RETRY,
    "redo": ThreadWord.RETRY,
    "rerun": ThreadWord.RETRY,
    "restart": ThreadWord.RETRY,
    "start": ThreadWord.RETRY,
    "progress": ThreadWord.STATUS,
    "commands": ThreadWord.HELP,
    "quit": ThreadWord.STOP,
}
_FILLERS = frozenset(
    {"asap", "immediately", "it", "job", "me", "my", "now", "please", "pls", "plz", "right", "thanks", "that", "the"}
    | {"this", "agent", "work", "working"}
)
"""Words that do not change the meaning of the one beside them."""
_LONGEST, _MOST_WORDS = 60, 3
"""The maximum characters, and words besides fillers, of a message that can be a word for Pagehand."""
_REPEATED = re.compile(r"(.)\1+")


def word_in(words: str, *, addressed: bool) -> Word | UnclearWord | None:
    """Returns the word for Pagehand that a message is, or was probably meant to be; None if it is for the agent.

    Args:
        words: The message, as people see it.
        addressed: Whether it mentions Pagehand, so that a word counts without `!`.
    """
    mark = _MARK.match(latin(words))
    if mark is None and not addressed:
        return None
    said = words[mark.end() :] if mark else words
    marked = mark is not None
    return _another_job(said, marked=marked) or (_marked_word(said) if marked else _bare_word(said))


def _another_job(said: str, *, marked: bool) -> Word | None:
    found = _NEW.fullmatch(latin(said))
    if found is None or (found[2] and not marked):
        return None
    prompt = said[found.start(3) :].strip(BLANKS) if found[3] else ""
    if prompt and not (marked or found[1].islower()):
        return None  # a sentence can start with `New …`
    return Word(ThreadWord.NEW, prompt) if prompt else Word(ThreadWord.HELP)


def _marked_word(said: str) -> Word | UnclearWord | None:
    spoken = _spoken(said)
    if not spoken or len(spoken) > _MOST_WORDS:
        return None
    if len(spoken) == 1 and (word := _UNMISTAKABLE.get(_REPEATED.sub(r"\1", spoken[0]))):
        return Word(word)
    first = spoken[0].strip(f"?{_PUNCTUATION}")
    return next((UnclearWord(meant) for word, meant in _PROBABLY.items() if _is_near(first, word)), None)


def _is_near(said: str, word: str) -> bool:
    """Returns whether it is the word, or one letter was added, left out or mistyped, or two neighbours are swapped."""
    while said and said[0] == word[:1]:
        said, word = said[1:], word[1:]
    return word in {said[1:], f"{said[1:2]}{said[:1]}{said[2:]}"} or word[1:] in {said, said[1:]}


def _bare_word(said: str) -> Word | None:
    """Without `!`, only the exact words count, and a stop together with filler words."""
    spoken = _spoken(said)
    if len(spoken) != 1 or spoken[0] not in set(ThreadWord) or spoken[0] == ThreadWord.NEW:
        return None
    alone = latin(said).strip(BLANKS + _PUNCTUATION).lower() == spoken[0]
    return Word(ThreadWord(spoken[0])) if alone or spoken[0] == ThreadWord.STOP else None


def _spoken(said: str) -> list[str]:
    """Returns the words of a short message, in lower case and without fillers; none of a long message."""
    if len(said) > _LONGEST:
        return []
    spoken = (word.strip(_PUNCTUATION).lower() for word in latin(said).split())
    return [word for word in spoken if word and word not in _FILLERS]


# Source: docs.slack.dev, "Formatting message text": emoji come as `:tada:`, with a skin tone as `:wave::skin-tone-2:`;
# those that somebody's keyboard typed can come as the characters themselves (unicode.org, emoji-data.txt).
_EMOJI = re.compile(
    r":[\w+\-]++:"
    r"|[0-9#*]\ufe0f?\u20e3"
    "|[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff]"
    "|[\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\u200d\ufe0e\ufe0f\U000e0020-\U000e007f]"
    r"|\s"
)
_LONGEST_THANKS = 120
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
    if len(text) > _LONGEST_THANKS:
        return False
    plain = latin(_EMOJI.sub(" ", text)).casefold().replace("\u2019", "'").replace("thank you", "thanks")
    words = {word.strip(_AROUND_WORDS) for word in plain.split()} - {""}
    thanks = words.intersection(_THANKS.split())
    return bool(thanks) and words - thanks <= set(_BESIDE.split())


ASIDE_PREFIX = "//"
"""A reply that begins with this is between people: it is not sent to the job."""

_DASHES = str.maketrans({"\u2014": "--", "\u2013": "--"})
"""What autocorrection turns two hyphens into."""
_HELP_WORDS = frozenset({"help", "-h", "--help", "?", "status", "list", "cancel", "stop"})
"""Words that, alone, are probably meant for Pagehand rather than for the agent."""
_TO_SOMEBODY = re.compile(r"[\s\x00-\x1f\x7f-\x9f]*+<(?:@[UW][A-Z0-9]|!subteam\^|!(?:here|channel|everyone)[|>])")
"""The beginning of a message to a person, a user group, or everybody. Invisible characters may precede it."""


@dataclass(frozen=True)
class Help:
    """The person asks for help, or tried a word as a command."""


@dataclass(frozen=True)
class Blank:
    """The person asks for a job, but gives no task."""

    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Start:
    """The person wants a job."""

    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Aside:
    """A message between people."""


@dataclass(frozen=True)
class Thanks:
    """Thanks, and nothing else."""


@dataclass(frozen=True)
class OnlyEmoji:
    """Only emoji: between people, unless the agent has asked something."""

    words: str


@dataclass(frozen=True)
class NoWords:
    """A message without text: a lone mention, a file without a comment."""


@dataclass(frozen=True)
class FollowUp:
    """The person steers the job."""

    prompt: str


Asked = Help | Blank | Start | WrongOption
"""What somebody asks for who can only ask for a job."""
ParsedRequest = Aside | Thanks | Word | UnclearWord | Asked
"""What a message outside of a thread asks for."""
ParsedReply = Aside | OnlyEmoji | NoWords | Word | UnclearWord | FollowUp
"""What a message in a thread asks for."""


def parse_slash(text: str) -> Asked:
    """Parses the text after the slash command, in Slack's escaped form."""
    return parse_prompt(unescape_keeping_mentions(text))


def parse_prompt(words: str) -> Asked:
    """Parses options and prompt. A word that would show the help is a prompt in quotation marks."""
    split = split_options(words)
    if isinstance(split, WrongOption):
        return split
    options, prompt = split
    if not prompt:
        return Blank(options)
    if latin(prompt).translate(_DASHES).lower() in _HELP_WORDS:
        return Help()
    return Start(prompt, options)


def parse_request(text: str, *, bot_user_id: str, has_attachments: bool = False) -> ParsedRequest:
    """Parses a message that asks for a job, in Slack's escaped form: a mention outside of a thread, or a direct
    message. `has_attachments`: see `parse_reply`.
    """
    words = unescape_keeping_mentions(_without_mention(text, bot_user_id))
    if _is_aside(words) or (is_only_emoji(words) and not has_attachments):
        return Aside()
    if is_only_thanks(words) and not has_attachments:
        return Thanks()
    word = word_in(words, addressed=True)
    if isinstance(word, UnclearWord):
        return word
    if word is None or (word.word is ThreadWord.NEW and words[:1].isalpha()):
        return parse_prompt(words)
    if word.word is ThreadWord.HELP:
        return Help()
    return parse_prompt(word.prompt) if word.word is ThreadWord.NEW else word


def says_new(text: str, bot_user_id: str) -> bool:
    """Returns whether a message, in Slack's escaped form, asks for a job with `!new`."""
    words = unescape_keeping_mentions(_without_mention(text, bot_user_id))
    word = word_in(words, addressed=True)
    return isinstance(word, Word) and word.word is ThreadWord.NEW and not words[:1].isalpha()


def parse_reply(
    text: str, *, bot_user_id: str, among_people: bool = True, has_attachments: bool = False
) -> ParsedReply:
    """Parses a message in a thread, in Slack's escaped form. Mentions of the bot are removed from the text.

    Args:
        text: The message.
        bot_user_id: The bot's user id.
        among_people: Whether other people read the thread, so that the message can be for one of them.
        has_attachments: Whether the message contains more than text, so that emoji alone are not all of it.
    """
    text = without_misleading(text)
    addressed = mentions(text, bot_user_id)
    words = unescape_keeping_mentions(_without_mention(text, bot_user_id))
    if not words:
        return NoWords()
    if _is_aside(words):
        return Aside()
    if is_only_emoji(words) and not has_attachments:
        return OnlyEmoji(words)
    if among_people and not addressed and _TO_SOMEBODY.match(text):
        return Aside()
    return word_in(words, addressed=addressed) or FollowUp(words)


def mentions(text: str, user_id: str) -> bool:
    """Returns whether a text in Slack's escaped form mentions somebody."""
    return re.search(rf"<@{re.escape(user_id)}(?:\|[^<>\n]*+)?>", text) is not None


def _is_aside(words: str) -> bool:
    return latin(words[: len(ASIDE_PREFIX)]) == ASIDE_PREFIX


def _without_mention(text: str, user_id: str) -> str:
    """Returns the text without mentions of somebody, and the white space, comma or colon after them."""
    mention = rf"<@{re.escape(user_id)}(?:\|[^<>\n]*+)?>"
    opening = re.compile(rf"^(?>(?:{mention}(?:[,:](?=\s|$)|[\uff0c\uff1a\u3001])?[^\S\n]*+)+)", re.MULTILINE)
    return re.sub(rf"(?:(?<![ \t])[ \t]++)?{mention}", "", opening.sub("", text))
