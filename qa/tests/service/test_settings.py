"""Settings: one file, the environment, one sentence about what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from atpgraph.errors import InputError
from atpgraph_qa.service.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


def test_the_file_and_then_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(
        '[policy]\npeople = 4\nhours = "08:00-16:00"\n[hooks]\ndiscourse_secret = "x"\n'
    )
    monkeypatch.setenv("ATP_SERVE_POLICY_PEOPLE", "5")
    monkeypatch.setenv("ATP_SERVE_POLICY_GROUPS", "a, b")
    found = Settings.read(file)
    assert found.policy.people == 5
    assert found.policy.hours == "08:00-16:00"
    assert found.policy.groups == ("a", "b")
    assert "'x'" not in repr(found)
    assert found.shown()["hooks"]["discourse_secret"] == "(set)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[polcy]\n", "did you mean 'policy'"),
        ("[policy]\npeopel = 1\n", "did you mean 'people'"),
        ("[policy]\npeople = 0\n", "greater than or equal to 1"),
        ('[policy]\npeople = "two"\n', "valid integer"),
        ('[policy]\nshadow = "maybe"\n', "true or false"),
        ('[policy]\nhours = "9-5"\n', "09:00-17:00"),
        ('[policy]\nhours = "09:00-09:00"\n', "09:00-17:00"),
        ('[policy]\ntime_zone = "Mars/Base"\n', "no time zone"),
        ('[policy]\nholidays = ["soon"]\n', "2026-12-25"),
        ('[policy]\nweekdays = ["monday"]\n', "'mon', 'tue'"),
        ('[deliver]\nadapters = ["slak"]\n', "'slack' or 'github', not 'slak'"),
        ('[deliver]\nadapters = ["slack"]\n', "slack_url is needed"),
        ('[deliver]\nwebhook_url = "ftp://x"\n', "https://"),
        ('[hooks]\ngeneric_secrets = ["whsec_"]\n', "whsec_ is not base64"),
        ('[deliver]\nwebhook_secrets = ["whsec_abcde"]\n', "whsec_ is not base64"),
        ('[store]\ndatabase = "mysql://x"\n', "postgresql://"),
        ("[server]\nport = 70000\n", "65535"),
        ('[log]\nlevel = "loud"\n', "'debug', 'info'"),
        ("policy = 3\n", "a section"),
        ("[policy\n", "not TOML"),
    ],
)
def test_one_sentence_about_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        Settings.read(file)


@pytest.mark.parametrize(
    ("name", "value"),
    [("ATP_SERVE_POLICY_PEOPLE", "two"), ("ATP_SERVE_POLICY_MODE", "perhaps"),
     ("ATP_SERVE_POLICY_NOTHING", "1"), ("ATP_SERVE_NOTHING_AT_ALL", "1")],
)  # fmt: skip
def test_the_environment_is_checked(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=name):
        Settings.read()


def test_the_old_name_of_the_mode_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATP_SERVE_POLICY_SHADOW", "false")
    with pytest.warns(DeprecationWarning, match="policy.mode"):
        assert Settings.read().policy.mode == "automatic"


def test_secrets_are_not_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('[store]\ndatabase = "mysql://me:S3CRET@host"\n')
    with pytest.raises(InputError) as error:
        Settings.read(file)
    assert "S3CRET" not in str(error.value)


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "service.md").read_text(encoding="utf-8")
    for section, name, about, value in Settings().items():
        assert about.description, name
        row = f"| `{name}` |"
        assert row in page.partition(f"## [{section}]")[2].partition("\n## ")[0], name
        assert value == about.default
    assert len(Settings.model_fields) == page.count("\n## [")


def test_days_are_kept_as_the_policy_compares_them(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('[policy]\nholidays = ["20261225"]\n')
    assert Settings.read(file).policy.policy().holidays == ("2026-12-25",)
