"""The table of posts, in MySQL."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The tables of this example."""


class Post(Base):
    """What an author wrote."""

    __tablename__ = "posts"

    id: Mapped[int] = mapped_column(primary_key=True)
    author: Mapped[str] = mapped_column(String(40))
    title: Mapped[str] = mapped_column(String(200))
