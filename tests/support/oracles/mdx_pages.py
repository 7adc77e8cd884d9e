"""Texts in MDX, with the position of the error in those that MDX's compiler refuses."""

GOOD = (
    "# Title\n\nText with `{` and `<b>` in code.\n",
    '<Card title="a">\n\nText.\n\n</Card>\n',
    '<Card title="a > b" on={() => { return "}" }} />\n',
    "Two\\{braces\\} and a \\<b.\n",
    "{/* a comment <Card> */}\n",
    "```jsx\n<Card>\n{\n```\n",
    "    indented {code}\n",
    "A line.<br/>Another.\n",
    "<>\n  text\n</>\n",
    '<Tabs>\n  <Tab title="a">\n    ```sh\n    echo {\n    ```\n  </Tab>\n</Tabs>\n',
    "import { Card } from '/card.mdx'\n\nexport const a = { b: '<Card>' }\n\n<Card />\n",
    "| a | b |\n|---|---|\n| `{` | <b>x</b> |\n",
    "{`a ${1 + 1} b`}\n",
    '<Foo.Bar a:b="c">text</Foo.Bar>\n',
    "{\"it's\"} it's fine {1}\n",
)  # fmt: skip

BAD = {
    'Text.\n\n<Card title="a">\n\nText.\n': "3:1: `<Card>` is not closed",
    "Text.\n\nText.\n\n</Card>\n": "5:1: `</Card>` closes nothing",
    "<Tabs>\n  <Tab>\n    Text.\n</Tabs>\n": "2:3: `<Tab>` is not closed before `</Tabs>`",
    "Text with a { b.\n": "1:13: a brace `{` is not closed, or not escaped with a backslash",
    "A line.<br>Another.\n": "1:8: `<br>` is not closed",
    "Text.\n\n<!-- later -->\n": "3:1: `<!--` begins no comment in MDX: write `{/* … */}`",
    "<>\n  text\n": "1:1: `<>` is not closed",
    "<Card on={() => { }>\n\n</Card>\n": "1:1: a brace `{` is not closed, or not escaped with a backslash",
}
