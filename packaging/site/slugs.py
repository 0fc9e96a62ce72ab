# SPDX-License-Identifier: Apache-2.0
"""Anchors of headings as GitHub makes them, which is what links in docs/ use."""

import re


def as_github(text, _separator):
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
