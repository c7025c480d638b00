from __future__ import annotations

import json
import stat
import zlib
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from atpgraph.errors import InputError
from atpgraph.util.progress import report_to
from atpgraph_qa import Site, ingest
from atpgraph_qa.data.schema import TABLES

from ..dumps import answer, question, small, write, xml

py7zr = pytest.importorskip("py7zr")


def contents(site: Path) -> dict[str, list[dict[str, object]]]:
    folder = site / json.loads((site / "site.json").read_text())["tables"]
    return {t: parquet.read_table(folder / f"{t}.parquet").to_pylist() for t in TABLES}


def test_everything_a_dump_holds(tmp_path):
    report = ingest(small(tmp_path / "dump"), tmp_path / "site")
    assert report.rows == {
        "questions": 3,
        "answers": 3,
        "users": 2,
        "votes": 4,
        "tags": 1,
        "links": 1,
    }
    assert report.missing == {}
    assert report.files["Posts.xml"].notes == {
        "posts of other types left out": 1,
        "posts owned by Community": 1,
        "posts without owner": 1,
    }
    stored = contents(tmp_path / "site")
    assert stored["questions"][0] == {
        "id": 1,
        "created_ms": 1_577_836_800_000,
        "owner_id": 10,
        "accepted_answer_id": 5,
        "score": 3,
        "views": 7,
        "title": 'A "title" & more',
        "body": "<p>café</p>\n",
        "tags": ["one", "two"],
    }
    assert [row["tags"] for row in stored["questions"]] == [["one", "two"], ["two"], []]
    assert [row["owner_id"] for row in stored["answers"]] == [12, 11, None]
    assert [row["user_id"] for row in stored["votes"]] == [10, None, 12, None]


def test_no_name_biography_or_location_is_stored(tmp_path):
    ingest(small(tmp_path / "dump"), tmp_path / "site")
    stored = json.dumps(contents(tmp_path / "site")) + (tmp_path / "site/site.json").read_text()
    for secret in ("Jane", "Secret", "Hidden", "Atlantis", "biography", "example.org"):
        assert secret not in stored
    assert [column.name for column in TABLES["users"]] == ["id", "created_ms", "reputation"]


def test_only_posts_are_needed_and_what_is_missing_is_named(tmp_path):
    report = ingest(write(tmp_path / "dump", posts=[question(1)]), tmp_path / "site")
    assert set(report.missing) == {"Users.xml", "Votes.xml", "Tags.xml", "PostLinks.xml"}
    assert "bounties" in report.missing["Votes.xml"]
    site = Site(tmp_path / "site")
    assert (len(site.bounties), len(site.users), len(site.links), site.tags.names) == (0, 0, 0, [])
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"no Posts\.xml"):
        ingest(tmp_path / "none", tmp_path / "site2")
    assert not (tmp_path / "site2").exists()


def test_fabricated_posts_are_left_out(tmp_path):
    rows = [
        question(1, OwnerUserId=5),
        question(1000000001, OwnerUserId=-1),
        answer(1000000010, 1, OwnerUserId=-1),
    ]
    report = ingest(write(tmp_path / "dump", posts=rows), tmp_path / "site")
    assert (report.rows["questions"], report.rows["answers"]) == (1, 0)
    assert report.files["Posts.xml"].notes["fabricated posts left out"] == 2


