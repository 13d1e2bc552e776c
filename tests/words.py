"""A lint of prose: words and constructions that the project's style forbids, with what to write instead.

`python -m tests.words [PATHS]` prints `file:line: match → better` for each finding and exits with 1 if there are any;
without paths it checks the repository and the subjects of its commits.

Checked: Markdown, docstrings, comments, names and assertion messages of tests, and string constants with a space in
them outside tests (messages, help, output); comments and strings of the other languages; text of templates; the
descriptions in docs/schema; the screens in tests/data/screens.
Not checked: code spans and code blocks of Markdown, words in backticks, quotations in double quotes (a log line, a
method's name) of up to 80 characters, released sections of the changelog, and identifiers that are written as code
(`a.b`, `a(…)`, `--a`).
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FIRST_CHECKED_COMMIT = "9c2947e"  # subjects of commits after this one are checked
LONGEST_SUBJECT = 65

# Texts of others, data, and files built from checked ones.
EXEMPT = (
    "research/",  # dated notes, kept as written
    "shared/",  # not part of the repository
    "tests/words.py",  # the table below
    "tests/test_words.py",  # plants a sentence for each pattern
    "tests/data/",  # inputs of tests; the screens in it are checked
    "report/assets/",  # built from web/
    "web/package-lock.json",
    "indexer/labels/",  # texts of other projects' functions; its code and Markdown are checked
    "lab/reference/renames.toml",  # former names of fields and kinds
    "LICENSE",
)
CHECKED_ALL_THE_SAME = re.compile(r"tests/data/screens/.+\.txt|indexer/labels/.+\.(py|md|toml)")


class Rule(NamedTuple):
    """One forbidden construction: its pattern (spaces match any white space) and what to write instead."""

    name: str
    pattern: str
    better: str
    names: bool = True  # also looked for in names of tests


# Verbs that cannot be nouns.
_VERBS = (
    r"(?:is|are|was|were|has|have|had|does|do|did|can|cannot|may|might|must|would|could|will|should|need(?:s|ed)?|"
    r"say|says|said|shows|showed|takes?|took|makes?|made|gives?|gave|knows?|knew|ran|waited|begins?|began|comes?|came|"
    r"goes|went|gets?|got|keeps?|kept|becomes?|became|loads|used|writes?|wrote|grows?|grew|asks?|asked|means?|meant|"
    r"worked|adds?|stayed|depends?|covers?|differs?|differed|loses?|lost|lacks?|sends?|serves)"
)
_DETERMINERS = (
    "the|a|an|its|their|his|our|your|this|that|these|those|no|every|each|one|some|all|most|many|another|both|such"
)
_WORD = r"[\w'’`{}%-]+"
_COMPARATIVES = (
    r"(?:longer|more|less|fewer|different|later|earlier|larger|greater|higher|lower|smaller|faster|slower|worse|better"
    r"|further|shorter|bigger|cheaper|closer|wider|older|newer|nearer|sooner|easier|stronger|weaker|harder)\b"
)
_RELATIVE = r"(?:What|Who|Whose|Whom|Whoever|Whatever|Whichever)"

RULES = (
    Rule("tell", r"untold|told|tells?|telling", "says, reports, shows, is known, measured; tell apart → distinguish"),
    Rule("lend", r"lent|lends?|lending", "imputed (from priors); gives, provides"),
    # A borrowed reference is CPython's own term.
    Rule("borrow", r"borrow(?:s|ed|ing)?(?! references?)", "imputed (from priors); takes from, copies"),
    Rule("anew", r"anew", "again"),
    Rule("beside", r"beside", "next to, alongside; in addition to"),
    Rule("stretch", r"stretch(?:es|ed|ing)?", "segment, interval, period; lengthens"),
    Rule("settle", r"(?:un)?settle[sd]?|settling", "converges; decides, stabilizes"),
    Rule("rest", r"(?:come|comes|coming|came) to rest", "converges"),
    # "beyond chance" and "chance level" are what statistics of agreement call it.
    Rule(
        "chance",
        r"(?<!beyond )chances?(?! level)",
        "recommendation, probability, random variation; by chance → at random",
    ),
    Rule("mend", r"mend(?:s|ed|ing)?", "fix"),
    Rule("crowd", r"crowd(?:s|ed|ing)?", "load, contention, oversubscription"),
    Rule("as-such", r"as such", "as it is, itself; leave it out"),
    Rule("as-often-as", r"as often as", "at the same rate; as many times as"),
    Rule("of-before", r"of before", "previous, earlier"),
    Rule("want-of", r"for want of", "because there is no, without"),
    Rule("next-to-nothing", r"next to nothing", "almost nothing, negligible"),
    Rule("as-good-as", r"as good as", "almost, equivalent to"),
    Rule("nobodys", r"(?:no one|nobody)['’]s", "unowned, unassigned, not attributed"),
    Rule("hold-up", r"(?:hold|holds|held|holding)(?: \S+){0,4}? up", "bottleneck; blocks, delays"),
    Rule("speak-for", r"(?:speaks?|spoke|speaking) for", "suggests, is evidence for"),
    Rule("none-of", r"(?<!\bthere )(?:is|are|was|were) none of", "is not a, is not one of"),
    # "there is no X" is plain; so are comparatives ("is no longer").  "where is no" is not.
    Rule("is-no", rf"(?<!\bthere )(?:is|are|was|were) no (?!{_COMPARATIVES})[a-z][\w-]*", "is not a"),
    Rule("door", r"doors?", "interface, front end, entry point"),
    Rule("room", r"rooms?", "package; capacity, free memory, headroom"),
    Rule("house", r"(?<!in-)houses?", "project, repository"),
    # world size is PyTorch's own term, stop-the-world the JVM's, real-world is everybody's.
    Rule("world", r"(?<!real[- ])(?<!hello )(?<!stop-the-)worlds?(?! size)", "scenario"),
    Rule("kept-rows", r"kept rows", "cached data"),
    # A company that is a firm ("your company's jobs") has an article or possessive before it.
    Rule(
        "company",
        r"(?<!\ba )(?<!\byour )(?<!\bthe )(?<!\bevery )(?<!\bone )(?<!\bat )company",
        "concurrency, contention",
    ),
    Rule("archaic", r"thrice|whence|whereof|thereof|lest|aught|nought", "three times, from where, of it, …"),
    Rule("come-along", r"(?:come|comes|coming|came) along", "is included, ships with, exists"),
    # "as it stands" has no place after it.  "stands for" of an abbreviation: write "means".
    Rule(
        "stand", r"(?:stand|stands|stood|standing) (?:in|at|for|on|by|with|there|under|between|among|where|next)", "is"
    ),
    # "lies between 3 and 5" is arithmetic.
    Rule("lie", r"(?:lie|lies|lay|lain|lying) (?:in|at|on|there|under|around|where|next|with|within)", "is"),
    Rule("which-of", r"which of\b[^.?!]* and which of", "list both cases"),
    Rule(
        "for-because",
        rf", for (?:(?:it|they|he|she|we|you|there) (?!to\b|and\b|or\b|in\b)\w+"
        rf"|(?:(?:{_DETERMINERS}) )?(?!(?:{_DETERMINERS}|what|which|who|whose|whom|how|example|instance)\b){_WORD} "
        rf"(?:(?!(?:that|which|whose|who|whom|where|when|what|how|as|to)\b){_WORD} ){{0,3}}?{_VERBS})",
        "because",
        names=False,
    ),
    # A sentence that begins with a relative clause.  Questions, "What if", headings and up to three words
    # ("What to do") are exempt.  Names of tests have no question mark.
    Rule("what-sentence", r"", "name the subject: Sampling delay counts as CPU wait", names=False),
    Rule("what-name", r"", "name the behaviour: test_counts_sampling_delay_as_cpu_wait", names=False),
)

_BEFORE, _AFTER = r"(?<![\w./@$<])(?<!--)", r"(?![\w(=@$]|\.\w|\[\w)"
_COMPILED = [
    (rule, re.compile(f"{_BEFORE * (rule.pattern[0] != ',')}(?:{rule.pattern}){_AFTER}", re.IGNORECASE))
    for rule in RULES
    if rule.pattern
]
_SENTENCE_END = re.compile(r"""[.?!:](?=["”’')\]*]*(?:\s|$))""")
_WHAT = re.compile(rf"[*_(“‘'\"]*{_RELATIVE}\b(?!['’]|[- ]ifs?\b)")
_WHAT_NAME = re.compile(r"(?:what|whatever|who|whoever|whose|whichever) ", re.IGNORECASE)
_QUOTED = re.compile(r"(``?)(?!`)[^`]+?\1|\"[^\"\n]{1,80}\"|“[^”]{1,80}”", re.DOTALL)
_SQL = re.compile(r"\b(?:SELECT|FROM|INSERT INTO|CREATE|WITH|COPY|UPDATE|DELETE|JOIN|WHERE|UNION|ATTACH|COALESCE)\b")
_SQL_BEGIN = re.compile(r"\s*(?:--[^\n]*\s+)*(?:SELECT|FROM|INSERT|CREATE|WITH|COPY|UPDATE|DELETE|ATTACH)\b")
_REGEX = re.compile(r"\(\?[:P=!<]|\\[bwds.]|\[\^")


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    match: str
    better: str

    @property
    def area(self) -> str:
        """A top-level folder, "changelog", "screens", "commits", or "" for top-level files."""
        if self.path in ("commit", "CHANGELOG.md"):
            return "commits" if self.path == "commit" else "changelog"
        return "screens" if self.path.startswith("tests/data/") else self.path.rpartition("/")[0].partition("/")[0]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.match} → {self.better}"


