"""What of the headers a text includes, and so what its key covers."""

import pytest

from tilewright.compile import headers
from tilewright.compile.headers import EMULATOR_DIR, INCLUDE_DIR, included, included_digest
from tilewright.declare import all_rungs

TEXTS = {
    "a.cuh": '#include "b.cuh"\n',
    "b.cuh": "#if 0\n#  include <deep/c.cuh>\n#endif\n",
    "deep/c.cuh": '#include "d.hpp"\n#include "../a.cuh"\n',
    "deep/d.hpp": "#pragma once\n",
    "unrelated.cuh": "// nobody includes it\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in TEXTS.items():
        write(tmp_path, name, text)
    return tmp_path


def write(root, name, text):
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text(text)
    headers.read_again(root)


def test_what_is_included_is_found_through_headers_conditions_and_folders(root):
    assert list(included('#include "a.cuh"\n', root)) == ["a.cuh", "b.cuh", "deep/c.cuh", "deep/d.hpp"]
    assert list(included('#include <vector>\n#include "deep/./d.hpp"\n', root)) == ["deep/d.hpp"]
    assert not included("int x;", root)


@pytest.mark.parametrize(
    "text",
    [
        "#define NAME <a.cuh>\n#include NAME\n",
        '#inc\\\nlude "a.cuh"\n',
        '#/* here */include "a.cuh"\n',
        '%:include "a.cuh"\n',
        '#include_next "a.cuh"\n',
        '#include \\\n"a.cuh"\n',
        '#if __has_include("a.cuh")\n#endif\n',
    ],
)
def test_an_include_that_names_no_file_by_its_text_counts_as_all(root, text):
    assert included(text, root).keys() == TEXTS.keys()
    write(root, "unrelated.cuh", text)
    assert included('#include "unrelated.cuh"\n', root).keys() == TEXTS.keys()


def test_the_digest_follows_what_is_included_and_nothing_else(root):
    text = '#include "a.cuh"\n'
    first = included_digest(text, root)
    write(root, "unrelated.cuh", "// changed")
    write(root, "new.cuh", "// new")
    assert included_digest(text, root) == first
    write(root, "deep/d.hpp", "// changed")
    changed = included_digest(text, root)
    write(root, "deep/b.cuh", "// new, and in another's place for deep/c.cuh's includes")
    write(root, "deep/c.cuh", '#include "b.cuh"\n')
    assert len({first, changed, included_digest(text, root)}) == 3


def test_files_are_read_once(root, monkeypatch):
    first = included_digest('#include "a.cuh"\n', root)
    monkeypatch.setattr(headers.Path, "read_text", lambda *_, **__: pytest.fail("read again"))
    assert included_digest('#include "a.cuh"\n', root) == first


def test_every_header_and_kernel_of_ours_names_what_it_includes():
    """Else its key would cover all headers, and change with any."""
    texts = [rung.source for rung in all_rungs().values()]
    texts += [path.read_text() for root in (INCLUDE_DIR, EMULATOR_DIR) for path in root.rglob("*") if path.is_file()]
    assert [text for text in texts if headers._names(text) is None] == []
