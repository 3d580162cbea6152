"""How large lineages become in requests as large as Alibaba's (paper, sections 2.1 and 7.4).

``_assumptions`` says what is assumed, ``_trees`` draws requests, ``_travel`` sends a lineage
through one of them, ``_figures`` counts, ``_run`` does a million of them, ``_page`` and ``_charts``
show what was found.
"""