class Prose(NamedTuple):
    """A paragraph or the like and the line it begins on; kind is "text", "heading" or "name" (split into words)."""

    line: int
    text: str
    kind: str = "text"


def is_sql(text: str) -> bool:
    """Whether a string is a statement or a part of one; a message may name a keyword."""
    return _SQL_BEGIN.match(text) is not None or len(_SQL.findall(text)) > 1


def matches(text: str, kind: str = "text") -> Iterator[tuple[Rule, int, str]]:
    """The forbidden constructions in one paragraph: rule, offset, what matched."""
    bare = _QUOTED.sub(lambda found: re.sub(r"[^\n]", "`", found[0]), text)
    flat = re.sub(r"\s", " ", bare)
    # Runs of spaces (indentation) would break phrases; offsets of the flattened text lead back to those of the text.
    offsets = [at for at, char in enumerate(flat) if char != " " or at == 0 or flat[at - 1] != " "]
    flat = "".join(flat[at] for at in offsets)
    for rule, pattern in _COMPILED:
        if kind != "name" or rule.names:
            for found in pattern.finditer(flat):
                start, end = (offsets[at] for at in (found.start(), found.end() - 1))
                yield rule, start, " ".join(text[start : end + 1].split())
    if kind == "name":
        if _WHAT_NAME.match(flat):
            yield _rule("what-name"), 0, flat
        return
    if flat.rstrip().endswith("----"):  # a heading among comments
        return
    begin = 0
    for end in [*(found.end() for found in _SENTENCE_END.finditer(flat)), len(flat)]:
        sentence = flat[begin:end].strip()
        if (
            kind != "heading"
            and _WHAT.match(sentence)
            and not sentence.endswith("?")
            and len(re.findall(r"\w+", sentence)) > 3
        ):
            start = offsets[begin + flat[begin:end].index(sentence[0])]
            yield _rule("what-sentence"), start, " ".join(text[start:].split()[:6]) + " …"
        begin = end


