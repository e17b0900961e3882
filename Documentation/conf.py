# SPDX-License-Identifier: GPL-2.0
"""Sphinx: `make doc` builds the manuals as web pages."""

import re

project = "RNBD and RTRS"
copyright = "the RTRS/RNBD developers"
html_title = "RNBD over RTRS"
html_theme = "alabaster"
html_show_copyright = False
html_show_sourcelink = False
# Options such as --save keep their hyphens.
smartquotes = False
exclude_patterns = ["ABI"]
highlight_language = "none"
nitpicky = True


def link(_app, name, source):
    """In a kernel tree, "Documentation/rtrs.rst" is a link as it is."""
    up = "../" if "/" in name else ""
    source[0] = re.sub(r"(?<!`)\bDocumentation/([a-z-]+)\.rst", rf":doc:`{up}\1`", source[0])


def setup(app):
    app.connect("source-read", link)
