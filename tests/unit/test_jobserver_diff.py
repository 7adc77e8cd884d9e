"""The model of the diff on a pull request page."""

from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.pages.description import Paragraph, paragraphs
from bot.jobserver.pages.diff import LINE_LIMIT, Span, compare_words, parse_diff

DIFF = """diff --git a/docs/a.md b/docs/a.md
index 1111111..2222222 100644
--- a/docs/a.md
+++ b/docs/a.md
@@ -1,4 +1,4 @@ ## Heading
 first
-The colour is red.
+The color is red.
\x20
 last\u2028line\x0c\u202e
\\ No newline at end of file
diff --git a/docs/new.md b/docs/new.md
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/docs/new.md
@@ -0,0 +1,2 @@
+--- a line like a header
++++ another
diff --git a/old name.md b/new name.md
similarity index 100%
rename from old name.md
rename to new name.md
diff --git a/i.png b/i.png
index 4444444..5555555 100644
Binary files a/i.png and b/i.png differ
diff --git a/gone.md b/gone.md
deleted file mode 100644
index 6666666..0000000
--- a/gone.md
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


def test_files_lines_and_numbers() -> None:
    diff = parse_diff(DIFF)
    assert diff.is_complete
    assert (diff.additions, diff.deletions) == (3, 2)
    assert [(f.path, f.change, f.is_binary) for f in diff.files] == [
        ("docs/a.md", "changed", False),
        ("docs/new.md", "added", False),
        ("new name.md", "renamed", False),
        ("i.png", "changed", True),
        ("gone.md", "removed", False),
    ]
    assert diff.files[2].old_path == "old name.md"
    hunk = diff.files[0].hunks[0]
    assert hunk.heading == "## Heading"
    assert [(line.kind, line.old_number, line.new_number) for line in hunk.lines] == [
        ("context", 1, 1), ("removed", 2, None), ("added", None, 2), ("context", 3, 3), ("context", 4, 4),
    ]  # fmt: skip
    assert hunk.lines[1].spans == (Span("The "), Span("colour", changed=True), Span(" is red."))
    assert hunk.lines[4].spans == (Span("last\u2028line[U+000C][U+202E]"),)


def test_a_diff_cut_off_anywhere_shows_what_can_be_read() -> None:
    for end in range(len(DIFF)):
        assert len(parse_diff(DIFF[:end]).files) <= 5
    assert not parse_diff(DIFF[: DIFF.index("+The color is")]).is_complete


def test_more_lines_than_a_page_holds_are_counted() -> None:
    lines = "".join(f"+{n}\n" for n in range(LINE_LIMIT + 10))
    head = "diff --git a/a.md b/a.md\nnew file mode 100644\n--- /dev/null\n+++ b/a.md\n"
    diff = parse_diff(f"{head}@@ -0,0 +1,{LINE_LIMIT + 10} @@\n{lines}")
    assert diff.additions == LINE_LIMIT + 10
    assert diff.files[0].hidden_lines + sum(len(s.lines) for s in diff.files[0].hunks) == LINE_LIMIT + 10
    assert diff.files[0].hidden_lines
    assert not diff.is_complete


@given(st.text(), st.text())
def test_spans_join_to_their_lines(old: str, new: str) -> None:
    left, right = compare_words(old, new)
    assert "".join(span.text for span in left) == old
    assert "".join(span.text for span in right) == new
    if old == new:
        assert not any(span.changed for span in left + right)


@given(st.text())
def test_any_text_is_a_diff_of_something_or_nothing(text: str) -> None:
    parse_diff(text)
    parse_diff(f"diff --git a/x b/x\n{text}")


def test_a_description_is_split_into_quotations_and_words() -> None:
    assert paragraphs("> a\n>\n> b\n\nDone.\nTwo.\n\n> c") == [
        Paragraph("a\n\nb", is_quote=True),
        Paragraph("Done.\nTwo.", is_quote=False),
        Paragraph("c", is_quote=True),
    ]