def _rule(name: str) -> Rule:
    return next(rule for rule in RULES if rule.name == name)


# --- prose of each kind of file ---


def _markdown(text: str) -> Iterator[Prose]:
    """Paragraphs, list items, headings and table cells, without code blocks, comments and link targets."""
    text = re.sub(r"<!--.*?-->", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)
    text = re.sub(r"(?<=\])\([^()\s]*\)", "", text)
    held: list[str] = []
    first, fence, heading = 1, "", False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        new = bool(mark) or not line.strip() or bool(re.match(r"\s*(?:[-*+]|\d+\.|#+|\|)\s", line))
        if (new or heading) and held:
            yield Prose(first, "\n".join(held), "heading" if heading else "text")
            held, heading = [], False
        if mark:
            fence = mark[1]
        elif line.lstrip().startswith("|"):
            for cell in line.strip().strip("|").split("|"):
                yield Prose(number, cell.strip())
        elif line.strip():
            first = first if held else number
            heading = line.startswith("#")
            held.append(re.sub(r"^\s*(?:[-*+]|\d+\.|#+|>)\s+", "", line))


def _unreleased(text: str) -> str:
    """A changelog with its released sections blank: they quote former output."""
    parts = re.split(r"(?m)^(?=## )", text)
    return "".join(
        part if "unreleased" in part.partition("\n")[0].lower() else "\n" * part.count("\n") for part in parts
    )


