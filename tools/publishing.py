"""What publishing.toml says, written where packages take it from.

python -m tools.publishing                   write it into pyproject.toml and Java's POMs
python -m tools.publishing missing           say what is still empty
python -m tools.publishing release VERSION   in the checkout of a tag: also the README's links,
Java's version, and no extras of developers
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = "publishing.toml"
FIELDS = ("author", "contact", "repository", "documentation")
PYTHON = ("pyproject.toml", "testing/pyproject.toml")
POMS = ("java/pom.xml", "java/antipode-bom/pom.xml")
#: What stands where nothing was filled in: names that exist nowhere.
EXAMPLE = "https://antipode.example"
EXAMPLE_SOURCE = f"{EXAMPLE}/antipode"
NOBODY = "The developers of Antipode"
#: Extras that are of use in a clone alone.
DEVELOPERS = ("bench", "docs", "test", "integrations-test", "examples", "dev")
_MARKED = re.compile(r"(# publishing: .*\n)(?:authors = .*\n)(?:urls = .*\n)")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def owner(root: Path = ROOT) -> dict[str, str]:
    """What was filled in, empty texts included."""
    text = (root / FILE).read_text(encoding="utf-8")
    return dict(re.findall(r'^(\w+) = "([^"\n]*)"$', text, flags=re.MULTILINE))


def missing(given: dict[str, str]) -> list[str]:
    """What is still empty."""
    return [field for field in FIELDS if not given.get(field)]


def in_python(text: str, given: dict[str, str]) -> str:
    """*text* of a pyproject.toml with author and addresses."""
    people = {"name": given["author"], "email": given["contact"]}
    addresses = {"Repository": given["repository"], "Documentation": given["documentation"]}
    author, urls = _inline(people), _inline(addresses)
    lines = f"authors = [{author}]\nurls = {urls or '{}'}\n"
    return _MARKED.sub(lambda found: found[1] + lines, text)


def _inline(values: dict[str, str]) -> str:
    """An inline table of TOML; empty without a value."""
    pairs = ", ".join(f'{name} = "{value}"' for name, value in values.items() if value)
    return f"{{ {pairs} }}" if pairs else ""


def in_pom(text: str, given: dict[str, str]) -> str:
    """*text* of a POM with author and addresses: those of its own, before its dependencies."""
    head, build, rest = text.partition("<dependencyManagement>")
    source = given["repository"] or EXAMPLE_SOURCE
    site = given["documentation"] or given["repository"] or EXAMPLE
    for pattern, value in (
        (r"(?<=^  <url>)[^<]*", site),
        (r"(?<=^    <url>)[^<]*", given["repository"] or EXAMPLE),
        (r"(?<=onnection>scm:git:)[^<]*", f"{source}.git"),
        (r"(?<=<developer><name>)[^<]*", given["author"] or NOBODY),
    ):
        head = re.sub(pattern, value.replace("\\", r"\\"), head, flags=re.MULTILINE)
    return head + build + rest


def with_absolute_links(text: str, given: dict[str, str]) -> str:
    """*text* of the README as an index shows it: pages on the site, other files in the source."""

    def absolute(found: re.Match[str]) -> str:
        path, heading = found[1], found[2] or ""
        if path.startswith("docs/"):
            page = re.sub(r"(?:README|index)\.md$", "index.html", path.removeprefix("docs/"))
            return f"]({given['documentation']}/{re.sub('[.]md$', '.html', page)}{heading})"
        return f"]({given['repository']}/blob/HEAD/{path}{heading})"

    return _LINK.sub(absolute, text)


def without_developers(text: str) -> str:
    """*text* of pyproject.toml without the extras that nobody installs from an index."""
    for extra in DEVELOPERS:
        text = re.sub(
            rf"(?:^#[^\n]*\n)*^{extra} = \[(?:[^\n]*\]|\n.*?^\])\n",
            "",
            text,
            flags=re.MULTILINE | re.DOTALL,
        )
    return text


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version of each language's library, without the mark of a snapshot."""
    places = {
        "pyproject.toml": r'^version = "(.*)"$',
        "testing/pyproject.toml": r'^version = "(.*)"$',
        "java/pom.xml": r"^  <version>(.*?)(?:-SNAPSHOT)?</version>$",
        "java/antipode-bom/pom.xml": r"^  <version>(.*?)(?:-SNAPSHOT)?</version>$",
        "cpp/CMakeLists.txt": r"^project\(antipode VERSION (\S+)",
    }
    found = {}
    for name, pattern in places.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        found[name] = match[1] if match else ""
    return found


def write(root: Path = ROOT) -> None:
    """Write what was filled in."""
    given = owner(root)
    for names, change in ((PYTHON, in_python), (POMS, in_pom)):
        for name in names:
            path = root / name
            path.write_text(change(path.read_text(encoding="utf-8"), given), encoding="utf-8")


def release(version: str, root: Path = ROOT) -> None:
    """Make the checkout of a tag what is published. Nothing of it is committed.

    Raises:
        ValueError: something is empty, or a language has another version.
    """
    given = owner(root)
    if empty := missing(given):
        msg = f"{FILE}: still empty: {', '.join(empty)}"
        raise ValueError(msg)
    if wrong := {name: found for name, found in versions(root).items() if found != version}:
        msg = f"the tag is of {version}, but {wrong}"
        raise ValueError(msg)
    write(root)
    readme, project = root / "README.md", root / "pyproject.toml"
    shown = with_absolute_links(readme.read_text(encoding="utf-8"), given)
    readme.write_text(shown, encoding="utf-8")
    project.write_text(without_developers(project.read_text(encoding="utf-8")), encoding="utf-8")
    for pom in (root / "java").rglob("pom.xml"):
        text = pom.read_text(encoding="utf-8")
        pom.write_text(text.replace(f"{version}-SNAPSHOT", version), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Do what *arguments* say; the exit status."""
    if arguments == ["missing"]:
        if empty := missing(owner()):
            print(f"{FILE}: before a release the owner fills in {', '.join(empty)}")
    elif arguments[:1] == ["release"] and len(arguments) == len(["release", "VERSION"]):
        try:
            release(arguments[1])
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    else:
        write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
