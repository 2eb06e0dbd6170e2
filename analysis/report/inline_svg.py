"""A picture as part of a page: SVG whose ids are its own and that says what it shows."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from markupsafe import Markup

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
REFERENCE = re.compile(r"url\(#([^)]+)\)")
# What XML cannot hold, and what would turn the letters around: shown as unknown, as a browser would.
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
UNKNOWN = "\ufffd"


def inlined(svg: str, name: str, title: str, description: str) -> Markup:
    """Make SVG text fit to stand in a page beside others; it scales with the page.

    `name` begins all its ids; `title` and `description` are its text alternative.
    """
    root = ET.fromstring(UNSEEN.sub(UNKNOWN, svg))  # noqa: S314  # matplotlib wrote it a moment ago
    for parent in list(root.iter()):
        # A style sheet inside would hold for the whole page; metadata nobody sees.
        for child in [one for one in parent if one.tag in {f"{SVG}metadata", f"{SVG}style"}]:
            parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        element.attrib = {key.replace(XLINK, ""): _own(key.replace(XLINK, ""), value, name) for key, value in element.attrib.items()}
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-desc", "style": "stroke-linejoin: round; stroke-linecap: butt"}
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        told = ET.Element(tag, id=f"{name}-{tag}")
        told.text = UNSEEN.sub(UNKNOWN, text)
        root.insert(place, told)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704  # ElementTree has escaped every text and attribute in it


def _own(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    return REFERENCE.sub(rf"url(#{name}-\1)", value)
