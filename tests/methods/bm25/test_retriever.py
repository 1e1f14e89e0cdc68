"""The retriever from texts to rankings: ties, misses, interruption, and bytes that depend on the corpus alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.errors import DataError, UsageError
from bench.types import Corpus, Item, Source
from bench.workspace import Parts, Workspace
from methods.bm25 import BM25, tokens
from methods.bm25.config import BM25Config

IndexOf = Callable[..., "Indexed"]  # noqa: F821 (the fixture's type lives in conftest, which cannot be imported)
