"""Scikit-learn's conventions."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree

import pytest
import sklearn.exceptions
import sklearn.linear_model
import sklearn.pipeline
from sklearn.base import clone

from atpgraph import ATP, InputError
from atpgraph.errors import NotFittedError


def test_scikit_learn_conventions() -> None:
    model = ATP(n_components=3, kernel="harmonic", n_jobs=2)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert copy.set_params(max_iter=5).max_iter == 5
    assert repr(model) == "ATP(n_components=3, kernel='harmonic', n_jobs=2)"
    assert not hasattr(model, "source_")
    with pytest.raises(InputError, match="no ATP parameter 'dims'"):
        model.set_params(dims=3)


def test_what_is_not_fitted_says_so() -> None:
    model = ATP()
    for kind in (NotFittedError, InputError, AttributeError, sklearn.exceptions.NotFittedError):
        with pytest.raises(kind, match="not fitted"):
            model.score_pairs([1], [2])
    assert not hasattr(model, "labels_")
    with pytest.raises(NotFittedError):
        model.reaches(1, 2)
    with pytest.raises(NotFittedError):
        model.transform([1])


def test_not_fitted_without_scikit_learn() -> None:
    code = (
        "import sys; from atpgraph import ATP, InputError\n"
        "try:\n    ATP().labels_\nexcept InputError as error:\n"
        "    print(type(error).__name__, error.exit_code, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "NotFittedError 2 False\n"


def test_repr_tells_a_fitted_model(fitted: ATP) -> None:
    assert repr(ATP(n_components=8)) == "ATP(n_components=8)"
    assert repr(fitted) == f"ATP(n_components=8).fit({fitted.graph_!r})"
    assert "not fitted" in ATP()._repr_html_()
    page = fitted._repr_html_()
    assert "<td>nodes</td><td>120</td>" in page
    assert "&lt;lambda&gt;" in ATP(kernel=lambda delta: delta)._repr_html_()
    xml.etree.ElementTree.fromstring(f"<div>{page}</div>")
