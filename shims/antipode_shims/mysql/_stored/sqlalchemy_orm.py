"""SQLAlchemy's mapped classes whose instances carry the lineage of their rows.

Import only where SQLAlchemy is.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import FetchedValue, LargeBinary
from sqlalchemy.orm import Mapped, MappedColumn, declared_attr, mapped_column, object_session

from antipode import Lineage
from antipode.shim import stored_lineage
from antipode_shims.mysql._clients.sqlalchemy import instrumented
from antipode_shims.mysql._position.flavor import text

from .triggers import COLUMN, SEPARATOR


class LineageMixin:
    """Mapped classes whose table was migrated (:func:`migration`): instances have a ``lineage``.

    Mix it into a declarative class, and instrument its engine with ``lineage="beside"`` and the
    table's name among ``tables``: a flush stores the current lineage, and a load adds that of the
    loaded rows to the current one. The attribute is for what the engine cannot see: an instance
    that comes from a cache, from another thread or from an earlier request.

    It maps the invisible column: with a side table in its place, leave the mixin out. The engine
    stores and finds lineages there as well, and instances without the mixin are what they were.

        with antipode.scope():
            antipode.transfer(post.lineage)
    """

    @declared_attr
    def _antipode_stored(self) -> Mapped[Any]:
        """The invisible column; the server fills it at each insert and update."""
        column: MappedColumn[Any] = mapped_column(
            COLUMN,
            LargeBinary,
            nullable=True,
            server_default=FetchedValue(),
            server_onupdate=FetchedValue(),
        )
        return column

    @property
    def lineage(self) -> Lineage:
        """What the row's writes depended on, as of its load; after a flush it is loaded again.

        Empty where a writer without the library made the row.
        """
        stored: Any = self._antipode_stored
        if stored is None:
            return Lineage()
        session = object_session(self)
        shim = instrumented.shim_of(session.get_bind()) if session is not None else None
        datastore = shim.datastore if shim is not None else ""
        texts = text(stored).split(SEPARATOR)
        return Lineage().merge(*(stored_lineage(datastore, one) for one in texts))