def test_of_rows_with_one_id_the_first_counts(tmp_path):
    rows = [question(1, Title="first"), question(2), question(1, Title="again"), answer(2, 1)]
    report = ingest(write(tmp_path / "dump", posts=rows), tmp_path / "site")
    assert report.files["Posts.xml"].duplicates == 2
    stored = contents(tmp_path / "site")
    assert [row["title"] for row in stored["questions"]] == ["first", None]
    assert stored["answers"] == []


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"Id": "x", "PostTypeId": 1, "CreationDate": "2020-01-01"}, "Id = 'x'"),
        ({"PostTypeId": 1, "CreationDate": "2020-01-01"}, "lacks Id"),
        ({"Id": 0, "PostTypeId": 1, "CreationDate": "2020-01-01"}, "Id = '0'"),
        ({"Id": 2**31, "PostTypeId": 1, "CreationDate": "2020-01-01"}, "Id = '2147483648'"),
        ({"Id": "9" * 30, "PostTypeId": 1, "CreationDate": "2020-01-01"}, "Id = '999"),
        ({"Id": 2, "CreationDate": "2020-01-01"}, "lacks PostTypeId"),
        ({"Id": 2, "PostTypeId": 1}, "lacks CreationDate"),
        ({"Id": 2, "PostTypeId": 1, "CreationDate": "yesterday"}, "CreationDate = 'yesterday'"),
        ({"Id": 2, "PostTypeId": 2, "CreationDate": "2020-01-01"}, "lacks ParentId"),
        (question(2, Score="many"), "Score = 'many'"),
    ],
)
def test_unreadable_rows_are_counted_shown_and_limited(tmp_path, bad, said):
    few = write(tmp_path / "few", posts=[question(1), bad])
    with pytest.raises(InputError, match="1 of 2 rows") as error:
        ingest(few, tmp_path / "site")
    assert said in str(error.value)
    assert not (tmp_path / "site").exists()
    report = ingest(few, tmp_path / "site", allow_bad_rows=True)
    assert report.files["Posts.xml"].unreadable == 1
    assert said in report.files["Posts.xml"].samples[0]
    many = write(tmp_path / "many", posts=[bad, *(question(i) for i in range(10, 209))])
    report = ingest(many, tmp_path / "site")  # 1 of 200
    assert (report.rows["questions"], report.files["Posts.xml"].unreadable) == (199, 1)


def test_a_file_that_was_cut_off_is_refused(tmp_path):
    dump = small(tmp_path / "dump")
    whole = (dump / "Posts.xml").read_bytes()
    (dump / "Posts.xml").write_bytes(whole[: whole.rindex(b"<row") + 30])
    with pytest.raises(InputError, match="cut off"):
        ingest(dump, tmp_path / "site")
    report = ingest(dump, tmp_path / "site", allow_bad_rows=True)
    assert report.files["Posts.xml"].truncated
    assert report.rows["questions"] == 3


def test_dates_with_a_zone_and_without_a_time(tmp_path):
    rows = [question(1), question(2), question(3)]
    rows[0]["CreationDate"] = "2020-01-01T01:00:00+01:00"
    rows[1]["CreationDate"] = "2020-01-01"
    rows[2]["CreationDate"] = "2020-01-01T00:00:00.0000000"
    ingest(write(tmp_path / "dump", posts=rows), tmp_path / "site")
    assert {row["created_ms"] for row in contents(tmp_path / "site")["questions"]} == {
        1_577_836_800_000
    }


def test_a_new_ingest_replaces_the_old_site_and_a_failed_one_does_not(tmp_path):
    site = tmp_path / "site"
    ingest(small(tmp_path / "one"), site)
    before = contents(site)
    broken = write(tmp_path / "broken", posts=[question(1), question("x")])
    with pytest.raises(InputError):
        ingest(broken, site)
    assert contents(site) == before
    ingest(write(tmp_path / "two", posts=[question(77)]), site)
    assert [row["id"] for row in contents(site)["questions"]] == [77]
    assert sorted(entry.name.split("-")[0] for entry in site.iterdir()) == ["site.json", "tables"]


class _Interrupt:
    """A person who presses Ctrl-C while the votes are read."""

    def start(self, name: str, total: float | None) -> int:
        return int("Votes" in name)

    def advance(self, stage: int, amount: float) -> None:
        if stage:
            raise KeyboardInterrupt

    def finish(self, stage: int) -> None:
        pass


