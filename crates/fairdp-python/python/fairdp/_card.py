"""The card of a model, as a page and in a notebook."""

from __future__ import annotations

import html


class Card(str):
    """The page about a model, as HTML. A notebook shows it in a frame of its own, so that its style
    stays inside.
    """

    def _repr_html_(self) -> str:
        page = html.escape(self, quote=True)
        return f'<iframe srcdoc="{page}" title="Model card" style="width:100%;height:36rem;border:1px solid #ccc"></iframe>'