def _paragraphs(line: int, text: str) -> Iterator[Prose]:
    """A docstring's or a message's paragraphs and list items."""
    begin = 0
    for found in re.finditer(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|$", text):
        part = text[begin : found.start()]
        if part.strip():
            lead = len(part) - len(part.lstrip())
            yield Prose(line + text.count("\n", 0, begin + lead), part[lead:])
        begin = found.end()


def _blocks(comments: Iterable[tuple[int, int, str, bool]]) -> Iterator[Prose]:
    """Comments of (line, column, text, alone in its line), those of adjacent lines joined."""
    held: list[str] = []
    first = last = column = 0
    for line, at, text, alone in comments:
        if held and not (alone and line == last + 1 and at == column):
            yield from _paragraphs(first, "\n".join(held))
            held = []
        first = first if held else line
        held.append(text)
        last, column = line, at
    if held:
        yield from _paragraphs(first, "\n".join(held))


def _python(text: str, is_test: bool) -> Iterator[Prose]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    yield from _blocks(
        (token.start[0], token.start[1], token.string.lstrip("#!: "), not token.line[: token.start[1]].strip())
        for token in tokens
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:type:|noqa|pragma)", token.string)
    )
    tree = ast.parse(text)
    lines = text.split("\n")
    messages: set[ast.AST] = set()
    docstrings: set[ast.AST] = set()
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if is_test and not isinstance(node, ast.Module) and node.name.lower().startswith("test"):
                words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node.name).removeprefix("test_").removeprefix("Test_")
                yield Prose(node.lineno, words.replace("_", " "), kind="name")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.add(node.value)  # also those below attributes
        elif isinstance(node, ast.Assert) and node.msg:
            messages |= set(ast.walk(node.msg))
        elif isinstance(node, ast.JoinedStr):
            inside |= {part for part in node.values if isinstance(part, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            value = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            value = node.value
        else:
            continue
        if node in docstrings:
            yield from _paragraphs(node.lineno, value)
        elif is_test and node not in messages:
            continue
        elif is_sql(value):
            yield from (_located(lines, node, each) for each in _sql(value, strings=False))
        elif " " in value.strip() and not _REGEX.search(value):
            yield from (_located(lines, node, each) for each in _paragraphs(node.lineno, value))


def _located(lines: Sequence[str], node: ast.expr, prose: Prose) -> Prose:
    """Prose of a string constant with the line where its first words are; a constant may be of several literals."""
    first = " ".join(prose.text.split("{}")[0].split()[:2])
    for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
        if first and first in lines[line - 1]:
            return prose._replace(line=line)
    return prose._replace(line=node.lineno)


def _tokens(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    ends = [found.start() for found in re.finditer("\n", text)]
    return ((bisect_right(ends, found.start() - 1) + 1, found) for found in pattern.finditer(text))


def _language(comment: str, strings: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<comment>{comment})|(?P<string>{strings})", re.DOTALL | re.MULTILINE)


_DOUBLE, _SINGLE = r'"(?:\\.|[^"\\\n])*"', r"'(?:\\.|[^'\\\n])*'"
_LANGUAGES = {
    "sql": _language(r"--[^\n]*|/\*.*?\*/", r"'(?:''|[^'])*'"),
    "c": _language(r"//[^\n]*|/\*.*?\*/", rf"{_DOUBLE}|{_SINGLE}|`(?:\\.|[^`\\])*`"),
    "hash": _language(r"(?:^|(?<=\s))#[^\n]*", rf'"""(?:\\.|.)*?"""|{_DOUBLE}|{_SINGLE}'),
    "scheme": _language(r";[^\n]*", _DOUBLE),
}


def _scanned(text: str, language: str, strings: bool = True) -> Iterator[Prose]:
    """Comments, and strings that are prose, of a language that is known by the form of both."""
    comments, found_strings = [], []
    begins = [0, *(found.end() for found in re.finditer("\n", text))]
    for line, found in _tokens(text, _LANGUAGES[language]):
        if found["comment"]:
            at = found.start() - begins[line - 1]
            alone = not text[begins[line - 1] : found.start()].strip()
            bare = re.sub(r"^\s*(?:/\*+|\*/|//+|--+|#+!?|;+|\*)[ ]?|\*/$", "", found[0], flags=re.MULTILINE)
            comments.append((line, at, bare, alone))
        elif strings and " " in found[0][1:-1].strip() and not _REGEX.search(found[0]) and not is_sql(found[0][1:-1]):
            found_strings.append(Prose(line, re.sub(r"\$\{[^}]*\}", "{}", found[0].strip("\"'`"))))
    yield from _blocks(comments)
    yield from found_strings


def _sql(text: str, strings: bool = True) -> Iterator[Prose]:
    return _scanned(text, "sql", strings)


def _template(text: str) -> Iterator[Prose]:
    """Text, attributes and comments of an HTML template; scripts and tags' own syntax are blank."""
    blank = re.compile(r"<(script|style)\b.*?</\1>|\{\{.*?\}\}|\{%.*?%\}|</?[a-z][\w-]*|/?>", re.DOTALL)
    text = blank.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield Prose(number, line.strip().replace('"', " "))


def _json(text: str) -> Iterator[Prose]:
    for line, found in _tokens(text, re.compile(_DOUBLE)):
        value = json.loads(found[0], strict=False)
        if " " in value.strip():
            yield from (each._replace(line=line) for each in _paragraphs(line, value.rstrip("\n")))


def _lines(text: str) -> Iterator[Prose]:
    return (Prose(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def prose(path: str, text: str) -> Iterator[Prose]:
    """All prose of a file; nothing for a kind of file that has none."""
    suffix = Path(path).suffix
    is_test = path.startswith("tests/") or "/tests/" in path or Path(path).name.startswith("test_")
    if path == "CHANGELOG.md":
        yield from _markdown(_unreleased(text))
    elif suffix == ".md":
        yield from _markdown(text)
    elif suffix in (".py", ".pyi"):
        yield from _python(text, is_test)
    elif suffix == ".sql":
        yield from _sql(text)
    elif suffix in (".ts", ".js", ".mjs", ".css", ".c", ".h", ".java", ".scala"):
        yield from _scanned(text, "c", strings=not (is_test or path.endswith(".test.ts")))
    elif suffix in (".toml", ".sh", ".yml", ".yaml", ".cfg") or Path(path).name in ("Makefile", "Dockerfile", "run"):
        yield from _scanned(text, "hash")
    elif suffix == ".scm":
        yield from _scanned(text, "scheme")
    elif suffix == ".j2":
        yield from _template(text)
    elif suffix == ".ipynb" or (suffix == ".json" and path.startswith("docs/schema/")):
        yield from _json(text)
    elif suffix == ".txt":
        yield from _lines(text)


# --- the repository and its commits ---


def files() -> list[str]:
    """The repository's files by git; in an unpacked sdist, the files that are there."""
    done = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode == 0:
        found = [each for each in done.stdout.split("\0") if each]
    else:
        hidden = re.compile(r"(?:^|/)(?:\.(?!ci)[^/]*|build|dist|node_modules|__pycache__|[^/]*\.egg-info)/")
        found = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
        found = [each for each in found if not hidden.search(each)]
    links = {each for each in found if (ROOT / each).is_symlink()}
    return sorted(each for each in found if each not in links and is_checked(each) and (ROOT / each).is_file())


def is_checked(path: str) -> bool:
    return not path.startswith(EXEMPT) or CHECKED_ALL_THE_SAME.match(path) is not None


def findings(paths: Iterable[str]) -> list[Finding]:
    """The forbidden constructions in files; paths are relative to the repository."""
    found = []
    for path in paths:
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for piece in prose(path, text):
            found += [
                Finding(path, piece.line + piece.text.count("\n", 0, at), rule.name, match, rule.better)
                for rule, at, match in matches(piece.text, piece.kind)
            ]
    return sorted(set(found))


def subjects() -> list[tuple[str, str]]:
    """Hash and subject of each commit to check; none where there is no history."""
    command = ["git", "log", "--no-merges", "--format=%h %s", f"{FIRST_CHECKED_COMMIT}..HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in done.stdout.splitlines()]


def subject_findings(commits: Iterable[tuple[str, str]]) -> list[Finding]:
    found = []
    for commit, subject in commits:
        if not re.match(r"[a-z][\w./ ,-]*: [a-z]", subject):
            found.append(Finding("commit", 0, "form", f"{commit} {subject}", "area: imperative"))
        if len(subject) > LONGEST_SUBJECT:
            found.append(Finding("commit", 0, "length", f"{commit} {subject}", f"at most {LONGEST_SUBJECT} characters"))
        found += [
            Finding("commit", 0, rule.name, f"{commit} {match}", rule.better) for rule, _, match in matches(subject)
        ]
    return found


@cache
def everything() -> list[Finding]:
    """The findings in the repository and its commits."""
    return findings(files()) + subject_findings(subjects())


def main(arguments: Sequence[str]) -> int:
    if arguments:
        given = [Path(each).resolve().relative_to(ROOT) for each in arguments]
        paths = [each for each in files() if any(Path(each).is_relative_to(path) for path in given)]
        paths += [str(path) for path in given if (ROOT / path).is_file() and str(path) not in paths]
        found = findings(paths)
    else:
        found = everything()
    for each in found:
        print(each)
    if found:
        print(f"{len(found)} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