def test_an_interrupted_ingest_leaves_the_old_site(tmp_path):
    site = tmp_path / "site"
    ingest(write(tmp_path / "one", posts=[question(77)]), site)
    before = contents(site)
    dump = small(tmp_path / "two")
    with pytest.raises(KeyboardInterrupt), report_to(_Interrupt()):
        ingest(dump, site)
    assert contents(site) == before
    assert len(list(site.iterdir())) == 2
    with pytest.raises(KeyboardInterrupt), report_to(_Interrupt()):
        ingest(dump, tmp_path / "fresh")
    assert not (tmp_path / "fresh").exists()


def test_what_a_killed_ingest_of_an_earlier_version_left_is_cleared(tmp_path):
    site = tmp_path / "site"
    ingest(write(tmp_path / "one", posts=[question(77)]), site)
    for name in (".ingest-old", "tables-0a1b2c3d"):
        (site / name).mkdir()
    ingest(small(tmp_path / "two"), site)
    assert sorted(entry.name[:7] for entry in site.iterdir()) == ["site.js", "tables-"]
    assert len(Site(site).questions) == 3


def test_an_open_site_never_mixes_two_ingests(tmp_path):
    site = tmp_path / "site"
    ingest(write(tmp_path / "one", posts=[question(77)]), site)
    opened = Site(site)
    ingest(small(tmp_path / "two"), site)
    with pytest.raises(InputError, match="ingested again"):
        _ = opened.questions
    assert len(Site(site).questions) == 3


@pytest.mark.parametrize("named", ["letters", "../letters", ".", "/", ""])
def test_a_new_ingest_deletes_nothing_that_site_json_names(tmp_path, named):
    site = tmp_path / "site"
    ingest(write(tmp_path / "one", posts=[question(77)]), site)
    manifest = json.loads((site / "site.json").read_text())
    (site / "site.json").write_text(json.dumps({**manifest, "tables": named}))
    for folder in (tmp_path, site):
        (folder / "letters").mkdir()
        (folder / "letters/dear.txt").write_text("dear")
    with pytest.raises(InputError, match="other files"):
        ingest(small(tmp_path / "two"), site)
    (site / "letters/dear.txt").unlink()
    (site / "letters").rmdir()
    ingest(small(tmp_path / "three"), site)
    assert len(Site(site).questions) == 3
    assert (tmp_path / "letters/dear.txt").read_text() == "dear"


def test_a_folder_with_other_files_is_not_touched(tmp_path):
    dump = small(tmp_path / "dump")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter.txt").write_text("dear")
    with pytest.raises(InputError, match="other files"):
        ingest(dump, tmp_path / "home")
    with pytest.raises(InputError, match="is a file"):
        ingest(dump, tmp_path / "home/letter.txt")
    with pytest.raises(InputError, match="does not exist"):
        ingest(dump, tmp_path / "no/such/folder")
    assert [entry.name for entry in (tmp_path / "home").iterdir()] == ["letter.txt"]


def pack(path: Path, members: dict[str, bytes]) -> Path:
    with py7zr.SevenZipFile(path, "w") as archive:
        archive.set_encoded_header_mode(False)  # names in the clear, for a test that changes them
        for name, data in members.items():
            archive.writestr(data, name)
    return path


def posts(*rows: dict[str, object]) -> bytes:
    return xml("posts", rows).encode()


def test_an_archive_gives_what_its_folder_gives(tmp_path):
    dump = small(tmp_path / "dump")
    members = {f"site.example/{file.name}": file.read_bytes() for file in dump.iterdir()}
    members["site.example/Badges.xml"] = b"<badges/>"
    archive = pack(tmp_path / "site.7z", members)
    ingest(dump, tmp_path / "one")
    ingest(archive, tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("name", ["../../Posts.xml", "/Posts.xml", "..\\..\\Posts.xml"])
def test_names_in_an_archive_lead_nowhere(tmp_path, name):
    source = tmp_path / "a/b/c"
    source.mkdir(parents=True)
    archive = source / "site.7z"
    # py7zr refuses to write such names: pack a harmless one of the same length and patch it.
    harmless = "".join("x" if c in "./\\" else c for c in name)
    pack(archive, {harmless: posts(question(1))})
    data = archive.read_bytes()
    patched = data.replace(harmless.encode("utf-16-le"), name.encode("utf-16-le"))
    assert patched != data
    # The checksum of the header, and then that of the start header, follow the change.
    offset = int.from_bytes(patched[12:20], "little")
    size = int.from_bytes(patched[20:28], "little")
    header = patched[32 + offset : 32 + offset + size]
    start = patched[12:28] + zlib.crc32(header).to_bytes(4, "little")
    archive.write_bytes(
        patched[:8] + zlib.crc32(start).to_bytes(4, "little") + start + patched[32:]
    )
    with py7zr.SevenZipFile(archive) as opened:
        assert opened.getnames()[0].replace("\\", "/") == name.replace("\\", "/")
    before = set(tmp_path.rglob("*"))
    try:
        ingest(archive, source / "site")
    except InputError:
        assert not (source / "site").exists()
    after = {path for path in tmp_path.rglob("*") if source / "site" not in [path, *path.parents]}
    assert after == before


def test_links_and_folders_in_an_archive_are_no_tables(tmp_path):
    (tmp_path / "secret.xml").write_bytes(posts(question(1)))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "Posts.xml").symlink_to("../secret.xml")
    with py7zr.SevenZipFile(tmp_path / "link.7z", "w") as archive:
        archive.write(tree / "Posts.xml", "Posts.xml")
    with pytest.raises(InputError):
        ingest(tmp_path / "link.7z", tmp_path / "site")
    (tree / "Posts.xml").unlink()
    (tree / "Posts.xml").mkdir()
    with py7zr.SevenZipFile(tmp_path / "folder.7z", "w") as archive:
        archive.write(tree / "Posts.xml", "Posts.xml")
    with pytest.raises(InputError):
        ingest(tmp_path / "folder.7z", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_two_sites_in_one_archive_are_refused(tmp_path):
    members = {"a/Posts.xml": posts(question(1)), "b/Posts.xml": posts(question(2))}
    with pytest.raises(InputError, match="twice"):
        ingest(pack(tmp_path / "two.7z", members), tmp_path / "site")


def test_a_site_is_readable_by_others(tmp_path):
    ingest(small(tmp_path / "dump"), tmp_path / "site")
    (folder,) = (tmp_path / "site").glob("tables-*")
    assert folder.stat().st_mode & stat.S_IRUSR
    assert not folder.name.startswith(".")


def test_what_is_no_site_is_said(tmp_path):
    for damage in ("", "{", "[]", '{"format": "other"}', '{"format": "atpgraph-site"}'):
        (tmp_path / "site.json").write_text(damage)
        with pytest.raises(InputError):
            Site(tmp_path)
    manifest = {"format": "atpgraph-site", "schema": 1, "tables": "../elsewhere"}
    (tmp_path / "site.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="folder of the tables"):
        Site(tmp_path)
    with pytest.raises(InputError, match="not a site"):
        Site(tmp_path / "nothing")


@pytest.mark.data
def test_opendata(data_dir, tmp_path):
    report = ingest(data_dir / "stackexchange/opendata.stackexchange.com.7z", tmp_path / "site")
    assert all(file.unreadable == file.duplicates == 0 for file in report.files.values())
    assert list(report.missing) == ["PostLinks.xml"]
    site = Site(tmp_path / "site")
    assert (len(site.questions), len(site.answers), len(site.bounties)) == (3_733, 4_803, 68)
    assert len(site.tags.names) == 281


@pytest.mark.data
def test_travel(travel):
    report, site = travel
    assert all(file.unreadable == file.duplicates == 0 for file in report.files.values())
    assert (len(site.questions), len(site.answers), len(site.bounties)) == (25_346, 42_847, 1_342)
    assert site.tags.names == []
